// Plans on simulated machines whose memory has bytes: a random program must give the same whether it is computed, inserted,
// played, or played from a file, whatever the delays of the machine.
import { setImmediate } from 'node:timers/promises';
import { Runtime } from '../../../scheduler/index.js';
import { describeThrown } from '../../../trace/thrown.js';
import type { NativePlay } from '../../backend.js';
import { type KernelCall, SimulatedBackend, type SimulatedKernel } from '../machine/backend.js';
import type { MachineDescription } from '../machine/machine.js';
import { Edges, type KernelAccess } from '../memory/edges.js';
import type { PlanProgram } from './plan-programs.js';
import {
  type After,
  computed,
  differenceOf,
  inserted,
  loaded,
  played,
  type Readings,
  recognised,
} from './plan-ways.js';

/** Turns of the event loop after which a program counts as one that hangs. */
const TURNS = 20_000;

const doubles = (memory: Uint8Array, offset: number, n: number): Float64Array =>
  new Float64Array(memory.buffer, memory.byteOffset + offset, n);

const add: SimulatedKernel = ({ memory, flows: [y, x], params: [n, a] }) => {
  const to = doubles(memory, y, n);
  const from = doubles(memory, x, n);
  for (let i = 0; i < n; i++) to[i] += a * from[i];
  return 0;
};

/** The kernels of plan programs, on bytes. */
export const planKernels: Readonly<
  Record<'add_f64' | 'axpyBody' | 'copy_bytes' | 'fail', SimulatedKernel>
> = {
  add_f64: add,
  axpyBody: add,
  copy_bytes: ({ memory, flows: [y, x], params: [bytes] }) => {
    memory.copyWithin(y, x, x + bytes);
    return 0;
  },
  fail: ({ params: [code] }) => code,
};

/** The machine of a plan program. */
export function planMachine(p: PlanProgram): MachineDescription {
  const link = { bandwidth: 1e9, latency: 1e-6 };
  return {
    name: 'plans',
    gpus: p.gpus,
    gpuMemory: p.gpuMemory,
    hostMemory: 2 ** 20,
    workers: p.workers,
    ...(p.scriptWorkers > 0 && { scriptWorkers: p.scriptWorkers }),
    computeStreams: p.computeStreams,
    h2d: link,
    d2h: link,
    d2d: link,
    engine: { command: 1e-7, wake: 1e-6, launch: 1e-6 },
    kernels: { '*': 1e-5 },
  };
}

const ofAdd = ({ flows: [y, x], params: [n] }: KernelCall): KernelAccess[] => [
  { offset: x, bytes: 8 * n, writes: false },
  { offset: y, bytes: 8 * n, writes: true },
];

/** What the kernels of plan programs use. */
const accesses: Readonly<Record<string, (call: KernelCall) => KernelAccess[]>> = {
  add_f64: ofAdd,
  axpyBody: ofAdd,
  copy_bytes: ({ flows: [y, x], params: [bytes] }) => [
    { offset: x, bytes, writes: false },
    { offset: y, bytes, writes: true },
  ],
  fail: () => [],
};

/** A backend that says when plays begin and end. */
class PlayingBackend extends SimulatedBackend {
  private readonly edges: Edges;

  constructor(options: ConstructorParameters<typeof SimulatedBackend>[0], edges: Edges) {
    super({ ...options, watcher: edges.watcher });
    this.edges = edges;
  }

  override play(play: NativePlay): void {
    this.edges.playBegins();
    super.play(play);
  }

  override playOutcome(): Float64Array {
    this.edges.playEnds();
    return super.playOutcome();
  }
}

/** Calls once so many kernels have run. */
class Countdown {
  private left = Number.POSITIVE_INFINITY;
  private then: () => void = () => {};

  start(kernels: number, then: () => void): void {
    this.left = kernels;
    this.then = then;
    if (kernels === 0) then();
  }

  count(): void {
    if (--this.left === 0) this.then();
  }
}

interface PlanRuntimeOptions {
  /** The machine delays what it can. */
  readonly seed?: number;
  /** File of a trace. */
  readonly trace?: string;
  /** Called before every kernel. */
  readonly counts?: () => void;
  /** Checks the order of all accesses. */
  readonly edges?: Edges;
  /** Whether runs are recognised. */
  readonly plans?: 'auto' | 'off';
}

/** A runtime on a simulated machine for the program. */
export function planRuntime(p: PlanProgram, options: PlanRuntimeOptions = {}): Runtime {
  return onMachine(p, options).runtime;
}

function onMachine(
  p: PlanProgram,
  options: PlanRuntimeOptions,
): { readonly runtime: Runtime; readonly backend: PlayingBackend } {
  const { seed, trace, counts, edges = new Edges(planMachine(p)), plans = 'off' } = options;
  const watched = ([name, kernel]: [string, SimulatedKernel]): [string, SimulatedKernel] => [
    name,
    (call) => {
      counts?.();
      edges.kernel = accesses[name](call);
      return kernel(call);
    },
  ];
  const delays = { spread: 3, holdBack: 0.3, stall: 0.1, stallNs: 20_000, spurious: 0.05 };
  const described = {
    machine: planMachine(p),
    ringRecords: 128,
    kernels: Object.fromEntries(Object.entries<SimulatedKernel>(planKernels).map(watched)),
    ...(seed === undefined ? {} : { adversary: { seed, ...delays } }),
  };
  const backend = new PlayingBackend(described, edges);
  const traced = trace === undefined ? {} : { trace };
  return {
    runtime: Runtime.over(backend, { window: p.window, checked: true, plans, ...traced }),
    backend,
  };
}

/** The result of a promise, or undefined if no turn of the event loop brings it any nearer. */
async function within<T>(promise: Promise<T>): Promise<T | undefined> {
  let isOver = false;
  const over = (): void => {
    isOver = true;
  };
  promise.then(over, over);
  for (let i = 0; i < TURNS && !isOver; i++) await setImmediate();
  return isOver ? promise : undefined;
}

/**
 * What is wrong with a program that is planned and played, with the delays of a seed or none: '' if nothing is. `outcome` gets what
 * became of each run that may be recognised (RunReport.recognition).
 */
export async function planProblem(
  program: PlanProgram,
  seed?: number,
  of: { readonly outcome?: (recognition: string) => void } = {},
): Promise<string> {
  const expected = await computed(program);
  const { rounds } = expected;
  // Files take their own time, in turns of the event loop, too.
  const ways: Readonly<
    Record<string, (r: Runtime, after: After) => Promise<() => Promise<Readings>>>
  > = {
    inserted: async (runtime) => () => inserted(program, rounds, runtime),
    played: async (runtime, after) => () => played(program, rounds, runtime, after),
    recognised: async (runtime, after) => () =>
      recognised(program, rounds, runtime, after, of.outcome),
    loaded: (runtime, after) => loaded(program, rounds, runtime, after, planRuntime(program)),
  };
  for (const [name, prepare] of Object.entries(ways)) {
    const countdown = new Countdown();
    const after: After = (n, then) => countdown.start(n, then);
    const edges = new Edges(planMachine(program));
    const { runtime, backend } = onMachine(program, {
      ...(seed === undefined ? {} : { seed }),
      counts: () => countdown.count(),
      edges,
      plans: name === 'recognised' ? 'auto' : 'off',
    });
    const way = await prepare(runtime, after);
    const problem = await problemOf(within(way()), (found) =>
      found === undefined
        ? `hangs\n${runtime.explain()}`
        : (edges.problems[0] ?? differenceOf(expected, found)),
    );
    if (problem !== '') {
      // What is left of the program must not go on in a state that may be wrong.
      backend.die();
      return `${name}: ${problem}`;
    }
    await runtime.close();
  }
  return '';
}

/** The problem of what a promise brings, or of its failure. */
async function problemOf<T>(promise: Promise<T>, look: (found: T) => string): Promise<string> {
  try {
    return look(await promise);
  } catch (error) {
    return describeThrown(error);
  }
}
