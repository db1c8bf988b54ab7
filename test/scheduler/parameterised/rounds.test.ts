// A walk that repeats goes on in rounds (rounds.ts). Its insertions are those of a walk that looks every task up: the same graph with
// priorities that are all equal, which no round has.
import { afterEach, expect, it, vi } from 'vitest';
import { Random } from '../../../devices/simulated/machine/random.js';
import { type Datum, type Range, range, readWrite, task, write } from '../../../index.js';
import { FlowEnd, type Indices, Temporary } from '../../../scheduler/parameterised/ends.js';
import { GraphClass } from '../../../scheduler/parameterised/graph-class.js';
import { Round } from '../../../scheduler/parameterised/round.js';
import {
  between,
  type ChainData,
  chainData,
  N,
  type Reads,
  readersOf,
  step,
  walked,
  X,
} from '../../support/chain-walks.js';
import { partOf } from '../../support/grids.js';
import { HOSTS, onMachine } from '../../support/machines.js';

const SEEDS = partOf(400, 120);

/** What differs at one position of one column. */
const ODD = [
  ...['nothing', 'source', 'home', 'device', 'lost', 'twice', 'elsewhere', 'outside', 'throws'],
  ...['ends', 'temporary', 'range', 'homes', 'sources'],
] as const;
type Odd = (typeof ODD)[number];

/** Chains of tasks on columns, whose tasks also read a value of another column. A task is a position in a column. */
interface Program {
  readonly columns: number;
  readonly length: number;
  /** Classes that take turns at the positions. */
  readonly classes: number;
  /** Positions after which the reads repeat. */
  readonly period: number;
  readonly reads: readonly (readonly Reads[])[];
  readonly odd: Odd;
  readonly oddPosition: number;
  readonly oddColumn: number;
  /** Names of the indices: those of the position and the column, and others that depend on them. */
  readonly names: readonly string[];
  /** The positions have falling numbers with gaps. */
  readonly stride: number;
}

function randomProgram(r: Random): Program {
  const columns = 1 + r.below(5);
  const period = 1 + r.below(3);
  const reads = Array.from({ length: period }, () =>
    Array.from({ length: columns }, (_, p): Reads => {
      if (p === 0 || r.below(4) === 0) return 'constant';
      return { column: r.below(p), back: r.below(2) as 0 | 1 };
    }),
  );
  const length = 100 + r.below(200);
  return {
    ...{ columns, length, period, reads, classes: 1 + r.below(3), odd: ODD[r.below(ODD.length)] },
    ...{ oddPosition: r.below(length), oddColumn: r.below(columns) },
    names: [
      ['c', 'p'],
      ['p', 'c'],
      ['c', 'p', 'q'],
      ['q', 'c', 'z', 'p', 'w'],
    ][r.below(4)],
    stride: [1, 1, -1, 7, -3][r.below(5)],
  };
}

/** The classes of a program. `plain`: without what rounds do not have. */
function classesOf(program: Program, data: ChainData, plain: boolean): GraphClass[] {
  const { columns, length, names, stride, odd, oddPosition, oddColumn } = program;
  const classes = Array.from(
    { length: program.classes },
    (_, n) => new GraphClass(`class${n}`, n, { runs: step, indices: [...names] }),
  );
  const numberOf = (c: number): number => 10 + c * stride;
  const positionOf = (of: Indices): number => (of['c'] - 10) / stride;
  const others = (c: number, p: number): Record<string, number> => ({
    ...{ c: numberOf(c), p, q: c + 2 * p, z: -5, w: p - c },
  });
  const end = (c: number, p: number, flow: number): FlowEnd => {
    const all = others(c, p);
    const indices = Object.fromEntries(names.map((name) => [name, all[name]]));
    return new FlowEnd(classes[c % classes.length], flow, indices);
  };
  const isOdd = (what: Odd, c: number, p: number): boolean =>
    what === odd && c === oddPosition && p === oddColumn;
  const readsOf = (c: number, p: number): Reads => {
    const isOther = odd === 'sources' && c > oddPosition && p === oddColumn;
    if (isOther || isOdd('source', c, p)) return p === 0 ? 'constant' : { column: 0, back: 1 };
    return program.reads[c % program.period][p];
  };
  const chains = { columns, length, readsOf, end };
  const home = (c: number, p: number): (FlowEnd | Datum)[] => {
    const copies = odd === 'homes' && c > oddPosition && p === oddColumn;
    if (copies || isOdd('home', c, p)) return [data.home];
    if (isOdd('twice', c, p)) return [end(c + 1, p, X), end(c + 1, p, X)];
    if (isOdd('elsewhere', c, p)) return [end(c + 1, (p + 1) % columns, N)];
    return isOdd('outside', c, p) ? [end(c, columns, N)] : [];
  };
  const span = (c: number) => between(numberOf(0), numberOf(c));
  const rangeOf: Readonly<Record<string, () => Range>> = {
    c: () => span(odd === 'range' ? oddPosition : length - 1),
    p: () => range(0, columns),
  };
  const ranges = Object.fromEntries(
    names.map((name) => [name, rangeOf[name] ?? (() => range(-2000, 2000))]),
  );
  const first = Object.fromEntries(
    names.map((name) => {
      const exactly = (of: Indices) => {
        const values = Array.from({ length: columns }, (_, p) => others(0, p)[name]);
        const p = of['p'];
        return name === 'p' || p === undefined
          ? range(Math.min(...values), Math.max(...values) + 1)
          : range(others(0, p)[name], others(0, p)[name] + 1);
      };
      return [name, exactly];
    }),
  );
  classes.forEach((cls, n) => {
    cls.define({
      ranges,
      starts: n === 0 ? first : { ...first, c: () => range(0, 0) },
      params: (of) => ({ at: positionOf(of) }),
      device: (of) => (isOdd('device', positionOf(of), of['p']) ? 'host' : undefined),
      ...(plain ? { priority: () => 0 } : {}),
      flows: {
        x: {
          from: (of) => {
            const [c, p] = [positionOf(of), of['p']];
            if (isOdd('temporary', c, p)) return new Temporary('f64', 1, {});
            return c === 0 ? data.columns[p] : end(c - 1, p, X);
          },
          to: (of) => {
            const [c, p] = [positionOf(of), of['p']];
            if (isOdd('throws', c, p)) throw new Error('no targets');
            const isLast = c + 1 === length || isOdd('ends', c, p);
            const next = isLast ? data.columns[p] : end(c + 1, p, X);
            return [readersOf(chains, c, p), isOdd('lost', c, p) ? undefined : next, home(c, p)];
          },
        },
        n: {
          from: (of) => {
            const [c, p] = [positionOf(of), of['p']];
            const reads = readsOf(c, p);
            return reads === 'constant' || c < reads.back
              ? data.constants[c % 2]
              : end(c - reads.back, reads.column, X);
          },
        },
      },
    });
  });
  return classes;
}

/** What a walk inserts, with copies home and the ends of temporaries. */
const walkedWithMore = (classes: readonly GraphClass[]): string[] =>
  walked(classes, (all) => ({
    insert: (cls: { readonly name: string }) => void all.push(cls.name),
    makeTemporary: (_element: string, _length: number, { name }: { name: string }) => ({ name }),
    freeTemporary: ({ name }: { readonly name: string }) => void all.push(`free ${name}`),
  }));

afterEach(() => vi.restoreAllMocks());

/** Rounds that walks have gone on by since this call. */
function countRounds(): { rounds: number } {
  const counted = { rounds: 0 };
  const { goOn } = Round.prototype;
  vi.spyOn(Round.prototype, 'goOn').mockImplementation(function (this: Round, ...given) {
    // A function that throws ends a round that is not counted.
    counted.rounds++;
    const progress = goOn.call(this, ...given);
    counted.rounds += progress.rounds - 1;
    return progress;
  });
  return counted;
}

it('a walk in rounds inserts what a walk without them does, and fails as it does', async () => {
  await onMachine(HOSTS[0].options, async (runtime) => {
    const data = chainData(runtime);
    const counted = countRounds();
    const tried = new Map<Odd, number>();
    for (let seed = 1; seed <= SEEDS; seed++) {
      const program = randomProgram(new Random(seed));
      counted.rounds = 0;
      const inserted = walkedWithMore(classesOf(program, data, false));
      if (counted.rounds > 0) tried.set(program.odd, (tried.get(program.odd) ?? 0) + 1);
      expect(inserted, `seed ${seed}`).toEqual(walkedWithMore(classesOf(program, data, true)));
    }
    expect([...tried.keys()].sort()).toEqual([...ODD].sort());
  });
});

it('a graph with a temporary for every task has no rounds', async () => {
  const scale = task({ name: 'scale', flows: { x: readWrite('f64') }, kernel: 'empty' });
  const scratch = task({
    name: 'scratch',
    flows: { x: readWrite('f64'), w: write('f64') },
    kernel: 'empty',
  });
  await onMachine(HOSTS[0].options, (runtime) => {
    const x = runtime.data(new Float64Array(1), { name: 'x' });
    const temporary = new Temporary('f64', 1, {});
    const counted = countRounds();
    const [inserted, expected] = [false, true].map((plain) => {
      const plainly = new GraphClass('plainly', 0, { runs: scale, indices: ['c'] });
      const scratching = new GraphClass('scratching', 1, { runs: scratch, indices: ['c'] });
      const rest = { ranges: { c: () => range(0, 300) }, ...(plain ? { priority: () => 0 } : {}) };
      const at = (cls: GraphClass, c: number) => new FlowEnd(cls, X, { c });
      plainly.define({
        ...rest,
        starts: { c: () => range(0, 1) },
        flows: {
          x: {
            from: ({ c }) => (c === 0 ? x : at(scratching, c - 1)),
            to: ({ c }) => at(scratching, c),
          },
        },
      });
      scratching.define({
        ...rest,
        starts: { c: () => range(0, 0) },
        flows: {
          x: {
            from: ({ c }) => at(plainly, c),
            to: ({ c }) => (c === 299 ? x : at(plainly, c + 1)),
          },
          w: { from: () => temporary },
        },
      });
      return walkedWithMore([plainly, scratching]);
    });
    expect(inserted).toEqual(expected);
    expect(inserted).toHaveLength(901);
    expect(counted.rounds).toBe(0);
    return Promise.resolve();
  });
});

it('a change at any position comes at that position', async () => {
  await onMachine(HOSTS[0].options, (runtime) => {
    const [x, before, behind] = ['x', 'before', 'behind'].map((name) =>
      runtime.data(new Float64Array(1), { name }),
    );
    const counted = countRounds();
    for (let from = 30; from < 110; from++) {
      const cls = new GraphClass('link', 0, { runs: step, indices: ['c'] });
      const at = (c: number) => new FlowEnd(cls, X, { c });
      cls.define({
        ranges: { c: () => range(0, 200) },
        starts: { c: () => range(0, 1) },
        params: () => ({ at: 0 }),
        flows: {
          x: {
            from: ({ c }) => (c === 0 ? x : at(c - 1)),
            to: ({ c }) => (c === 199 ? x : at(c + 1)),
          },
          n: { from: ({ c }) => (c < from ? before : behind) },
        },
      });
      const inserted = walkedWithMore([cls]);
      const names = Array.from({ length: 200 }, (_, c) => (c < from ? 'before' : 'behind'));
      expect(inserted.map((text) => text.split(' ')[2]).slice(0, 200)).toEqual(names);
    }
    expect(counted.rounds).toBeGreaterThan(80 * 80);
    return Promise.resolve();
  });
});

it('a round that overwrites what it has read from before the graph does not come again', async () => {
  await onMachine(HOSTS[0].options, async (runtime) => {
    const make = (name: string): Datum<'f64'> => runtime.data(new Float64Array(1), { name });
    const [chain, constant, late] = [make('chain'), make('constant'), make('late')];
    const early = Array.from({ length: 120 }, (_, c) => make(`early${c}`));
    const counted = countRounds();
    // From position `from` on a task reads and another one overwrites the same datum every time, so the second time is a mistake, also in
    // the round behind the recorded one.
    for (let from = 30; from < 110; from++) {
      const both = [false, true].map((plain) => {
        const datum = (c: number): Datum<'f64'> => (c < from ? early[c] : late);
        const indices = ['c'];
        const classes = ['link', 'user', 'writer'].map(
          (name, n) => new GraphClass(name, n, { runs: step, indices }),
        );
        const [links, users, writers] = classes;
        const at = (cls: GraphClass, c: number, flow: number) => new FlowEnd(cls, flow, { c });
        const rest = {
          ranges: { c: () => range(0, 120) },
          starts: { c: () => range(0, 0) },
          params: () => ({ at: 0 }),
          ...(plain ? { priority: () => 0 } : {}),
        };
        links.define({
          ...rest,
          starts: { c: () => range(0, 1) },
          flows: {
            x: {
              from: ({ c }) => (c === 0 ? chain : at(users, c - 1, X)),
              to: ({ c }) => at(users, c, X),
            },
            n: { from: () => constant },
          },
        });
        users.define({
          ...rest,
          flows: {
            x: {
              from: ({ c }) => at(links, c, X),
              to: ({ c }) => [at(writers, c, N), c === 119 ? chain : at(links, c + 1, X)],
            },
            n: { from: ({ c }) => datum(c) },
          },
        });
        writers.define({
          ...rest,
          flows: {
            x: { from: ({ c }) => datum(c), to: ({ c }) => datum(c) },
            n: { from: ({ c }) => at(users, c, X) },
          },
        });
        return walkedWithMore(classes);
      });
      expect(both[0], `from ${from}`).toEqual(both[1]);
      expect(both[0].at(-1)).toContain('ERR_GRAPH_VERSION');
    }
    expect(counted.rounds).toBe(0);
  });
});
