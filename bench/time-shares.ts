// Where the time of simulated ranks goes: the engines, which are those of production, the simulated machine around them,
// and the collection of garbage. By samples of V8's profiler.
import { type Profiler, Session } from 'node:inspector';

/** Parts of the time; their sum is 1. */
export interface TimeShares {
  /** The scheduler, the stages, and the memory and network of the devices. */
  readonly engine: number;
  /** The simulated machine and network, and the program. */
  readonly simulation: number;
  readonly garbage: number;
}

const INTERVAL_US = 1000;
const SIMULATION = /\/(devices\/simulated|cli|bench|algorithms)\//;
const ENGINE = /\/(scheduler|stages|devices|trace)\//;

type Part = keyof TimeShares;

function partOf({
  functionName,
  url,
}: Profiler.Profile['nodes'][number]['callFrame']): Part | undefined {
  if (functionName === '(garbage collector)') return 'garbage';
  if (SIMULATION.test(url)) return 'simulation';
  return ENGINE.test(url) ? 'engine' : undefined;
}

/** The shares of the samples; functions of the language count as their callers. */
export function sharesOf({ nodes, samples = [] }: Profiler.Profile): TimeShares {
  const parents = new Map<number, number>();
  for (const { id, children = [] } of nodes) for (const child of children) parents.set(child, id);
  const own = new Map(nodes.map(({ id, callFrame }) => [id, partOf(callFrame)]));
  const counts: Record<Part, number> = { engine: 0, simulation: 0, garbage: 0 };
  for (const sample of samples) {
    let node: number | undefined = sample;
    while (node !== undefined && own.get(node) === undefined) node = parents.get(node);
    const part = node === undefined ? undefined : own.get(node);
    if (part !== undefined) counts[part]++;
  }
  const all = Math.max(1, counts.engine + counts.simulation + counts.garbage);
  return {
    engine: counts.engine / all,
    simulation: counts.simulation / all,
    garbage: counts.garbage / all,
  };
}

/** Runs `work` and returns its result, and the shares of its time. */
export async function profiled<T>(
  work: () => Promise<T>,
): Promise<{ result: T; shares: TimeShares }> {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.setSamplingInterval', { interval: INTERVAL_US });
  session.post('Profiler.start');
  const result = await work();
  const profile = await new Promise<Profiler.Profile>((resolve, reject) => {
    session.post('Profiler.stop', (error, answer) => {
      if (error === null) resolve(answer.profile);
      else reject(error);
    });
  });
  session.disconnect();
  return { result, shares: sharesOf(profile) };
}
