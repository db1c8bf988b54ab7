// Reductions against a reference by hand: the same bits on every machine, and on simulated ranks with any timing. Wrong data
// are typed errors before the first task.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { allReduce, type ReduceOperation, reduce, reducePartials } from '../../algorithms/index.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { presets } from '../../devices/simulated/machine/presets.js';
import { World } from '../../devices/simulated/machine/world.js';
import { SimulatedNetwork } from '../../devices/simulated/network/network.js';
import {
  type AnyElementArray,
  type Datum,
  type ElementType,
  type Graph,
  HeadraceError,
  Runtime,
  read,
  task,
  write,
} from '../../index.js';
import { MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';

const OPERATIONS: readonly ReduceOperation[] = ['sum', 'min', 'max', 'hypot'];
const ELEMENTS: readonly ElementType[] = ['f64', 'f32', 'i32', 'u32', 'u8'];

const ARRAYS = {
  f64: Float64Array,
  f32: Float32Array,
  i32: Int32Array,
  u32: Uint32Array,
  u8: Uint8Array,
};
/** What an element can hold, of an exact sum of two elements. */
const WRAPPED: Readonly<Record<ElementType, (sum: number) => number>> = {
  f64: (sum) => sum,
  f32: Math.fround,
  i32: (sum) => sum | 0,
  u32: (sum) => sum >>> 0,
  u8: (sum) => sum & 255,
};

function combined(element: ElementType, operation: ReduceOperation, a: number, b: number): number {
  if (operation === 'hypot') return ARRAYS[element].of(Math.hypot(a, b))[0];
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.NaN;
  if (operation === 'sum') {
    const sum = WRAPPED[element](a + b);
    // The processor's NaN, of opposite infinities, has a sign.
    return Number.isNaN(sum) ? Number.NaN : sum;
  }
  const isLess = a < b || (Object.is(a, -0) && b === 0);
  return isLess === (operation === 'min') ? a : b;
}

/** The inputs from `first` on: all of the largest power of two below their number, then the others. */
function expected(
  element: ElementType,
  operation: ReduceOperation,
  inputs: readonly AnyElementArray[],
): number[] {
  if (inputs.length === 1) return [...inputs[0]];
  let half = 1;
  while (2 * half < inputs.length) half *= 2;
  const left = expected(element, operation, inputs.slice(0, half));
  const right = expected(element, operation, inputs.slice(half));
  return left.map((value, i) => combined(element, operation, value, right[i]));
}

const bits = (values: ArrayLike<number>, element: ElementType): string =>
  Buffer.from(ARRAYS[element].from(values).buffer).toString('hex');

/** An element of any kind, but mostly one whose sums are rounded or wrap. */
function anyElement(element: ElementType): fc.Arbitrary<number> {
  switch (element) {
    case 'f64':
      return fc.oneof(fc.double({ min: -1e3, max: 1e3, noNaN: true }), fc.double());
    case 'f32':
      return fc.oneof(fc.float({ min: -1000, max: 1000, noNaN: true }), fc.float());
    case 'i32':
      return fc.integer();
    case 'u32':
      return fc.integer({ min: 0, max: 2 ** 32 - 1 });
    case 'u8':
      return fc.integer({ min: 0, max: 255 });
  }
}

/** Inputs of one element type and shape. */
const anyInputs = (
  element: ElementType,
  most = 18,
): fc.Arbitrary<{ rows: number; lists: number[][] }> =>
  fc
    .record({ count: fc.integer({ min: 1, max: most }), rows: fc.integer({ min: 1, max: 3 }) })
    .chain(({ count, rows }) =>
      fc.record({
        rows: fc.constant(rows),
        lists: fc.array(
          fc.array(anyElement(element), { minLength: 2 * rows, maxLength: 2 * rows }),
          { minLength: count, maxLength: count },
        ),
      }),
    );

interface Reduction {
  readonly inputs: Datum[];
  readonly partials: Datum[];
  readonly results: Datum[];
}

/** Makes the data of a reduction on a runtime: input i on rank i modulo their number, and a result on every rank. */
function dataOf(
  runtime: Runtime,
  element: ElementType,
  rows: number,
  lists: number[][],
): Reduction {
  const { ranks } = runtime;
  const inputs = lists.map((list, i) =>
    runtime.data(ARRAYS[element].from(list) as Float64Array, {
      name: `x${i}`,
      rank: i % ranks,
      rows,
    }),
  ) as Datum[];
  const results = Array.from({ length: ranks }, (_, rank) =>
    runtime.data(element, 2 * rows, { rank, rows, name: `result ${rank}` }),
  );
  return { inputs, partials: reducePartials(runtime, inputs), results };
}

const arraysOf = (element: ElementType, lists: readonly number[][]): AnyElementArray[] =>
  lists.map((list) => ARRAYS[element].from(list));

describe.each(MACHINES)('on $name', ({ options }) => {
  it.each(ELEMENTS)('%s: every operation gives the bits of the reference', async (element) => {
    await onMachine(options, (runtime) =>
      fc.assert(
        fc.asyncProperty(anyInputs(element), async ({ rows, lists }) => {
          const { inputs, partials, results } = dataOf(runtime, element, rows, lists);
          const [result] = results;
          for (const operation of OPERATIONS) {
            const report = await soon(
              runtime,
              runtime.run((graph) => reduce(graph, { inputs, partials, result }, operation)),
            );
            expect(report.tasks).toBe(Math.max(1, lists.length - 1));
            const wanted = expected(element, operation, arraysOf(element, lists));
            expect(bits(await result.read(), element)).toBe(bits(wanted, element));
          }
          for (const [i, input] of inputs.entries())
            expect(bits(await input.read(), element)).toBe(bits(lists[i], element));
          await nothingLeft(runtime, [...inputs, ...partials, ...results]);
        }),
        { numRuns: 12 },
      ),
    );
  });
});

describe('values', () => {
  /** Reduces single elements. */
  async function reduced<A extends AnyElementArray>(
    operation: ReduceOperation,
    values: readonly A[],
  ): Promise<A> {
    await using runtime = await Runtime.create({ workers: 1 });
    const inputs = values.map((array) => runtime.data(array as Float64Array)) as Datum[];
    const partials = reducePartials(runtime, inputs);
    const result = runtime.data(inputs[0].element, 1);
    await runtime.run((graph) => reduce(graph, { inputs, partials, result }, operation));
    return (await result.read()) as A;
  }
  const f64 = (...words: bigint[]): Float64Array<ArrayBuffer> =>
    new Float64Array(BigUint64Array.of(...words).buffer);
  const f32 = (...words: number[]): Float32Array<ArrayBuffer> =>
    new Float32Array(Uint32Array.of(...words).buffer);
  const word = async (value: Promise<Float64Array<ArrayBuffer>>): Promise<bigint> =>
    new BigUint64Array((await value).buffer)[0];
  const half = async (value: Promise<Float32Array<ArrayBuffer>>): Promise<number> =>
    new Uint32Array((await value).buffer)[0];

  it.each(OPERATIONS)('%s of a NaN and anything is the same quiet NaN', async (operation) => {
    const one = Float64Array.of(1);
    for (const nan of [0xfff8000000000000n, 0x7ff8000000000123n, 0xfff0000000000001n]) {
      expect(await word(reduced(operation, [one, f64(nan)]))).toBe(0x7ff8000000000000n);
      expect(await word(reduced(operation, [f64(nan), one, one]))).toBe(0x7ff8000000000000n);
    }
    const single = Float32Array.of(1);
    for (const nan of [0xffc00000, 0x7fc00123, 0xff800001]) {
      expect(await half(reduced(operation, [single, f32(nan)]))).toBe(0x7fc00000);
      expect(await half(reduced(operation, [f32(nan), single, single]))).toBe(0x7fc00000);
    }
  });

  it('the sum of opposite infinities is that NaN, too', async () => {
    const infinity = Float64Array.of(Number.POSITIVE_INFINITY);
    const sum = reduced('sum', [infinity, Float64Array.of(Number.NEGATIVE_INFINITY)]);
    expect(await word(sum)).toBe(0x7ff8000000000000n);
  });

  it('-0 is less than +0', async () => {
    const zeros = [Float64Array.of(0), Float64Array.of(-0), Float64Array.of(0)];
    expect(await reduced('min', zeros)).toEqual(Float64Array.of(-0));
    expect(await reduced('max', zeros)).toEqual(Float64Array.of(0));
  });

  it('the only input keeps its bits', async () => {
    expect(await word(reduced('sum', [f64(0xfff8000000000123n)]))).toBe(0xfff8000000000123n);
  });

  it('five numbers are added in the order of the page', async () => {
    const x = [1, 2 ** -53, 2 ** -53, 2 ** -53, 1e16];
    const inOrder = x[0] + x[1] + (x[2] + x[3]) + x[4];
    expect(
      await reduced(
        'sum',
        x.map((value) => Float64Array.of(value)),
      ),
    ).toEqual(Float64Array.of(inOrder));
  });
});

const link = { bandwidth: 1e9, latency: 1e-6 };
const machine = { ...presets['h200-1'], gpus: 0, workers: 1, lanes: 8, hostMemory: 2 ** 20 };

/** Runs a program on simulated ranks whose times the adversary of that seed stretches; rejects when all stand still. */
async function onRanks(
  { ranks, seed, treeFrom }: { ranks: number; seed: number; treeFrom: number },
  program: (runtime: Runtime) => Promise<void>,
): Promise<void> {
  const world = new World();
  const adversary = { seed, spread: 6, holdBack: 0.6, stall: 0.1, stallNs: 1e4, spurious: 0.1 };
  const backends = Array.from(
    { length: ranks },
    (_, rank) =>
      new SimulatedBackend({
        machine,
        world,
        kernels: {}, // so that its memory has bytes
        adversary: { ...adversary, seed: seed + rank },
      }),
  );
  const network = new SimulatedNetwork(world, backends, {
    link,
    ranksPerHost: 1,
    adversary: backends[0].adversary,
  });
  const runtimes = backends.map((backend, rank) =>
    Runtime.over(backend, { workers: 1, treeFrom }, network.ports[rank]),
  );
  const still = new Promise<never>((_, reject) => {
    world.onStill = () =>
      setImmediate(() => {
        if (world.next === Number.POSITIVE_INFINITY) reject(new Error(runtimes[0].explain()));
      });
  });
  const all = Promise.all(
    runtimes.map(async (runtime) => {
      await program(runtime);
      await runtime.close();
    }),
  );
  await Promise.race([all, still]);
}

const scale = task({
  name: 'scale',
  flows: { to: write('f64'), from: read('f64') },
  params: { factor: 'f64' },
  body: ({ to, from, factor }) => to.set(from.map((value) => factor * value)),
});

describe('on simulated ranks', () => {
  it('any number of ranks and any timing give the bits of the reference, again and again', () =>
    fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 2, max: 5 }),
        fc.integer({ min: 1, max: 1e6 }),
        anyInputs('f64', 9),
        fc.constantFrom(...OPERATIONS),
        async (ranks, treeFrom, seed, { rows, lists }, operation) => {
          const wanted = [1, -0.3].map((factor) => {
            const scaled = lists.map((list) => Float64Array.from(list, (value) => factor * value));
            return bits(expected('f64', operation, scaled), 'f64');
          });
          let tasks = 0;
          await onRanks({ ranks, treeFrom, seed }, async (runtime) => {
            const { inputs, partials, results } = dataOf(runtime, 'f64', rows, lists);
            const scaled = inputs.map(({ name, length, rank }) =>
              runtime.data('f64', length, { name: `scaled ${name}`, rows, rank }),
            ) as Datum[];
            const first = results.map(({ rank }) => runtime.data('f64', 2 * rows, { rank, rows }));
            const report = await runtime.run((graph) => {
              const of = { inputs: scaled, partials };
              for (const [factor, to] of [
                [1, first],
                [-0.3, results],
              ] as const) {
                for (const [i, from] of inputs.entries())
                  graph.insert(scale, {
                    to: scaled[i] as Datum<'f64'>,
                    from: from as Datum<'f64'>,
                    factor,
                  });
                allReduce(graph, { ...of, results: to as Datum[] }, operation);
              }
            });
            tasks += report.tasks;
            for (const [i, list] of [first, results].entries()) {
              for (const datum of list) {
                const values = await datum.read();
                if (lists.length > 1) expect(bits(values, 'f64')).toBe(wanted[i]);
              }
            }
          });
          const count = lists.length;
          expect(tasks).toBe(2 * (count + Math.max(1, count - 1) + ranks - 1));
        },
      ),
      { numRuns: 60 },
    ));

  it('a tree of combinations runs on the ranks of its inputs, and the root writes the result', async () => {
    const counts: number[] = [];
    await onRanks({ ranks: 8, treeFrom: 4, seed: 1 }, async (runtime) => {
      const { inputs, partials, results } = dataOf(
        runtime,
        'f64',
        1,
        Array.from({ length: 8 }, (_, i) => [i, 1]),
      );
      expect(partials.map(({ rank }) => rank)).toEqual([0, 2, 4, 6, 0, 4]);
      const root = results[5];
      const report = await runtime.run((graph) =>
        reduce(graph, { inputs, partials, result: root }, 'sum'),
      );
      counts[runtime.rank] = report.tasks;
      expect(await root.read()).toEqual(Float64Array.of(28, 8));
    });
    expect(counts).toEqual([2, 0, 1, 0, 2, 1, 1, 0]);
  });

  it('pruned runs give the same', () =>
    onRanks({ ranks: 4, treeFrom: 2, seed: 3 }, async (runtime) => {
      const { inputs, partials, results } = dataOf(
        runtime,
        'i32',
        1,
        Array.from({ length: 7 }, (_, i) => [i, -i]),
      );
      for (const [operation, wanted] of [
        ['sum', [21, -21]],
        ['max', [6, 0]],
      ] as const) {
        await runtime.run((graph) => allReduce(graph, { inputs, partials, results }, operation), {
          pruned: true,
        });
        for (const result of results) expect([...(await result.read())]).toEqual(wanted);
      }
    }));
});

describe('wrong data', () => {
  interface World {
    readonly runtime: Runtime;
    readonly graph: Graph;
    readonly good: { inputs: Datum<'f64'>[]; partials: Datum<'f64'>[]; result: Datum<'f64'> };
  }

  /** The code and message with which `wrong` is refused; checks that no task was inserted. */
  async function refused(
    wrong: (world: World) => void,
  ): Promise<{ code: string; message: string }> {
    const runtime = await Runtime.create({ workers: 1 });
    const named = (name: string, rows = 1): Datum<'f64'> =>
      runtime.data(new Float64Array(2), { name, rows });
    const good = {
      inputs: ['a', 'b', 'c', 'd'].map((name) => named(name)),
      partials: [named('p'), named('q')],
      result: named('r'),
    };
    let error: unknown;
    const report = await runtime.run((graph) => {
      try {
        wrong({ runtime, graph, good });
      } catch (thrown) {
        error = thrown;
      }
    });
    await runtime.close();
    expect(report.tasks).toBe(0);
    if (!(error instanceof HeadraceError)) throw error;
    const { code, message } = error;
    return { code, message };
  }

  const cases: Readonly<
    Record<string, [wrong: (world: World) => void, code: string, text: string]>
  > = {
    'no input': [
      ({ graph, good }) => reduce(graph, { ...good, inputs: [] }, 'sum'),
      'ERR_SHAPE',
      'reduce needs at least one input',
    ],
    'no results': [
      ({ graph, good }) => allReduce(graph, { ...good, results: [] }, 'sum'),
      'ERR_SHAPE',
      'allReduce needs at least one of results',
    ],
    'too few partials': [
      ({ graph, good }) => reduce(graph, { ...good, partials: good.partials.slice(1) }, 'sum'),
      'ERR_SHAPE',
      'reduce of 4 inputs needs 2 partials, not 1',
    ],
    'another element type': [
      ({ runtime, graph, good }) => {
        const single = runtime.data(new Float32Array(2), { name: 'single', rows: 1 });
        reduce(
          graph,
          { ...good, inputs: [...good.inputs, single] as never, partials: good.inputs },
          'sum',
        );
      },
      'ERR_ARGUMENT_TYPE',
      "inputs[4] must be like inputs[0], but they are 'single' (1 x 2 of f32) and 'a' (1 x 2 of f64)",
    ],
    'another shape': [
      ({ runtime, graph, good }) => {
        const tall = runtime.data(new Float64Array(2), { name: 'tall', rows: 2 });
        reduce(graph, { ...good, result: tall }, 'sum');
      },
      'ERR_SHAPE',
      "reduce: result must be like inputs[0], but they are 'tall' (2 x 1 of f64) and 'a' (1 x 2 of f64)",
    ],
    'an input as the result': [
      ({ graph, good }) => reduce(graph, { ...good, result: good.inputs[2] }, 'sum'),
      'ERR_DUPLICATE_DATUM',
      "reduce: inputs[2] and result are both datum 'c'",
    ],
    'a partial twice': [
      ({ graph, good: { inputs, partials, result } }) =>
        allReduce(
          graph,
          { inputs, partials: [partials[1], partials[1]], results: [result] },
          'max',
        ),
      'ERR_DUPLICATE_DATUM',
      "allReduce: partials[0] and partials[1] are both datum 'q'",
    ],
    'an input without a value': [
      ({ runtime, graph, good }) => {
        const empty = runtime.data('f64', 2, { name: 'empty', rows: 1 });
        reduce(graph, { ...good, inputs: [good.inputs[0], empty] }, 'sum');
      },
      'ERR_NEVER_WRITTEN',
      "reduce: datum 'empty' of inputs[1] is read, and nothing has written it",
    ],
    'a closed partial': [
      ({ graph, good }) => {
        good.partials[1].close();
        reduce(graph, good, 'sum');
      },
      'ERR_DATUM_CLOSED',
      "reduce: datum 'q' of partials[1]",
    ],
    'another operation': [
      ({ graph, good }) => reduce(graph, good, 'toString' as never),
      'ERR_ARGUMENT_TYPE',
      "reduce: operation must be 'sum', 'min', 'max' or 'hypot', not 'toString'",
    ],
    'partials of a closed input': [
      ({ runtime, good }) => {
        good.inputs[3].close();
        reducePartials(runtime, good.inputs);
      },
      'ERR_DATUM_CLOSED',
      "reducePartials: datum 'd' of inputs[3] is closed",
    ],
    'partials without a runtime': [
      ({ good }) => void reducePartials({} as never, good.inputs),
      'ERR_ARGUMENT_TYPE',
      'reducePartials: runtime must be a Runtime, not an object',
    ],
    'partials of anything': [
      ({ runtime }) => void reducePartials(runtime, [1] as never),
      'ERR_ARGUMENT_TYPE',
      'reducePartials: inputs[0] must be a datum, not 1',
    ],
  };

  it.each(Object.entries(cases))('%s', async (_, [wrong, code, text]) => {
    const error = await refused(wrong);
    expect(error.code).toBe(code);
    expect(error.message).toContain(text);
  });

  it('data of another runtime', async () => {
    await using other = await Runtime.create({ workers: 1 });
    const foreign = other.data(new Float64Array(2), { name: 'foreign', rows: 1 });
    const error = await refused(({ graph, good }) =>
      reduce(graph, { ...good, result: foreign }, 'sum'),
    );
    expect(error.code).toBe('ERR_FOREIGN_DATUM');
    expect(error.message).toContain("datum 'foreign' of result");
  });
});
