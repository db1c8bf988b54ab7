// Wrong arguments of algorithms: each is a typed error that names the argument, and inserts nothing.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  allReduce,
  cholesky,
  choleskySolve,
  conjugateGradient,
  conjugateGradientData,
  dot,
  gemm,
  lu,
  luFactors,
  matrixPartials,
  qr,
  qrFactors,
  redistribute,
  reduce,
  reduceMatrix,
  stencil,
  taskBench,
  tile,
  tileClasses,
  triangularSolve,
} from '../../algorithms/index.js';
import { type Graph, HeadraceError, Runtime, TiledMatrix } from '../../index.js';

type Function_ = (...args: never[]) => unknown;

/** An algorithm with arguments that are right; the names are those that its errors use. */
interface Case {
  readonly call: Function_;
  readonly names: readonly string[];
  readonly good: readonly unknown[];
  /** Options of the case, by position: any of their values may be wrong, too. */
  readonly objects: readonly number[];
}

/** Everything that the cases below use. */
interface World {
  readonly runtime: Runtime;
  readonly cases: Readonly<Record<string, Case>>;
  readonly matrix: (options?: object, values?: boolean) => TiledMatrix;
}

/** The identity: its factors are the identity again, so a factorisation that is repeated never fails. */
const value = (values: Float64Array | Float32Array, row: number, column: number): void => {
  values.fill(0);
  if (row !== column) return;
  const rows = Math.floor(Math.sqrt(values.length));
  for (let i = 0; i < rows; i++) values[i * rows + i] = 1;
};

function world(runtime: Runtime): World {
  const matrix = (options: object = {}, values = true): TiledMatrix =>
    new TiledMatrix(
      runtime,
      'f64',
      { rows: 6, tile: 2, name: 'm', ...options },
      values ? value : undefined,
    );
  const square = (name: string): unknown =>
    runtime.data(new Float64Array([1, 0, 0, 1]), { rows: 2, name });
  const numbers = (n: number): unknown => runtime.data(new Float64Array(n));
  const outputs = [0, 1].map(() => [0, 1, 2].map(() => runtime.data('i32', 4)));
  const lists = {
    blocks: [numbers(4), numbers(4)],
    scratch: [numbers(4), numbers(4)],
    weights: numbers(3),
    beyond: numbers(2),
  };
  const [a, b, c] = ['a', 'b', 'c'].map(square);
  const cases: Record<string, Case> = {
    cholesky: {
      call: cholesky as Function_,
      names: ['graph', 'A', 'options'],
      good: [undefined, matrix(), { tilesPerGpu: 20 }],
      objects: [2],
    },
    gemm: {
      call: gemm as Function_,
      names: ['graph', 'A', 'B', 'C', 'options'],
      good: [undefined, matrix(), matrix(), matrix(), { alpha: 1, beta: 1, tilesPerGpu: 20 }],
      objects: [4],
    },
    choleskySolve: {
      call: choleskySolve as Function_,
      names: ['graph', 'A', 'B', 'options'],
      good: [undefined, matrix({ lower: true }), matrix(), { tilesPerGpu: 20 }],
      objects: [3],
    },
    triangularSolve: {
      call: triangularSolve as Function_,
      names: ['graph', 'A', 'B', 'options'],
      good: [
        undefined,
        matrix(),
        matrix(),
        { right: true, upper: true, trans: true, unit: false, alpha: 2, tilesPerGpu: 20 },
      ],
      objects: [3],
    },
    conjugateGradient: {
      // The run ends before the iteration does.
      call: ((...args: Parameters<typeof conjugateGradient>) =>
        void conjugateGradient(...args).catch(() => {})) as Function_,
      names: ['graph', 'A', 'B', 'X', 'data', 'options'],
      good: [
        undefined,
        matrix(),
        ...[0, 1].map(() => matrix({ columns: 1 })),
        conjugateGradientData(runtime, matrix(), matrix({ columns: 1 })),
        { tolerance: 0.5, limit: 3, every: 2 },
      ],
      objects: [5],
    },
    reduceMatrix: {
      call: reduceMatrix as Function_,
      names: ['graph', 'A', 'partials', 'result'],
      good: [undefined, matrix(), matrixPartials(runtime, matrix(), 'one'), numbers(1)],
      objects: [],
    },
    dot: {
      call: dot as Function_,
      names: ['graph', 'A', 'B', 'partials', 'result'],
      good: [undefined, matrix(), matrix(), matrixPartials(runtime, matrix(), 'dot'), numbers(1)],
      objects: [],
    },
    lu: {
      call: lu as Function_,
      names: ['graph', 'A', 'factors', 'options'],
      good: [undefined, matrix(), luFactors(runtime, matrix()), { tilesPerGpu: 20 }],
      objects: [3],
    },
    qr: {
      call: qr as Function_,
      names: ['graph', 'A', 'factors', 'options'],
      good: [undefined, matrix(), qrFactors(runtime, matrix()), { tilesPerGpu: 20 }],
      objects: [3],
    },
    redistribute: {
      call: redistribute as Function_,
      names: ['graph', 'A', 'B'],
      good: [undefined, matrix(), matrix({ tile: 3 })],
      objects: [],
    },
    stencil: {
      call: stencil as Function_,
      names: ['graph', 'data', 'steps', 'task class'],
      good: [undefined, lists, 2],
      objects: [1],
    },
    'task bench': {
      call: taskBench as Function_,
      names: ['graph', 'task bench', 'outputs', 'options'],
      good: [
        undefined,
        { pattern: 'nearest', width: 3, steps: 2, radix: 3, period: 3, fraction: 0.5 },
        outputs,
        { epoch: 1, iterations: 0, script: true },
      ],
      objects: [1, 3],
    },
    reduce: {
      call: reduce as Function_,
      names: ['graph', 'data', 'operation'],
      good: [
        undefined,
        { inputs: [1, 1, 1].map(numbers), partials: [numbers(1)], result: numbers(1) },
        'sum',
      ],
      objects: [1],
    },
    allReduce: {
      call: allReduce as Function_,
      names: ['graph', 'data', 'operation'],
      good: [
        undefined,
        { inputs: [numbers(2)], partials: [], results: [2, 2].map(numbers) },
        'min',
      ],
      objects: [1],
    },
    potrf: {
      call: tile.potrf as Function_,
      names: ['graph', 'a', 'options'],
      good: [undefined, a, { priority: 1 }],
      objects: [],
    },
    trsm: {
      call: tile.trsm as Function_,
      names: ['graph', 'a', 'b', 'options', 'options'],
      good: [
        undefined,
        a,
        b,
        { right: true, upper: false, trans: true, unit: false, alpha: 1 },
        { priority: 1 },
      ],
      objects: [3],
    },
    syrk: {
      call: tile.syrk as Function_,
      names: ['graph', 'a', 'c', 'options', 'options'],
      good: [undefined, a, c, { upper: false, trans: true, alpha: 1, beta: 1 }, { priority: 1 }],
      objects: [3],
    },
    'tile gemm': {
      call: tile.gemm as Function_,
      names: ['graph', 'a', 'b', 'c', 'options', 'options'],
      good: [
        undefined,
        a,
        b,
        c,
        { transA: false, transB: true, alpha: 1, beta: 1 },
        { priority: 1 },
      ],
      objects: [4],
    },
  };
  return { runtime, cases, matrix };
}

/** Calls `use` with the graph of a run that then is cancelled; tasks that are inserted meanwhile do not matter. */
async function inRun(use: (world_: World, graph: Graph) => void | Promise<void>): Promise<void> {
  const runtime = await Runtime.create({ workers: 1, gpus: 0, hostMemory: '4MiB' });
  try {
    const all = world(runtime);
    let failed: unknown;
    const run = runtime.run(async (graph) => {
      try {
        await use(all, graph);
      } catch (error) {
        failed = error;
      }
      throw new HeadraceError('ERR_ABORTED', 'the test is over');
    });
    await run.done.catch(() => {});
    if (failed !== undefined) throw failed;
  } finally {
    await runtime.close();
  }
}

const inserted = ({ runtime }: World): number => runtime.engine.tasks.next;

/** Calls with the arguments; returns the error, and sees that it is typed and that nothing was inserted. */
function refused(
  world_: World,
  { call }: Case,
  args: readonly unknown[],
): HeadraceError | undefined {
  const before = inserted(world_);
  try {
    call(...(args as never[]));
    return undefined;
  } catch (error) {
    if (!(error instanceof HeadraceError)) throw error;
    expect(inserted(world_), error.message).toBe(before);
    return error;
  }
}

const NAMES = [
  'cholesky',
  'choleskySolve',
  'conjugateGradient',
  'dot',
  'gemm',
  'lu',
  'qr',
  'redistribute',
  'stencil',
  'task bench',
  'reduce',
  'reduceMatrix',
  'allReduce',
  'potrf',
  'trsm',
  'syrk',
  'tile gemm',
  'triangularSolve',
] as const;

describe.each(NAMES)('%s', (name) => {
  it('accepts right arguments', () =>
    inRun((all, graph) => {
      const { call, good } = all.cases[name];
      const before = inserted(all);
      call(...([graph, ...good.slice(1)] as never[]));
      expect(inserted(all)).toBeGreaterThan(before);
    }));

  it('refuses any value in any position', () =>
    inRun((all, graph) => {
      const one = all.cases[name];
      const { good, names } = one;
      for (let at = 0; at < names.length; at++) {
        fc.assert(
          fc.property(fc.anything(), (wrong) => {
            // Left out, an argument may have a default.
            fc.pre(wrong !== undefined || at === 0);
            // So many steps are right, and take long.
            fc.pre(names[at] !== 'steps' || !Number.isInteger(wrong));
            const args: unknown[] = [graph, ...good.slice(1)];
            args[at] = wrong;
            const error = refused(all, one, args);
            // An object without anything in it has options.
            if (error !== undefined) expect(error.message).toContain(names[at]);
            else expect(names[at]).toBe('options');
          }),
          { numRuns: 50 },
        );
      }
    }));

  it('refuses any value in any option', () =>
    inRun((all, graph) => {
      const one = all.cases[name];
      for (const at of one.objects) {
        const options = one.good[at] as Record<string, unknown>;
        for (const option of Object.keys(options)) {
          fc.assert(
            fc.property(fc.anything(), (wrong) => {
              fc.pre(wrong !== undefined && typeof wrong !== typeof options[option]);
              const args: unknown[] = [graph, ...one.good.slice(1)];
              args[at] = { ...options, [option]: wrong };
              const error = refused(all, one, args);
              expect(error?.message).toContain(option);
            }),
            { numRuns: 30 },
          );
        }
      }
    }));
});

describe('matrices that do not fit', () => {
  const wrong: Readonly<Record<string, (m: World['matrix']) => TiledMatrix>> = {
    'other size': (m) => m({ rows: 4 }),
    'other tiles': (m) => m({ tile: 5 }),
    triangle: (m) => m({ lower: true }),
    'not written': (m) => m({}, false),
    'written but for the last tile': (m) => {
      const matrix = m();
      const empty = m({}, false);
      Object.assign(matrix, { at: (i: number, j: number) => (i + j === 4 ? empty : m()).at(i, j) });
      return matrix;
    },
    closed: (m) => {
      const matrix = m();
      matrix.close();
      return matrix;
    },
    'closed last tile': (m) => {
      const matrix = m();
      matrix.at(2, 2).close();
      return matrix;
    },
  };
  const isRight = [
    'cholesky other size',
    'cholesky other tiles',
    'cholesky triangle',
    'choleskySolve triangle',
    'redistribute other tiles',
  ];

  it.each(['cholesky', 'choleskySolve', 'gemm', 'redistribute', 'triangularSolve'])(
    '%s inserts nothing',
    (name) =>
      inRun((all, graph) => {
        const one = all.cases[name];
        for (const [what, make] of Object.entries(wrong)) {
          for (let at = 1; at < one.names.length - one.objects.length; at++) {
            const args: unknown[] = [graph, ...one.good.slice(1)];
            args[at] = make(all.matrix);
            const error = refused(all, one, args);
            const label = `${name} ${what}`;
            if (error === undefined) expect(isRight).toContain(label);
            else expect(error.code, `${label}: ${error.message}`).toMatch(/^ERR_(?!INTERNAL)/);
          }
        }
      }),
  );

  it('C may not be A, B may be A', () =>
    inRun((all, graph) => {
      const one = all.cases['gemm'];
      const m = all.matrix();
      expect(refused(all, one, [graph, m, all.matrix(), m])?.code).toBe('ERR_DUPLICATE_DATUM');
      expect(refused(all, one, [graph, m, m, all.matrix()])).toBeUndefined();
    }));

  it('other elements are named', () =>
    inRun((all, graph) => {
      const { runtime } = all;
      const bytes = new TiledMatrix(runtime, 'u8' as never, { rows: 6, tile: 2, name: 'bytes' });
      expect(refused(all, all.cases['cholesky'], [graph, bytes])?.message).toBe(
        "cholesky: A must have elements of f64 or f32, but 'bytes' has 'u8'",
      );
      const single = new TiledMatrix(runtime, 'f32', { rows: 6, tile: 2, name: 'single' }, value);
      expect(refused(all, all.cases['redistribute'], [graph, all.matrix(), single])?.message).toBe(
        "redistribute: A ('m') has elements of f64, but B ('single') has f32",
      );
      expect(() => tileClasses('constructor' as never)).toThrow('f64 or f32');
    }));
});
