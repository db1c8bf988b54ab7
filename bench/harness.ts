// The common parts of the benchmarks: entries with stable keys, medians, and the two graph shapes of Task Bench that the
// overhead figures use (Slaughter et al., "Task Bench: A Parameterized Benchmark for Evaluating Parallel Runtime
// Performance", SC'20).
import {
  type Datum,
  type Flow,
  type Graph,
  type Runtime,
  read,
  type TaskClass,
  task,
  write,
} from '../index.js';

/** One figure. `params` are the parameters of its measurement. */
export interface BenchEntry {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly params: Readonly<Record<string, number | string | boolean>>;
}

/**
 * Runs between ranks before those that are measured. V8 compiles their code on the way, and the system finds a core for each thread: the
 * runs become shorter until about the thirtieth.
 */
export const WARM_RUNS = 40;

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const mid = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[mid] : (sorted[mid - 1] + sorted[mid]) / 2;
}

/** The shape of a graph: every step has one task per column. */
export type Shape = 'independent' | 'stencil';

const independentEmpty = task({ name: 'empty', flows: { out: write('f64') }, kernel: 'empty' });
type In = Flow<'f64', 'read'>;
export const stencilEmpty: TaskClass<
  { out: Flow<'f64', 'write'>; left: In; mid: In; right: In },
  Record<never, never>
> = task({
  name: 'stencil',
  flows: { out: write('f64'), left: read('f64'), mid: read('f64'), right: read('f64') },
  kernel: 'empty',
});
const independentWork = task({
  name: 'work',
  flows: { out: write('f64') },
  params: { iterations: 'i32' },
  kernel: 'compute_bound',
});
export const stencilWork: TaskClass<
  { out: Flow<'f64', 'write'>; left: In; mid: In; right: In },
  { iterations: 'i32' }
> = task({
  name: 'stencil-work',
  flows: { out: write('f64'), left: read('f64'), mid: read('f64'), right: read('f64') },
  params: { iterations: 'i32' },
  kernel: 'compute_bound',
});

/** A column's two buffers: 16 bytes each, as in Task Bench. */
export interface Columns {
  readonly even: readonly Datum<'f64'>[];
  readonly odd: readonly Datum<'f64'>[];
}

/** Columns in blocks over `ranks` ranks, each in turn on a device. */
export function makeColumns(rt: Runtime, width: number, devices: number, ranks = 1): Columns {
  const make = (parity: string): Datum<'f64'>[] =>
    Array.from({ length: width }, (_, p) =>
      rt.data(new Float64Array(2), {
        name: `${parity}(${p})`,
        rank: Math.floor((p * ranks) / width),
        ...(devices > 0 ? { device: p % devices } : {}),
      }),
    );
  return { even: make('even'), odd: make('odd') };
}

/** Inserts `steps` steps, with empty kernels or kernels of that many iterations. */
export function insertShape(
  graph: Graph,
  columns: Columns,
  shape: Shape,
  steps: number,
  iterations?: number,
  pruned = false,
): void {
  const width = columns.even.length;
  let from = columns.even;
  let to = columns.odd;
  for (let t = 0; t < steps; t++) {
    for (let p = 0; p < width; p++) {
      const out = to[p];
      if (shape === 'independent') {
        if (pruned && graph.skips(out)) continue;
        if (iterations === undefined) graph.insert(independentEmpty, { out });
        else graph.insert(independentWork, { out, iterations });
        continue;
      }
      const left = from[p === 0 ? 0 : p - 1];
      const mid = from[p];
      const right = from[p === width - 1 ? p : p + 1];
      if (pruned && graph.skips(out, left, mid, right)) continue;
      if (iterations === undefined) graph.insert(stencilEmpty, { out, left, mid, right });
      else graph.insert(stencilWork, { out, left, mid, right, iterations });
    }
    const swap = from;
    from = to;
    to = swap;
  }
}

/** Runs `steps` steps; returns seconds from the first insertion to the last completion. */
export async function runShape(
  rt: Runtime,
  columns: Columns,
  shape: Shape,
  steps: number,
  iterations?: number,
): Promise<number> {
  // A rank inserts its own columns and the tasks that read or write them.
  const pruned = rt.ranks > 1;
  const start = performance.now();
  await rt.run((graph) => insertShape(graph, columns, shape, steps, iterations, pruned), {
    pruned,
  });
  return (performance.now() - start) / 1e3;
}

export function log(text: string): void {
  process.stderr.write(`${text}\n`);
}
