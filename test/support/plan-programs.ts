// Random programs that are planned and played, and the same programs inserted.
import {
  type Datum,
  type Flow,
  type Graph,
  type PlanGraph,
  type Runtime,
  read,
  readWrite,
  type TaskClass,
  task,
  write,
} from '../../index.js';

/** y += a x, on `n` elements. The order of additions changes the last bits. */
export const axpy: TaskClass<
  { y: Flow<'f64', 'readWrite'>; x: Flow<'f64', 'read'> },
  { n: 'i32'; a: 'f64' }
> = task({
  name: 'axpy',
  flows: { y: readWrite('f64'), x: read('f64') },
  params: { n: 'i32', a: 'f64' },
  kernel: 'add_f64',
});
/** y := x. */
export const copy: TaskClass<
  { y: Flow<'f64', 'write'>; x: Flow<'f64', 'read'> },
  { bytes: 'i32' }
> = task({
  name: 'copy',
  flows: { y: write('f64'), x: read('f64') },
  params: { bytes: 'i32' },
  kernel: 'copy_bytes',
});
/** Fails with a code. */
export const failing: TaskClass<{ y: Flow<'f64', 'readWrite'> }, { code: 'i32' }> = task({
  name: 'failing',
  flows: { y: readWrite('f64') },
  params: { code: 'i32' },
  kernel: 'fail',
});

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function random(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Step {
  readonly copies: boolean;
  readonly y: number;
  readonly x: number;
  readonly n: number;
  readonly a: number;
  readonly device: number | 'host' | undefined;
  readonly after: number | undefined;
}

/** A random program for a machine with that many GPUs. */
export class PlanProgram {
  readonly gpus: number;
  readonly workers: number;
  readonly computeStreams: number;
  /** Bytes per GPU: sometimes less than the data. */
  readonly gpuMemory: number;
  readonly window: number;
  readonly times: number;
  readonly rounds: number;
  /** Runs are inserted between the plays, without waiting. */
  readonly mixes: boolean;
  private readonly sizes: readonly number[];
  private readonly steps: readonly Step[];

  constructor(seed: number) {
    const next = random(seed);
    const int = (n: number): number => Math.floor(next() * n);
    this.gpus = int(3);
    this.workers = 1 + int(3);
    this.computeStreams = 1 + int(2);
    this.sizes = Array.from({ length: 2 + int(10) }, () => 64 * (1 + int(4)));
    const { sizes, gpus } = this;
    const all = sizes.reduce((sum, n) => sum + n * 8, 0);
    const least = 2 * Math.max(...sizes) * 8 + 1024;
    this.gpuMemory = int(2) ? 2 ** 20 : Math.max(least, Math.floor(all * (0.4 + next())));
    this.window = 2 ** (3 + int(8));
    this.times = 1 + int(6);
    this.rounds = 1 + int(3);
    this.mixes = int(2) === 1;
    this.steps = Array.from({ length: 1 + int(60) }, (_, i): Step => {
      const y = int(sizes.length);
      const other = int(sizes.length);
      const x = other === y ? (y + 1) % sizes.length : other;
      const host = int(gpus + 1) === 0 || gpus === 0;
      return {
        copies: int(4) === 0 && sizes[x] >= sizes[y],
        y,
        x,
        n: Math.min(sizes[x], sizes[y]),
        a: (int(200) - 100) / 1000,
        device: int(4) > 0 ? undefined : host ? 'host' : int(gpus),
        after: i > 0 && int(6) === 0 ? int(i) : undefined,
      };
    });
  }

  data(runtime: Runtime): Datum<'f64'>[] {
    return this.sizes.map((n, i) =>
      runtime.data(
        Float64Array.from({ length: n }, (_, k) => i + 1 + k / 64),
        { name: `d${i}` },
      ),
    );
  }

  insert(graph: Graph | PlanGraph, data: readonly Datum<'f64'>[]): void {
    const handles: ReturnType<Graph['insert']>[] = [];
    for (const { copies, y, x, n, a, device, after } of this.steps) {
      const before = after === undefined ? {} : { after: [handles[after]] };
      const options = device === undefined ? before : { ...before, device };
      const flows = { y: data[y], x: data[x] };
      handles.push(
        copies
          ? graph.insert(copy, { ...flows, bytes: this.sizes[y] * 8 }, options)
          : graph.insert(axpy, { ...flows, n, a }, options),
      );
    }
  }

  /** The values after all rounds: with plays, or with as many runs. */
  async result(runtime: Runtime, plays: boolean): Promise<string[]> {
    const data = this.data(runtime);
    const run = (): void => {
      runtime.run((graph) => this.insert(graph, data));
    };
    if (this.mixes) run();
    const plan = plays
      ? await runtime.plan((graph) => this.insert(graph, data), { name: 'random' })
      : undefined;
    const seen: Promise<Float64Array>[] = [];
    const played: Promise<unknown>[] = [];
    for (let round = 0; round < this.rounds; round++) {
      const play = plan?.run({ times: this.times });
      // Awaited below, perhaps after another failure.
      play?.catch(() => {});
      if (play !== undefined) played.push(play);
      else for (let i = 0; i < this.times; i++) run();
      if (!this.mixes) await Promise.all(played);
      else {
        seen.push(data[round % data.length].read());
        run();
      }
    }
    seen.push(...data.map((d) => d.read()));
    const values = await Promise.all(seen);
    await Promise.all(played);
    return values.map((v) => v.join());
  }
}
