// METG(50 %) as in the Task Bench paper: the smallest task granularity at which half of the machine's best rate is
// reached. Granularity = elapsed x cores / tasks; efficiency = rate / best rate; interpolated between the two
// neighbouring points in log granularity. Width is 8 columns per core; insertion is included.
import { availableParallelism } from 'node:os';
import { Runtime } from '../index.js';
import {
  type BenchEntry,
  type Columns,
  log,
  makeColumns,
  median,
  runShape,
  type Shape,
} from './harness.js';

const REPEATS = 3;
/** Kernel iterations per task, from almost nothing to about a millisecond. */
const GRID: readonly number[] = [
  4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 4096, 16384,
];

interface Point {
  readonly granularity: number;
  /** Iterations per second and core. */
  readonly rate: number;
}

interface Rated {
  readonly granularity: number;
  readonly efficiency: number;
}

/** Rate of one core in iterations per second, with every core busy: long independent tasks, no runtime in sight. */
async function bestRate(rt: Runtime, columns: Columns, cores: number): Promise<number> {
  const iterations = 65536;
  const rates: number[] = [];
  for (let i = 0; i < REPEATS; i++) {
    const steps = 24;
    const seconds = await runShape(rt, columns, 'independent', steps, iterations);
    rates.push((steps * columns.even.length * iterations) / seconds / cores);
  }
  return Math.max(...rates);
}

async function sweep(
  rt: Runtime,
  columns: Columns,
  shape: Shape,
  cores: number,
  rate: number,
): Promise<Point[]> {
  const width = columns.even.length;
  const points: Point[] = [];
  for (const iterations of GRID) {
    const target = 0.15 * rate * cores;
    const steps = Math.max(40, Math.min(20_000, Math.ceil(target / (iterations * width))));
    const seconds: number[] = [];
    for (let i = 0; i < REPEATS; i++)
      seconds.push(await runShape(rt, columns, shape, steps, iterations));
    const tasks = steps * width;
    const elapsed = median(seconds);
    points.push({
      granularity: (elapsed * cores) / tasks,
      rate: (tasks * iterations) / elapsed / cores,
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

function efficiencyAt(points: readonly Rated[], granularity: number): number {
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

export async function metgBenchmarks(): Promise<BenchEntry[]> {
  const cores = availableParallelism();
  const width = 8 * cores;
  const entries: BenchEntry[] = [];
  await using rt = await Runtime.create({ workers: cores });
  const columns = makeColumns(rt, width, 0);
  await runShape(rt, columns, 'stencil', 5000);
  await runShape(rt, columns, 'independent', 400, 16384);
  const long = await bestRate(rt, columns, cores);
  const sweeps = {
    independent: await sweep(rt, columns, 'independent', cores, long),
    stencil: await sweep(rt, columns, 'stencil', cores, long),
  };
  // The machine's best rate is the best of all points: no point may be more than 100 % efficient.
  const all = [...sweeps.independent, ...sweeps.stencil].map((p) => p.rate);
  const best = Math.max(long, ...all);
  for (const shape of ['independent', 'stencil'] as const) {
    const points = sweeps[shape].map((p) => ({
      granularity: p.granularity,
      efficiency: p.rate / best,
    }));
    const params = { cores, width, efficiency: 0.5, repeats: REPEATS };
    const value = metg(points) * 1e6;
    entries.push({ name: `metg/${shape}`, value, unit: 'us', params });
    const [at10, at20] = [10, 20].map((us) => {
      const share = efficiencyAt(points, us * 1e-6);
      const name = `metg/${shape}/efficiency-at-${us}us`;
      entries.push({ name, value: share, unit: 'share', params: { cores, width } });
      return (share * 100).toFixed(0);
    });
    log(
      `metg/${shape}: ${value.toFixed(2)} us; ${at10} and ${at20} % of all cores at 10 and 20 us tasks`,
    );
    for (const p of points) {
      log(
        `    ${(p.granularity * 1e6).toFixed(2).padStart(9)} us  ${(p.efficiency * 100).toFixed(1)} %`,
      );
    }
  }
  return entries;
}
