// The tables of the walk against plain ones: known tasks against a Map, ready tasks against a sorted array, all indices
// against nested loops.
import { describe, expect, it } from 'vitest';
import { Random } from '../../../devices/simulated/machine/random.js';
import { AllIndices } from '../../../scheduler/parameterised/all-indices.js';
import type { Indices } from '../../../scheduler/parameterised/ends.js';
import type { GraphTask } from '../../../scheduler/parameterised/graph-task.js';
import { KnownTasks } from '../../../scheduler/parameterised/known-tasks.js';
import { PriorityHeap } from '../../../scheduler/parameterised/priority-heap.js';
import { Range } from '../../../scheduler/parameterised/range.js';
import { ReadyQueue, type ReadyTasks } from '../../../scheduler/parameterised/ready-tasks.js';

const NAMES = ['i', 'j', 'k', 'l', 'm'];

function taskOf(indices: Indices, priority = 0): GraphTask {
  return { indices, priority, hash: 0, next: undefined } as unknown as GraphTask;
}

/** Values of an index: close to each other, as in a graph, or anything that a range may have. */
const VALUES: readonly ((r: Random) => number)[] = [
  (r) => r.below(6),
  (r) => r.below(12) - 6,
  (r) => (r.below(8) - 4) * 2 ** (8 * r.below(6)),
];

describe('known tasks', () => {
  it.each([0, 1, 2, 3, 5])('are those of a map, with %i indices', (count) => {
    const names = NAMES.slice(0, count);
    for (let seed = 1; seed <= 12; seed++) {
      const r = new Random(seed);
      const value = VALUES[seed % VALUES.length];
      const known = new KnownTasks(names);
      const reference = new Map<string, GraphTask>();
      const often = 1 + r.below(4);
      for (let step = 0; step < 600; step++) {
        const indices = Object.fromEntries(names.map((name) => [name, value(r)]));
        const key = names.map((name) => indices[name]).join();
        const found = known.find(indices);
        expect(found, `seed ${seed}, step ${step}`).toBe(reference.get(key));
        if (found === undefined) {
          const task = taskOf(indices);
          known.add(task);
          reference.set(key, task);
        } else if (r.below(4) < often) {
          known.delete(found);
          reference.delete(key);
        }
        expect(known.size).toBe(reference.size);
      }
      for (const task of reference.values()) expect(known.find(task.indices)).toBe(task);
      expect(new Set(known.all())).toEqual(new Set(reference.values()));
    }
  });

  it('take memory for the most tasks at a time, however many come and go', () => {
    const known = new KnownTasks(['t', 'p']);
    const width = 100;
    for (let t = 0; t < 300; t++) {
      for (let p = 0; p < width; p++) {
        known.find({ t, p });
        known.add(taskOf({ t, p }));
        const before = known.find({ t: t - 1, p });
        if (before !== undefined) known.delete(before);
      }
      expect(known.size).toBe(width);
    }
    expect(known.chains).toBeLessThanOrEqual(4 * (width + 1));
  });
});

describe('ready tasks', () => {
  const kinds: readonly [string, () => ReadyTasks, number][] = [
    ['without priorities', () => new ReadyQueue(), 1],
    ['with priorities', () => new PriorityHeap<GraphTask>(), 5],
    ['all of one priority', () => new PriorityHeap<GraphTask>(), 1],
  ];
  it.each(kinds)('%s come as from a sorted list', (_, make, priorities) => {
    for (let seed = 1; seed <= 8; seed++) {
      const r = new Random(seed);
      const ready = make();
      const reference: GraphTask[] = [];
      for (let step = 0; step < 800; step++) {
        // The list grows for some steps and shrinks for others.
        if (reference.length === 0 || r.below(10) < (step % 200 < 100 ? 7 : 3)) {
          const task = taskOf({}, r.below(priorities));
          const behind = reference.findIndex(({ priority }) => priority < task.priority);
          reference.splice(behind < 0 ? reference.length : behind, 0, task);
          ready.add(task);
        } else expect(ready.take(), `seed ${seed}, step ${step}`).toBe(reference.shift());
        expect(ready.size).toBe(reference.length);
      }
    }
  });
});

describe('all indices', () => {
  function loops(
    names: readonly string[],
    ranges: readonly ((of: Indices) => Range)[],
    of: Indices = {},
  ): Indices[] {
    const [name, ...others] = names;
    if (name === undefined) return [of];
    const [range, ...inner] = ranges;
    return [...range(of)].flatMap((value) => loops(others, inner, { ...of, [name]: value }));
  }

  it.each([0, 1, 2, 3])('are those of %i nested loops, empty ranges among them', (count) => {
    for (let seed = 1; seed <= 40; seed++) {
      const r = new Random(seed);
      const names = NAMES.slice(0, count);
      const shifts = names.map(() => r.below(4));
      const ranges = names.map((_, n) => (of: Indices) => {
        const sum = names.slice(0, n).reduce((all, name) => all + of[name], shifts[n]);
        return new Range(sum % 3, sum % 5);
      });
      const all = new AllIndices(names, ranges);
      const seen: Indices[] = [];
      for (let of = all.next(); of !== undefined; of = all.next()) seen.push(of);
      expect(seen).toEqual(loops(names, ranges));
      expect(all.next()).toBeUndefined();
    }
  });
});
