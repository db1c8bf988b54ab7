// The share of all workers that is busy while steps are played, or recognised, against that of inserting them, on a simulated machine.
// The time is virtual: the figures depend on decisions only.
import type { QueueId } from '../devices/handles.js';
import { SimulatedBackend } from '../devices/simulated/machine/backend.js';
import { presets } from '../devices/simulated/machine/presets.js';
import { Runtime } from '../index.js';
import { type BenchEntry, log } from './harness.js';
import {
  chains,
  cholesky,
  independent,
  kernelFactors,
  type Program,
  stencil,
  unequal,
} from './repeated-steps.js';

/** Tasks of a run, and the least number of its steps. */
const TASKS = 4096;
const LEAST_STEPS = 8;

/** Shares of the time of all workers. */
interface Shares {
  readonly inserted: number;
  readonly played: number;
  readonly recognised: number;
}

/** Workers of a machine, and microseconds of a plain task. */
interface Machine {
  readonly workers: number;
  readonly us: number;
}

/** The shares of a program of which some tasks have been measured before. */
export async function sharesOf({ tasks, program }: Program, on: Machine): Promise<Shares> {
  const times = Math.max(LEAST_STEPS, Math.round(TASKS / tasks));
  const off = open(on, 'off');
  const step = program(off.rt);
  const insert = (rt: Runtime, of: typeof step): PromiseLike<unknown> =>
    rt.run((graph) => {
      for (let i = 0; i < times; i++) of(graph);
    });
  await insert(off.rt, step);
  const plan = await off.rt.plan(step);
  await plan.run({ times: 2 });
  const played = await off.share(() => plan.run({ times }));
  plan.close();
  await insert(off.rt, step);
  const inserted = await off.share(() => insert(off.rt, step));
  await off.rt.close();
  const auto = open(on, 'auto');
  const same = program(auto.rt);
  for (let i = 0; i < 2; i++) await insert(auto.rt, same);
  const recognised = await auto.share(() => insert(auto.rt, same));
  await auto.rt.close();
  return { inserted, played, recognised };
}

function open({ workers, us }: Machine, plans: 'auto' | 'off') {
  const hostKernels: Record<string, number> = {};
  for (const [name, factor] of Object.entries(kernelFactors))
    hostKernels[name] = factor * us * 1e-6;
  const engine = { command: 4e-7, wake: 5e-6, launch: 1e-7 };
  const machine = { ...presets['h200-1'], gpus: 0, workers, engine, hostKernels };
  const backend = new SimulatedBackend({ machine, story: false });
  const busy = (): number => {
    let sum = 0;
    for (let q = 0; q < workers; q++) sum += backend.busy(q as QueueId);
    return sum;
  };
  const share = async (run: () => PromiseLike<unknown>): Promise<number> => {
    const [start, before] = [backend.now(), busy()];
    await run();
    return (busy() - before) / (workers * (backend.now() - start));
  };
  return { rt: Runtime.over(backend, { plans }), share };
}

function* cases(): Iterable<{ name: string; program: Program; on: Machine }> {
  for (const us of [1, 5, 20, 200, 1000])
    for (const workers of [2, 3, 4]) {
      const programs: [string, Program][] = [];
      for (const n of [2, 3, 4, 5, 7, 8, 16, 33, 64]) {
        programs.push([`stencil of ${n}`, stencil(n)]);
        if (n < 4 || n === 8) continue;
        programs.push([`${n} tasks`, independent(n)], [`${n} chains`, chains(n, 8)]);
      }
      for (const n of [9, 16]) programs.push([`${n} unequal chains`, unequal(n, 4)]);
      for (const n of [8, 16]) programs.push([`cholesky of ${n}`, cholesky(n)]);
      for (const [shape, program] of programs) {
        const name = `${shape}, ${us} us, ${workers} workers`;
        yield { name, program, on: { workers, us } };
      }
    }
}

export async function balanceBenchmarks(): Promise<BenchEntry[]> {
  const ways = ['played', 'recognised'] as const;
  const ratios: Record<(typeof ways)[number], { name: string; ratio: number }[]> = {
    played: [],
    recognised: [],
  };
  for (const { name, program, on } of cases()) {
    const shares = await sharesOf(program, on);
    for (const way of ways) ratios[way].push({ name, ratio: shares[way] / shares.inserted });
    const [i, p, r] = [shares.inserted, shares.played, shares.recognised].map((s) => s.toFixed(3));
    log(`${name}: inserted ${i}, played ${p}, recognised ${r} of all workers`);
  }
  return ways.flatMap((way) => {
    const all = ratios[way].sort((a, b) => a.ratio - b.ratio);
    const name = `plan/balance/${way}`;
    const mean = all.reduce((sum, { ratio }) => sum + ratio, 0) / all.length;
    const params = { programs: all.length, worst: all[0].name };
    return [
      { name, value: mean, unit: 'ratio', params },
      { name: `${name}/worst`, value: all[0].ratio, unit: 'ratio', params },
    ];
  });
}
