// METG(50 %) as in the Task Bench paper: the smallest task granularity at which half of the machine's best rate is
// reached. Granularity = elapsed x cores / tasks; efficiency = rate / best rate; interpolated between the two
// neighbouring points in log granularity. Width is 8 columns per core; insertion is included.
import { availableParallelism } from 'node:os';
import { Runtime } from '../index.js';
import { type BenchEntry, type Columns, log, makeColumns, median, runShape } from './harness.js';

const REPEATS = 5;
/** Kernel iterations per task, from almost nothing to tens of microseconds. */
export const GRID: readonly number[] = [
  4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 4096, 16384,
];
/** Seconds of one measurement. */
const POINT = 0.1;
/** Tasks whose runtime cost is below a thousandth of their time: iterations and steps. */
const LONG = { iterations: 65536, steps: 12 } as const;

export interface Rated {
  /** Seconds. */
  readonly granularity: number;
  readonly efficiency: number;
}

/** Rate of one core in iterations per second, with every core busy: long independent tasks, no runtime in sight. */
export async function bestRate(rt: Runtime, columns: Columns, cores: number): Promise<number> {
  const { iterations, steps } = LONG;
  const seconds = await runShape(rt, columns, 'independent', steps, iterations);
  return (steps * columns.even.length * iterations) / seconds / cores;
}

/** Steps of a measurement, for a rate of all cores together. */
export function stepsOf(iterations: number, width: number, rate: number): number {
  const wanted = Math.ceil((POINT * rate) / (iterations * width));
  return Math.max(40, Math.min(20_000, wanted));
}

/**
 * The speed of a core of a virtual machine changes from second to second. So each measurement stands between two of the best
 * rate, and its efficiency counts in the better one of these.
 */
export async function sweep(
  rt: Runtime,
  columns: Columns,
  measure: (steps: number, iterations: number) => Promise<number>,
  cores: number,
): Promise<Rated[]> {
  const width = columns.even.length;
  const points: Rated[] = [];
  let best = await bestRate(rt, columns, cores);
  for (const iterations of GRID) {
    const steps = stepsOf(iterations, width, best * cores);
    const tasks = steps * width;
    const seconds: number[] = [];
    const efficiencies: number[] = [];
    for (let i = 0; i < REPEATS; i++) {
      const elapsed = await measure(steps, iterations);
      const after = await bestRate(rt, columns, cores);
      seconds.push(elapsed);
      efficiencies.push((tasks * iterations) / elapsed / cores / Math.max(best, after));
      best = after;
    }
    points.push({
      granularity: (median(seconds) * cores) / tasks,
      efficiency: Math.min(1, median(efficiencies)),
    });
  }
  return points;
}

/** Granularity at which efficiency crosses one half, in seconds; NaN when it never does. */
export function metg(points: readonly Rated[]): number {
  for (let i = points.length - 1; i > 0; i--) {
    const a = points[i - 1];
    const b = points[i];
    if (a.efficiency < 0.5 && b.efficiency >= 0.5) {
      const f = (0.5 - a.efficiency) / (b.efficiency - a.efficiency);
      return Math.exp(Math.log(a.granularity) * (1 - f) + Math.log(b.granularity) * f);
    }
  }
  return points[0].efficiency >= 0.5 ? points[0].granularity : Number.NaN;
}

export function efficiencyAt(points: readonly Rated[], granularity: number): number {
  for (let i = 1; i < points.length; i++) {
    const a = points[i - 1];
    const b = points[i];
    if (b.granularity >= granularity) {
      const f = (granularity - a.granularity) / (b.granularity - a.granularity);
      return a.efficiency + Math.max(0, f) * (b.efficiency - a.efficiency);
    }
  }
  return points[points.length - 1].efficiency;
}

/** The entries of one sweep. */
function entriesOf(
  name: string,
  points: readonly Rated[],
  { cores, width }: { readonly cores: number; readonly width: number },
): BenchEntry[] {
  const value = metg(points) * 1e6;
  const params = { cores, width, efficiency: 0.5, repeats: REPEATS };
  const entries: BenchEntry[] = [{ name, value, unit: 'us', params }];
  const [at10, at20] = [10, 20].map((us) => {
    const share = efficiencyAt(points, us * 1e-6);
    const at = `${name}/efficiency-at-${us}us`;
    entries.push({ name: at, value: share, unit: 'share', params: { cores, width } });
    return (share * 100).toFixed(0);
  });
  log(`${name}: ${value.toFixed(2)} us; ${at10} and ${at20} % of all cores at 10 and 20 us tasks`);
  for (const p of points) {
    log(
      `    ${(p.granularity * 1e6).toFixed(2).padStart(9)} us  ${(p.efficiency * 100).toFixed(1)} %`,
    );
  }
  return entries;
}

/** `metg/stencil` is with default options, so the steps that its runs repeat are recognised; `metg/stencil/inserted` without that. */
export async function metgBenchmarks(): Promise<BenchEntry[]> {
  const cores = availableParallelism();
  const width = 8 * cores;
  const entries: BenchEntry[] = [];
  for (const plans of ['auto', 'off'] as const) {
    await using rt = await Runtime.create({ workers: cores, plans });
    const columns = makeColumns(rt, width, 0);
    await runShape(rt, columns, 'stencil', 5000);
    await runShape(rt, columns, 'independent', 400, 16384);
    for (const shape of ['independent', 'stencil'] as const) {
      const measure = (steps: number, iterations: number): Promise<number> =>
        runShape(rt, columns, shape, steps, iterations);
      const points = await sweep(rt, columns, measure, cores);
      const name = plans === 'auto' ? `metg/${shape}` : `metg/${shape}/inserted`;
      entries.push(...entriesOf(name, points, { cores, width }));
    }
  }
  return entries;
}
