// Order proved by clocks: a random graph runs with a trace, and tasks that must not overlap must be apart in time: a
// reader and the last writer before it; on one device any two tasks with a common datum that one of them writes; control
// edges. (A writer on one device need not wait for readers of the older version on another.) Values can be right by
// luck; times cannot.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Datum, type Flow, Runtime, type TaskHandle, task } from '../../index.js';
import { TaskTime } from '../../trace/format.js';
import { loadTrace } from '../../trace/load.js';
import { type Trace, taskName } from '../../trace/trace.js';
import { MACHINES, soon } from '../support/machines.js';
import { random } from '../support/tasks.js';

interface Step {
  readonly data: readonly number[];
  readonly reads: ReadonlySet<number>;
  readonly writes: ReadonlySet<number>;
  readonly after: readonly number[];
  readonly script: boolean;
}

/** A flow per letter: read, readWrite or write. */
function classFor(modes: string, script: boolean) {
  const mode = { r: 'read', u: 'readWrite', w: 'write' } as const;
  const flows = Object.fromEntries(
    [...modes].map((m, i) => [`f${i}`, { element: 'f64', mode: mode[m as 'r'] } satisfies Flow]),
  );
  return task({
    name: `flows ${modes}${script ? ' script' : ''}`,
    flows,
    params: { microseconds: 'f64' },
    ...(script ? { body: () => {} } : { kernel: 'spin' }),
  });
}

/** Large enough that a copy takes about as long as a task. */
const BYTES = 2 ** 17;

/**
 * The bytes of one copy: whoever writes them (a task there, a transfer into it) is apart in time from everyone else
 * who uses them (a task there, a transfer out of it). Returns what overlaps.
 */
function overlaps(trace: Trace): string[] {
  const { tasks, transfers } = trace;
  const uses = new Map<string, { start: number; end: number; write: boolean; who: string }[]>();
  const use = (
    datum: number,
    space: number,
    start: number,
    end: number,
    write: boolean,
    who: string,
  ): void => {
    const key = `datum ${datum} in space ${space}`;
    let list = uses.get(key);
    if (list === undefined) uses.set(key, (list = []));
    list.push({ start, end, write, who });
  };
  for (let r = 0; r < tasks.count; r++) {
    const [start, end] = [TaskTime.execStart, TaskTime.execEnd].map((t) => tasks.times[t][r]);
    for (let a = tasks.accesses.start[r]; a < tasks.accesses.start[r + 1]; a++) {
      const write = (tasks.accessModes[a] & 2) !== 0;
      use(tasks.accesses.items[a], tasks.space[r], start, end, write, taskName(trace, r));
    }
  }
  for (let t = 0; t < transfers.count; t++) {
    const [start, end] = [transfers.start[t], transfers.end[t]];
    use(transfers.datum[t], transfers.source[t], start, end, false, `transfer ${t} out`);
    use(transfers.datum[t], transfers.destination[t], start, end, true, `transfer ${t} in`);
  }
  const found: string[] = [];
  for (const [key, list] of uses) {
    list.sort((a, b) => a.start - b.start);
    let lastWrite = { end: 0, who: '' };
    let lastUse = { end: 0, who: '' };
    for (const next of list) {
      const before = next.write ? lastUse : lastWrite;
      if (next.start < before.end)
        found.push(`${key}: ${next.who} began before ${before.who} ended`);
      if (next.end > lastUse.end) lastUse = next;
      if (next.write && next.end > lastWrite.end) lastWrite = next;
    }
  }
  return found;
}

describe.each(MACHINES)('on $name', ({ options, gpus }) => {
  it.each([1, 2, 3])('tasks that must not overlap do not, seed %i', async (seed) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'headrace-order-'));
    const file = path.join(folder, 'run.hrtrace');
    try {
      const next = random(seed);
      const pick = (n: number): number => Math.floor(next() * n);
      const steps: Step[] = [];
      const classes = new Map<string, ReturnType<typeof classFor>>();
      const runtime = await Runtime.create({
        ...options,
        window: 128,
        runAhead: 16,
        gpuMemory: 6 * BYTES,
        trace: file,
      });
      const data: Datum<'f64'>[] = Array.from({ length: 9 }, () =>
        runtime.data(new Float64Array(BYTES / 8)),
      );
      const handles: TaskHandle[] = [];
      const run = runtime.run((graph) => {
        for (let index = 0; index < 400; index++) {
          const script = pick(6) === 0;
          const used = [...new Set(Array.from({ length: pick(4) }, () => pick(data.length)))];
          const modes = used.map(() => 'rrruw'[pick(5)]).join('');
          const key = `${modes}/${script}`;
          let cls = classes.get(key);
          if (cls === undefined) classes.set(key, (cls = classFor(modes, script)));
          const after = Array.from({ length: pick(8) === 0 ? 1 + pick(3) : 0 }, () =>
            pick(Math.max(1, index)),
          );
          const known = after.filter((i) => i < index);
          const device = gpus > 0 && !script && pick(3) === 0 ? pick(gpus) : undefined;
          const flows = Object.fromEntries(used.map((d, i) => [`f${i}`, data[d]]));
          handles.push(
            graph.insert(cls, { ...flows, microseconds: pick(30) } as never, {
              after: known.map((i) => handles[i]),
              priority: pick(3) - 1,
              ...(device === undefined ? {} : { device }),
            }),
          );
          steps.push({
            data: used,
            reads: new Set(used.filter((_, i) => modes[i] !== 'w')),
            writes: new Set(used.filter((_, i) => modes[i] !== 'r')),
            after: known,
            script,
          });
        }
      });
      expect((await soon(runtime, run)).tasks).toBe(400);
      await runtime.close();

      const trace = loadTrace(file);
      const { tasks } = trace;
      const row = new Array<number>(steps.length).fill(-1);
      for (let r = 0; r < tasks.count; r++) {
        const index = handles.indexOf(tasks.id[r] as TaskHandle);
        if (index >= 0) row[index] = r;
      }
      expect(row).not.toContain(-1);
      const begin = (i: number): number => tasks.times[TaskTime.execStart][row[i]];
      const end = (i: number): number => tasks.times[TaskTime.execEnd][row[i]];
      const lastWriter = (d: number, before: number): number => {
        for (let i = before - 1; i >= 0; i--) if (steps[i].writes.has(d)) return i;
        return -1;
      };
      const wrong: string[] = [];
      let pairs = 0;
      for (let later = 0; later < steps.length; later++) {
        expect(end(later)).toBeGreaterThanOrEqual(begin(later));
        for (let earlier = 0; earlier < later; earlier++) {
          const b = steps[later];
          const a = steps[earlier];
          const here = tasks.space[row[later]] === tasks.space[row[earlier]];
          const conflict = b.data.some(
            (d) => here && a.data.includes(d) && (b.writes.has(d) || a.writes.has(d)),
          );
          const feeds = [...b.reads].some((d) => lastWriter(d, later) === earlier);
          if (!conflict && !feeds && !b.after.includes(earlier)) continue;
          pairs++;
          if (begin(later) < end(earlier)) {
            wrong.push(
              `#${later} began ${end(earlier) - begin(later)} ns before #${earlier} ended`,
            );
          }
        }
      }
      expect(pairs).toBeGreaterThan(500);
      expect(wrong).toEqual([]);
      expect(overlaps(trace)).toEqual([]);
      if (gpus > 0) expect(trace.transfers.count).toBeGreaterThan(100);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
