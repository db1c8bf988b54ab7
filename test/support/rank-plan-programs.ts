// Random programs for plans on several simulated ranks, and what each rank sees of them.
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { planKernels } from '../../devices/simulated/cases/plan-cases.js';
import { axpy } from '../../devices/simulated/cases/plan-programs.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import type { MachineDescription } from '../../devices/simulated/machine/machine.js';
import { World } from '../../devices/simulated/machine/world.js';
import { SimulatedNetwork } from '../../devices/simulated/network/network.js';
import {
  type Datum,
  type Flow,
  type Graph,
  type Plan,
  type PlanGraph,
  Runtime,
  readWrite,
  slot,
  type TaskClass,
  task,
} from '../../scheduler/index.js';

/** Fails with its code, unless that is 0. */
export const check: TaskClass<{ y: Flow<'f64', 'readWrite'> }, { code: 'i32' }> = task({
  name: 'check',
  flows: { y: readWrite('f64') },
  params: { code: 'i32' },
  kernel: 'fail',
});

function random(seed: number): (n: number) => number {
  let state = Math.imul(seed, 0x9e3779b1) | 1;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return Math.floor(((state >>> 0) / 2 ** 32) * n);
  };
}

type Share = readonly [number, number];

interface RankProgram {
  readonly ranks: number;
  readonly gpus: number;
  readonly lanes: number;
  readonly lengths: readonly number[];
  readonly owners: readonly number[];
  readonly steps: readonly {
    readonly y: number;
    readonly x: number;
    readonly a: number;
    readonly device: number;
    /** Beginnings and ends of parts, as shares of the data; undefined for whole data. */
    readonly parts?: readonly [Share, Share];
  }[];
  /** Place of the task that may fail. */
  readonly failing: number;
  readonly times: number;
  /** The condition of a play: the first element of a datum that is written, which grows, is below the limit. */
  readonly condition: { readonly d: number; readonly below: number; readonly every: number };
}

/** `parts`: half of the tasks use parts of their data. */
export function programOf(seed: number, parts = false): RankProgram {
  const draw = random(seed);
  const ranks = 2 + draw(4);
  const gpus = draw(2);
  const count = 2 + draw(5);
  const steps: RankProgram['steps'][number][] = Array.from({ length: 2 + draw(16) }, () => {
    const y = draw(count);
    return { y, x: (y + 1 + draw(count - 1)) % count, a: 0.25 + draw(4) / 8, device: draw(3) };
  });
  const share = (): Share => [draw(8) / 8, (1 + draw(8)) / 8];
  if (parts)
    for (const [n, step] of steps.entries())
      if (draw(2) === 0) steps[n] = { ...step, parts: [share(), share()] };
  return {
    ...{ ranks, gpus, steps },
    lanes: [2, 3, 8, 32][draw(4)],
    // Both short and long ones.
    lengths: Array.from({ length: count }, () => [1, 8, 200][draw(3)]),
    owners: Array.from({ length: count }, () => draw(ranks)),
    failing: draw(steps.length),
    times: 1 + draw(6),
    condition: {
      d: steps[draw(steps.length)].y,
      below: 10 ** (1 + draw(8)),
      every: 1 + draw(4),
    },
  };
}

const link = { bandwidth: 1e9, latency: 1e-6 };
function machineOf({ gpus, lanes }: RankProgram): MachineDescription {
  return {
    ...{ name: 'ranks', gpus, lanes, workers: 2, computeStreams: 2 },
    ...{ gpuMemory: 2 ** 14, hostMemory: 2 ** 20, h2d: link, d2h: link, d2d: link, network: link },
    engine: { command: 1e-7, wake: 1e-6, launch: 1e-6 },
    kernels: { '*': 1e-5 },
  };
}

function runtimesOf(p: RankProgram, seed: number): Runtime[] {
  const world = new World();
  const delays = { spread: 3, holdBack: 0.3, stall: 0.1, stallNs: 20_000, spurious: 0.05 };
  const machine = machineOf(p);
  const backends = Array.from(
    { length: p.ranks },
    (_, rank) =>
      new SimulatedBackend({
        ...{ machine, world, ringRecords: 128, kernels: { ...planKernels, empty: () => 0 } },
        adversary: { seed: seed * 100 + rank, ...delays },
      }),
  );
  const { ports } = new SimulatedNetwork(world, backends, {
    link,
    adversary: backends[0].adversary,
  });
  const options = { workers: 2, lanes: p.lanes, inlineBytes: 256, checked: true, treeFrom: 2 };
  return backends.map((backend, rank) => Runtime.over(backend, options, ports[rank]));
}

/** The file of a rank. */
const partIn = (folder: string, rank: number): string => path.join(folder, `part ${rank}.plan`);

/** The tasks are inserted or planned; the plan is saved into a folder, or is one that was saved there. */
type Mode = 'inserted' | 'planned' | { readonly saves: string } | { readonly loads: string };

async function planOf(
  mode: Mode,
  runtime: Runtime,
  data: readonly Datum[],
  insert: (graph: PlanGraph) => void,
): Promise<Plan | undefined> {
  if (mode === 'inserted') return undefined;
  if (typeof mode !== 'string' && 'loads' in mode)
    return runtime.loadPlan(partIn(mode.loads, runtime.rank), { data, classes: [check, axpy] });
  const plan = await runtime.plan(insert);
  if (typeof mode !== 'string') await plan.save(partIn(mode.saves, runtime.rank));
  return plan;
}

/** The datum, or the part of it. */
function viewOf(datum: Datum<'f64'>, share: Share | undefined): Datum<'f64'> {
  if (share === undefined) return datum;
  const from = Math.min(datum.length - 1, Math.floor(share[0] * datum.length));
  return datum.part(from, Math.max(1, Math.floor(share[1] * (datum.length - from))));
}

/** What one rank sees: the values after each part of the program, and the error of the play that fails. */
async function onRank(p: RankProgram, runtime: Runtime, mode: Mode): Promise<unknown[]> {
  const { lengths, owners, steps, condition } = p;
  const data = lengths.map((length, d) =>
    runtime.data(new Float64Array(length).fill(d + 1), { name: `d${d}`, rank: owners[d] }),
  );
  const seen: unknown[] = [];
  const look = async (of: readonly Datum<'f64'>[]): Promise<void> => {
    const values = await Promise.allSettled(of.map((datum) => datum.read()));
    seen.push(values.map((v) => (v.status === 'fulfilled' ? [...v.value] : 'none')));
  };
  type Insert = (graph: Graph, code: never) => void;
  const insert = ((graph: Graph, code: number): void => {
    for (const [n, { y, x, a, device, parts }] of steps.entries()) {
      const [yPart, xPart] = [viewOf(data[y], parts?.[0]), viewOf(data[x], parts?.[1])];
      const to = { y: yPart, x: xPart, n: Math.min(yPart.length, xPart.length), a };
      const where = p.gpus === 0 || device === 2 ? {} : { device: device === 0 ? 'host' : 0 };
      graph.insert(axpy, to, where as { device: number });
      if (n === p.failing) graph.insert(check, { y: data[y], code });
    }
  }) as Insert;
  const plan = await planOf(mode, runtime, data, (graph) =>
    insert(graph as never, slot('code') as never),
  );
  const play = async (times: number, code: (k: number) => number): Promise<void> => {
    if (plan !== undefined) await plan.run({ times, values: { code } });
    else
      await runtime.run((graph) => {
        for (let k = 0; k < times; k++) insert(graph, code(k) as never);
      });
  };
  // Without an iteration all data stay where they are.
  await play(0, () => 0);
  await look(data);
  await play(p.times, () => 0);
  await look(data);
  await runtime.run((graph) => insert(graph, 0 as never));
  await play(p.times + 40, () => 0);
  await look(data);
  const error = await play(30, (k) => (k === 3 ? 5 : 0)).then(
    () => undefined,
    (thrown: { code: string }) => thrown.code,
  );
  seen.push(error);
  // Without an iteration nothing is read, and nothing moves.
  await play(0, () => 0);
  for (const [d, datum] of data.entries()) datum.set(new Float64Array(lengths[d]).fill(d + 2));
  await play(2, () => 0);
  await look(data);
  /** Plays until the condition no longer holds; returns the iterations. */
  const playWhile = async (times: number, below: number): Promise<number> => {
    const { d, every } = condition;
    if (plan !== undefined) {
      const options = { times, values: { code: 0 }, while: { datum: data[d], below, every } };
      return (await plan.run(options)).iterations;
    }
    for (let k = 1; k <= times; k++) {
      await runtime.run((graph) => insert(graph, 0 as never));
      if (k % every === 0 && !((await data[d].read())[0] < below)) return k;
    }
    return times;
  };
  for (const [d, datum] of data.entries()) datum.set(new Float64Array(lengths[d]).fill(d + 1));
  for (const [times, more] of [
    [30, 1],
    [3, 1e3],
    [30, 1e9],
  ]) {
    seen.push(await playWhile(times, condition.below * more));
    await look(data);
  }
  // A failure in a play without a limit.
  const code = (k: number): number => (k === 3 ? 5 : 0);
  const endless = { values: { code }, while: { datum: data[condition.d], below: 1e300 } };
  const failed = plan === undefined ? play(5, code) : plan.run(endless);
  seen.push(
    await failed.then(
      () => '',
      (thrown: { code: string }) => thrown.code,
    ),
  );
  for (const [d, datum] of data.entries()) datum.set(new Float64Array(lengths[d]).fill(d + 1));
  seen.push(await playWhile(5, condition.below));
  await look(data);
  plan?.close();
  await runtime.close();
  return seen;
}

/** What the ranks see; undefined if they do not end. */
export async function outcome(
  p: RankProgram,
  seed: number,
  mode: Mode,
): Promise<unknown[] | undefined> {
  let found: unknown[] | undefined;
  let error: unknown;
  Promise.all(runtimesOf(p, seed).map((runtime) => onRank(p, runtime, mode))).then(
    (seen) => {
      found = seen;
    },
    (thrown: unknown) => {
      error = thrown;
    },
  );
  for (let i = 0; i < 50_000 && found === undefined && error === undefined; i++)
    await setImmediate();
  if (error !== undefined) throw error;
  return found;
}
