// Classes that promise that they repeat (`repeats`): the insertions are those of a walk that calls every function. Where a run keeps what comes
// again (`Graph.again`), here a graph that takes any part of it, the walk goes on behind that.
import '../../support/removable-guards.js';
import { afterEach, expect, test } from 'vitest';
import { guardNames, setGuard } from '../../../devices/simulated/cases/set-guard.js';
import { Random } from '../../../devices/simulated/machine/random.js';
import { type Datum, type Range, range } from '../../../index.js';
import { FlowEnd, type Indices } from '../../../scheduler/parameterised/ends.js';
import { GraphClass } from '../../../scheduler/parameterised/graph-class.js';
import type { Repetition } from '../../../scheduler/program/graph.js';
import {
  between,
  type ChainData,
  chainData,
  type Reads,
  readersOf,
  step,
  walked,
  X,
} from '../../support/chain-walks.js';
import { partOf } from '../../support/grids.js';
import { HOSTS, onMachine } from '../../support/machines.js';

const SEEDS = partOf(600, 100);

type Parameters = 'function' | 'object';
type Odd = 'nothing' | 'source' | 'device' | 'lost' | 'throws';

/** Chains of tasks on columns, as in rounds.test.ts. Classes take turns at the positions. */
interface Program {
  readonly columns: number;
  readonly length: number;
  readonly classes: number;
  readonly reads: readonly (readonly Reads[])[];
  readonly params: Parameters;
  readonly odd: Odd;
  readonly oddPosition: number;
  readonly oddColumn: number;
  readonly names: readonly string[];
  readonly stride: number;
  /** Positions in which the promise holds, without the last one. */
  readonly promised: readonly [number, number];
}

function randomProgram(r: Random): Program {
  const columns = 1 + r.below(5);
  const classes = 1 + r.below(3);
  const reads = Array.from({ length: classes }, () =>
    Array.from({ length: columns }, (_, p): Reads => {
      if (p === 0 || r.below(4) === 0) return 'constant';
      return { column: r.below(p), back: r.below(2) as 0 | 1 };
    }),
  );
  const length = 150 + r.below(200);
  const odd = (['nothing', 'source', 'device', 'lost', 'throws'] as const)[r.below(5)];
  const oddPosition = 20 + r.below(length - 25);
  // The task before the odd one sends something else, too.
  const parts = [
    [1, odd === 'nothing' ? length - 1 : oddPosition - 1],
    [odd === 'nothing' ? 1 : oddPosition + 1, length - 1],
  ];
  const [from, to] = parts[r.below(2)];
  const [first, end] = [r.below(3) === 0, r.below(3) === 0].map((cuts) =>
    cuts ? r.below(Math.max(1, Math.floor((to - from) / 2))) : 0,
  );
  return {
    ...{ columns, length, classes, reads, odd, oddPosition, oddColumn: r.below(columns) },
    params: r.below(2) === 0 ? 'function' : 'object',
    names: [
      ['c', 'p'],
      ['p', 'c'],
      ['p', 'z', 'y', 'c'],
    ][r.below(3)],
    stride: [1, 1, -1, 7, -3][r.below(5)],
    promised: [from + first, to - end],
  };
}

interface Way {
  readonly promises: boolean;
  /** Without rounds. */
  readonly plain: boolean;
}

/** The classes of a program, and how often it calls their `from` and `to`. */
function classesOf(program: Program, data: ChainData, { promises, plain }: Way) {
  const { columns, length, names, stride, odd, oddPosition, oddColumn } = program;
  const calls = { count: 0 };
  const classes = Array.from(
    { length: program.classes },
    (_, n) => new GraphClass(`class${n}`, n, { runs: step, indices: [...names] }),
  );
  const numberOf = (c: number): number => 1000 + c * stride;
  const positionOf = (of: Indices): number => (of['c'] - 1000) / stride;
  const end = (c: number, p: number, flow: number): FlowEnd => {
    const all: Readonly<Record<string, number>> = { c: numberOf(c), p, z: -5, y: 3 * p };
    const indices = Object.fromEntries(names.map((name) => [name, all[name]]));
    return new FlowEnd(classes[c % classes.length], flow, indices);
  };
  const isOdd = (what: Odd, c: number, p: number): boolean =>
    what === odd && c === oddPosition && p === oddColumn;
  const readsOf = (c: number, p: number): Reads => {
    if (!isOdd('source', c, p)) return program.reads[c % classes.length][p];
    return p === 0 ? 'constant' : { column: 0, back: 1 };
  };
  const constantOf = (c: number, p: number): Datum<'f64'> =>
    data.constants[isOdd('source', c, p) ? 1 : 0];
  const chains = { columns, length, readsOf, end };
  const span = (from: number, to: number): Range => between(numberOf(from), numberOf(to));
  const all: Readonly<Record<string, (of: Indices) => Range>> = {
    c: () => span(0, length - 1),
    p: () => range(0, columns),
    z: () => range(-5, -4),
    y: ({ p }) => range(3 * p, 3 * p + 1),
  };
  const ranges = Object.fromEntries(names.map((name) => [name, all[name]]));
  const first = { ...ranges, c: () => span(0, 0) };
  const [from, to] = program.promised;
  classes.forEach((cls, n) => {
    cls.define({
      ranges,
      starts: n === 0 ? first : { ...first, c: () => range(0, 0) },
      params: program.params === 'object' ? { at: 7 } : (of) => ({ at: positionOf(of) }),
      ...(odd === 'device'
        ? {
            device: (of: Indices) =>
              isOdd('device', positionOf(of), of['p']) ? ('host' as const) : undefined,
          }
        : {}),
      ...(plain ? { priority: () => 0 } : {}),
      ...(promises && to > from ? { repeats: { c: () => span(from, to - 1) } } : {}),
      flows: {
        x: {
          from: (of) => {
            calls.count++;
            const [c, p] = [positionOf(of), of['p']];
            return c === 0 ? data.columns[p] : end(c - 1, p, X);
          },
          to: (of) => {
            calls.count++;
            const [c, p] = [positionOf(of), of['p']];
            if (isOdd('throws', c, p)) throw new Error('no targets');
            const next = c + 1 === length ? data.columns[p] : end(c + 1, p, X);
            return [readersOf(chains, c, p), isOdd('lost', c, p) ? undefined : next];
          },
        },
        n: {
          from: (of) => {
            calls.count++;
            const [c, p] = [positionOf(of), of['p']];
            const reads = readsOf(c, p);
            return reads === 'constant' || c < reads.back
              ? constantOf(c, p)
              : end(c - reads.back, reads.column, X);
          },
        },
      },
    });
  });
  return { classes, calls };
}

/** What a walk inserts. `takes`: how many of the insertions that come again the run takes. */
const walkedAgain = (
  classes: readonly GraphClass[],
  { checked = false, takes = (_: Repetition): number => 0 } = {},
): string[] =>
  walked(classes, (all) => ({
    isChecked: checked,
    mayComeAgain: true,
    untilStretch: 0,
    again(of: Repetition): number {
      const { count, before, ahead } = of;
      expect((before + ahead) % count).toBe(0);
      for (let n = all.length - before + count; n < all.length; n++)
        if (all[n] !== all[n - count]) throw new Error(`insertion ${n} does not repeat`);
      const taken = Math.min(ahead, takes(of));
      for (let left = taken; left > 0; left--) all.push(all[all.length - count]);
      return taken;
    },
  }));

const onData = (use: (data: ChainData) => void): Promise<void> =>
  onMachine(HOSTS[0].options, (runtime) => {
    use(chainData(runtime));
    return Promise.resolve();
  });

afterEach(() => {
  for (const name of guardNames) setGuard(name, true);
});

test('a walk that relies on promises inserts what one that calls every function does', () =>
  onData((data) => {
    let saved = 0;
    let taken = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const r = new Random(seed);
      const program = randomProgram(r);
      const { classes: plain } = classesOf(program, data, { promises: false, plain: true });
      const expected = walkedAgain(plain);
      const compared = classesOf(program, data, { promises: false, plain: false });
      expect(walkedAgain(compared.classes), `seed ${seed}, compared`).toEqual(expected);
      const promised = classesOf(program, data, { promises: true, plain: false });
      expect(walkedAgain(promised.classes), `seed ${seed}`).toEqual(expected);
      if (promised.calls.count < compared.calls.count / 2) saved++;
      const again = classesOf(program, data, { promises: true, plain: false });
      const takes = ({ count, ahead }: Repetition): number => {
        const some = [0, count, count * r.below(9), r.below(3 * count), ahead][r.below(5)];
        if (some > 0) taken++;
        return some;
      };
      expect(walkedAgain(again.classes, { takes }), `seed ${seed}, taken`).toEqual(expected);
      const checked = classesOf(program, data, { promises: true, plain: false });
      const called = classesOf(program, data, { promises: false, plain: false });
      expect(walkedAgain(checked.classes, { checked: true }), `seed ${seed}, checked`).toEqual(
        walkedAgain(called.classes, { checked: true }),
      );
      expect(checked.calls.count).toBe(called.calls.count);
    }
    expect(saved).toBeGreaterThan(SEEDS / 5);
    expect(taken).toBeGreaterThan(SEEDS / 5);
  }));

/** One column of two classes, whose promise ends at that position, in the middle of a round. */
const PAIR: Program = {
  ...{ columns: 2, length: 201, classes: 2, params: 'object', odd: 'nothing' },
  reads: [
    ['constant', 'constant'],
    ['constant', { column: 0, back: 1 }],
  ],
  ...{ oddPosition: 0, oddColumn: 0, names: ['c', 'p'], stride: 1, promised: [1, 200] },
};

test.each([
  { promised: [1, 200], most: 0.25 },
  { promised: [1, 151], most: 0.5 },
  { promised: [60, 140], most: 0.7 },
  { promised: [60, 62], most: 1 },
  { promised: [60, 61], most: 1 },
] as const)('functions are not called where the classes repeat: %o', ({ promised, most }) =>
  onData((data) => {
    const program = { ...PAIR, promised };
    const compared = classesOf(program, data, { promises: false, plain: false });
    const some = classesOf(program, data, { promises: true, plain: false });
    expect(walkedAgain(some.classes)).toEqual(walkedAgain(compared.classes));
    const part = some.calls.count / compared.calls.count;
    expect(part).toBeLessThanOrEqual(most);
    expect(part).toBeGreaterThan(most - 0.25);
  }),
);

test('without repeatsEnd: tasks behind the end of a promise are inserted as those before', () =>
  onData((data) => {
    const differs = (oddPosition: number): boolean => {
      const odd = { oddPosition, oddColumn: 0, odd: 'source', columns: 1 } as const;
      const promised = [1, oddPosition - 1] as const;
      const reads: Program['reads'] = [['constant'], ['constant']];
      const program: Program = { ...PAIR, ...odd, reads, promised };
      const expected = walkedAgain(
        classesOf(program, data, { promises: false, plain: true }).classes,
      );
      const found = walkedAgain(classesOf(program, data, { promises: true, plain: false }).classes);
      return JSON.stringify(found) !== JSON.stringify(expected);
    };
    // One of them is in the round behind the last one that is promised.
    const positions = [170, 171, 172, 173];
    expect(positions.filter(differs)).toEqual([]);
    setGuard('repeatsEnd', false);
    expect(positions.filter(differs)).not.toEqual([]);
  }));
