// Programs and machines of synthetic traces: a random graph and tiled Cholesky. Deterministic by seed.

/** A task of a synthetic program: data by number, read ones first. It writes the last datum. */
export interface SyntheticTask {
  readonly taskClass: string;
  readonly parameters: readonly number[];
  readonly reads: readonly number[];
  readonly writes: number;
  /** Kernel time in nanoseconds. */
  readonly nanoseconds: number;
  /** Rank and device within the rank (0 = host). */
  readonly rank: number;
  readonly device: number;
}

/** A synthetic program: data sizes in bytes (the datum's home is rank 0) and tasks in insertion order. */
export interface SyntheticProgram {
  readonly name: string;
  readonly data: readonly {
    readonly name: string;
    readonly i: number;
    readonly j: number;
    readonly bytes: number;
  }[];
  readonly tasks: readonly SyntheticTask[];
}

/** The machine a program runs on; every rank is alike. */
export interface SyntheticMachine {
  readonly ranks: number;
  readonly gpus: number;
  readonly workers: number;
  /** Bytes per GPU. */
  readonly gpuBytes: number;
  /** Bytes per nanosecond between host and GPU, between GPUs, between ranks. */
  readonly hostBandwidth: number;
  readonly peerBandwidth: number;
  readonly networkBandwidth: number;
  /** Nanoseconds between two insertions. */
  readonly insertEvery: number;
  /** Tasks in the window; insertion waits when it is full. */
  readonly window: number;
}

export const smallMachine: SyntheticMachine = {
  ranks: 1,
  gpus: 2,
  workers: 2,
  gpuBytes: 24 * 2 ** 20,
  hostBandwidth: 12,
  peerBandwidth: 24,
  networkBandwidth: 6,
  insertEvery: 500,
  window: 4096,
};

/** Mulberry32: a small seeded random number generator, uniform in [0, 1). */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** A random graph: each task reads up to three of the last `reach` data and writes a new or an old one. */
export function randomProgram(
  tasks: number,
  seed: number,
  machine: SyntheticMachine,
  reach = 64,
): SyntheticProgram {
  const next = random(seed);
  const classes = ['assemble', 'factor', 'update', 'solve', 'norm'];
  const data: { name: string; i: number; j: number; bytes: number }[] = [];
  const list: SyntheticTask[] = [];
  const maximum = Math.max(8, Math.min(tasks, 4096));
  for (let t = 0; t < tasks; t++) {
    const reads: number[] = [];
    const wanted = Math.floor(next() * 4);
    for (let r = 0; r < wanted && data.length > 0; r++) {
      const datum = data.length - 1 - Math.floor(next() * Math.min(reach, data.length));
      if (!reads.includes(datum)) reads.push(datum);
    }
    let writes = data.length;
    if (data.length >= maximum || (data.length > 0 && next() < 0.3)) {
      writes = data.length - 1 - Math.floor(next() * Math.min(reach, data.length));
    } else {
      data.push({ name: 'v', i: data.length, j: 0, bytes: 4096 * (1 + Math.floor(next() * 16)) });
    }
    const kind = Math.floor(next() * classes.length);
    list.push({
      taskClass: classes[kind],
      parameters: [t],
      reads: reads.filter((datum) => datum !== writes),
      writes,
      nanoseconds: Math.round((1 + kind) * 2000 * (0.5 + next())),
      rank: Math.floor(next() * machine.ranks),
      device: machine.gpus === 0 || next() < 0.2 ? 0 : 1 + Math.floor(next() * machine.gpus),
    });
  }
  return { name: 'random', data, tasks: list };
}

/** Tiled Cholesky of `tiles` x `tiles` tiles of `tileBytes`, two-dimensional cyclic over ranks and GPUs. */
export function choleskyProgram(
  tiles: number,
  tileBytes: number,
  machine: SyntheticMachine,
): SyntheticProgram {
  const data: { name: string; i: number; j: number; bytes: number }[] = [];
  const at = (i: number, j: number): number => (i * (i + 1)) / 2 + j;
  for (let i = 0; i < tiles; i++) {
    for (let j = 0; j <= i; j++) data.push({ name: 'A', i, j, bytes: tileBytes });
  }
  const next = random(7);
  const tasks: SyntheticTask[] = [];
  const unit = 40_000;
  const add = (
    taskClass: string,
    parameters: number[],
    reads: number[],
    writes: number,
    cost: number,
  ): void => {
    const { i, j } = data[writes];
    const devices = Math.max(1, machine.gpus);
    tasks.push({
      taskClass,
      parameters,
      reads,
      writes,
      nanoseconds: Math.round(unit * cost * (0.95 + 0.1 * next())),
      rank: (i + j) % machine.ranks,
      device: machine.gpus === 0 ? 0 : 1 + ((Math.floor(i / machine.ranks) + j * 3) % devices),
    });
  };
  for (let k = 0; k < tiles; k++) {
    add('potrf', [k], [], at(k, k), 1.6);
    for (let i = k + 1; i < tiles; i++) add('trsm', [i, k], [at(k, k)], at(i, k), 1.2);
    for (let i = k + 1; i < tiles; i++) {
      add('syrk', [i, k], [at(i, k)], at(i, i), 1);
      for (let j = k + 1; j < i; j++) add('gemm', [i, j, k], [at(i, k), at(j, k)], at(i, j), 2);
    }
  }
  return { name: 'cholesky', data, tasks };
}
