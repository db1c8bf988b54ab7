// Plays the random programs of front-end-program.ts and repeating-program.ts on simulated ranks, whose memory has bytes and whose machines delay what they can,
// and compares every value that the program sees with that of plain arrays.
import { setImmediate } from 'node:timers/promises';
import {
  type Datum,
  type Graph,
  HeadraceError,
  type RunReport,
  Runtime,
  type TaskHandle,
} from '../../../scheduler/index.js';
import { describeThrown } from '../../../trace/thrown.js';
import { SimulatedBackend } from '../machine/backend.js';
import type { MachineDescription } from '../machine/machine.js';
import { World } from '../machine/world.js';
import { SimulatedNetwork } from '../network/network.js';
import { FrontEndFamilies, frontEndKernels, insertStep } from './front-end-classes.js';
import {
  FrontEndProgram,
  isBad,
  kindsOf,
  type Round,
  type Step,
  type TaskStep,
} from './front-end-program.js';
import { Reference } from './front-end-reference.js';
import { differencesOnRanks } from './random-graphs.js';
import { differencesOfRepeating } from './repeating-graphs.js';
import { RepeatingProgram } from './repeating-program.js';

/** Turns of the event loop without an end after which a program counts as one that hangs. */
const TURNS = 20_000;
const LINK = { bandwidth: 1e9, latency: 1e-6 };
const DELAYS = { spread: 3, holdBack: 0.3, stall: 0.1, stallNs: 20_000, spurious: 0.05 };
/** One of so many programs repeats its runs, and is played with recognition. */
const REPEATS_EVERY = 5;
/** One of so many programs is not checked, if it is played with recognition. */
const UNCHECKED_EVERY = 10;
/** How a run may fail, and how the read of a datum that it leaves without a value. */
const OF_RUNS = ['ERR_TASK_FAILED', 'ERR_PEER_FAILED', 'ERR_ABORTED', 'ERR_DATUM_POISONED'];
const OF_READS = ['ERR_DATUM_POISONED', 'ERR_PEER_FAILED', 'ERR_NEVER_WRITTEN'];

function machineOf(p: FrontEndProgram): MachineDescription {
  const { gpus, gpuMemory, workers, scriptWorkers, lanes } = p;
  return {
    name: 'front end',
    ...{ gpus, gpuMemory, workers, scriptWorkers, lanes, hostMemory: 2 ** 20 },
    ...{ h2d: LINK, d2h: LINK, d2d: LINK, network: LINK },
    engine: { command: 1e-7, wake: 1e-6, launch: 1e-6 },
    kernels: { '*': 1e-5 },
  };
}

/** A call on a datum without a value. */
function expected(error: unknown): void {
  if (!(error instanceof HeadraceError) || !OF_READS.includes(error.code)) throw error;
}

/** One rank that plays a program. */
class FrontEndRank {
  private readonly program: FrontEndProgram;
  private readonly seed: number;
  private readonly runtime: Runtime;
  private readonly families: FrontEndFamilies;
  private readonly data: Datum<'f64'>[];
  private reference: Reference;
  /** Steps of the run under way that the reference has done. */
  private stepped = 0;
  /** Runs of which something was played: all of it, or stretches. */
  readonly played = { runs: 0, stretches: 0 };

  constructor(program: FrontEndProgram, runtime: Runtime, seed: number) {
    this.program = program;
    this.seed = seed;
    this.runtime = runtime;
    this.families = new FrontEndFamilies(program);
    this.reference = new Reference(program.owners.map((_, d) => program.start(d, 0)));
    this.data = program.owners.map((rank, d) =>
      runtime.data(program.start(d, 0), { name: `d${d}`, rank }),
    );
  }

  async play(): Promise<void> {
    const { program, runtime, seed } = this;
    const open: Promise<unknown>[] = [];
    for (const [turn, round] of program.rounds.entries()) {
      const { values } = this.reference;
      this.reference = new Reference(values);
      this.stepped = 0;
      if (round.plays !== undefined) {
        await this.playPlan(round, round.plays);
        continue;
      }
      if (!round.isAlone) {
        // Its tasks are inserted before the next run begins.
        const run = runtime.run((graph) => this.insertAll(graph, round));
        open.push(run.done.then((report) => this.ended(report)));
        continue;
      }
      // Runs that are open at the same time fail together.
      if (isBad(round)) await Promise.all(open.splice(0));
      const stop = new AbortController();
      const { signal } = stop;
      const run = runtime.run((graph) => this.insert(graph, round, turn, stop), { signal });
      await this.over(run.done, round, turn);
      if (round.graph === undefined) continue;
      await Promise.all(open.splice(0));
      // A synchronous walk through a full window would keep the programs of other simulated ranks, which share its thread, from going on.
      const [wrong] =
        round.graph % 3 === 0 && runtime.ranks === 1
          ? await differencesOfRepeating(runtime, round.graph, program.length)
          : await differencesOnRanks(runtime, round.graph, [false, true], () => true);
      if (wrong !== undefined) throw new Error(`parameterised graph: ${wrong}`);
    }
    await Promise.all(open);
    if (!runtime.engine.checked && runtime.ranks === 1) {
      const [wrong] = await differencesOfRepeating(runtime, seed, program.length);
      if (wrong !== undefined) throw new Error(`graph that repeats: ${wrong}`);
    }
    for (const d of this.data.keys()) await this.look(d, 'at the end');
    for (const datum of this.data) datum.close();
    await runtime.engine.quiet();
    for (const { name, used, pinned } of runtime.memory())
      if (used + pinned > 0)
        throw new Error(`${name}: ${used} bytes are in use at the end, ${pinned} pinned`);
  }

  /** Plans the tasks of a round, and plays them in turn with a run that inserts them. */
  private async playPlan(round: Round, plays: readonly number[]): Promise<void> {
    const { runtime, reference } = this;
    const plan = await runtime.plan((graph) => this.insertTasks(graph, round));
    for (const times of plays) {
      const played = plan.run({ times });
      for (let i = 0; i < times; i++) for (const step of round.steps) reference.step(step);
      const run = runtime.run((graph) => this.insertAll(graph, round));
      await Promise.all([played, run.done.then((report) => this.ended(report))]);
    }
    plan.close();
  }

  private ended({ recognition }: RunReport): void {
    if (recognition === 'played') this.played.runs++;
    else if (recognition?.startsWith('played') === true) this.played.stretches++;
  }

  /** The program function of a run that does not wait. */
  private insertAll(graph: Graph, round: Round): void {
    this.insertTasks(graph, round);
    for (const step of round.steps) this.reference.step(step);
  }

  private insertTasks(graph: Pick<Graph, 'insert'>, { steps }: Round): void {
    const handles: (TaskHandle | undefined)[] = [];
    for (const step of steps)
      if ('plus' in step) handles.push(insertStep(graph, this.families, step, this.data, handles));
  }

  /** The program function of a run that may wait and fail. */
  private async insert(
    graph: Graph,
    round: Round,
    turn: number,
    stop: AbortController,
  ): Promise<void> {
    const { program, runtime, reference } = this;
    const handles: (TaskHandle | undefined)[] = [];
    const waitsAt = program instanceof RepeatingProgram ? this.waitsAt(turn) : -1;
    for (const [i, step] of round.steps.entries()) {
      if (i === waitsAt) await setImmediate();
      else if (program.ranks > 1 && waitsAt === -1) await graph.space();
      if (round.aborts?.at === i && round.aborts.rank === runtime.rank) stop.abort();
      if ('plus' in step) handles.push(insertStep(graph, this.families, step, this.data, handles));
      else {
        const isOver = await this.wait(graph, step, isBad(round));
        if (isOver) return;
        handles.push(undefined);
      }
      reference.step(step);
      this.stepped = i + 1;
    }
  }

  /** The step before which this rank waits, unlike the others, in a run that all would play. */
  private waitsAt(turn: number): number {
    const { program, runtime } = this;
    const isApart = program.ranks > 1 && turn % 5 === 4 && turn % program.ranks === runtime.rank;
    return isApart ? (7 * turn) % 48 : Number.POSITIVE_INFINITY;
  }

  /** The program waits; true: it cannot go on, because its run fails. */
  private async wait(
    graph: Graph,
    step: Exclude<Step, TaskStep>,
    mayFail: boolean,
  ): Promise<boolean> {
    const { data, reference, families } = this;
    try {
      if (step.kind === 'space') await graph.space();
      else if (step.kind === 'read') await this.look(step.d, 'in the middle');
      else if (step.kind === 'readPart') await this.lookAtPart(step);
      else if (step.kind === 'closePart') data[step.d].part(step.from, step.count).close();
      else if (step.kind === 'setPart')
        await data[step.d]
          .part(step.from, step.count)
          .set(new Float64Array(step.count).fill(step.value));
      else {
        const seen = await graph.value(data[step.d]);
        const [expected] = reference.values[step.d];
        if (seen !== expected || reference.lost.has(step.d))
          throw new Error(`d${step.d} is ${seen} in the middle, not ${expected}`);
        insertStep(graph, families, seen % 2 === 1 ? step.odd : step.even, data, []);
      }
      return false;
    } catch (error) {
      if (mayFail && error instanceof HeadraceError) return true;
      throw error;
    }
  }

  /** Awaits a run. After one that has failed every datum gets a new value. */
  private async over(done: Promise<RunReport>, round: Round, turn: number): Promise<void> {
    const { reference, data, program } = this;
    const error = await done.then(
      (report) => this.ended(report),
      (cause: unknown) => cause,
    );
    if (!isBad(round)) {
      if (error !== undefined) throw error;
      return;
    }
    if (!(error instanceof HeadraceError) || !OF_RUNS.includes(error.code))
      throw error ?? new Error(`run ${turn} was to fail`);
    for (const step of round.steps.slice(this.stepped)) reference.step(step);
    for (const [d, datum] of data.entries()) {
      const mayRestore = (turn + d) % 2 === 1 && !program.isPartable(d);
      if (mayRestore) await datum.restore().catch(expected);
      const seen = await datum.read().then(
        (value) => value.join(),
        (cause: unknown) => cause,
      );
      const isRight =
        typeof seen === 'string'
          ? reference.mayBe(d, seen)
          : seen instanceof HeadraceError && OF_READS.includes(seen.code);
      if (!isRight) throw new Error(`d${d} is ${seen} after a run that failed`);
      reference.lost.delete(d);
      reference.values[d] = program.start(d, turn + 1);
      await datum.set(reference.values[d]);
    }
  }

  /** Reads a part and compares. */
  private async lookAtPart({ d, from, count }: Extract<Step, { kind: 'readPart' }>): Promise<void> {
    const { data, reference } = this;
    const seen = (await data[d].part(from, count).read()).join();
    const expected = reference.values[d].slice(from, from + count).join();
    if (seen !== expected || reference.lacks(d, from, count))
      throw new Error(`d${d} is ${seen} from ${from} on, not ${expected}`);
  }

  /** Reads a datum and compares. */
  private async look(d: number, when: string): Promise<void> {
    const { data, reference } = this;
    const seen = (await data[d].read()).join();
    const expected = reference.values[d].join();
    if (seen !== expected || reference.lost.has(d))
      throw new Error(`d${d} is ${seen} ${when}, not ${expected}`);
  }
}

/** The runtimes of a program's ranks. */
function runtimesOf(
  program: FrontEndProgram,
  seed: number,
  recognises: boolean,
): [Runtime[], SimulatedBackend[], World] {
  const world = new World();
  const kernels = frontEndKernels(program.length);
  const backends = Array.from(
    { length: program.ranks },
    (_, rank) =>
      new SimulatedBackend({
        ...{ machine: machineOf(program), world, kernels },
        adversary: { seed: seed * 10 + rank, ...DELAYS },
      }),
  );
  const { window, inlineBytes, treeFrom } = program;
  // A checked graph does not rely on promises of its classes.
  const checked = !recognises || seed % UNCHECKED_EVERY !== 0;
  const options = { window, checked, ...(recognises ? { plans: 'auto' as const } : {}) };
  if (program.ranks === 1) return [[Runtime.over(backends[0], options)], backends, world];
  const { adversary } = backends[0];
  const { ports } = new SimulatedNetwork(world, backends, { link: LINK, adversary });
  const runtimes = backends.map((backend, rank) =>
    Runtime.over(backend, { ...options, inlineBytes, treeFrom }, ports[rank]),
  );
  return [runtimes, backends, world];
}

/** What became of a program: what is wrong, '' if nothing is, and how often each kind of step occurred. */
interface FrontEndResult {
  readonly problem: string;
  readonly kinds: Readonly<Record<string, number>>;
}

/** Plays the program of a seed. `onRanks`: one that repeats, on several ranks. */
export async function playFrontEnd(seed: number, onRanks = false): Promise<FrontEndResult> {
  const repeats = seed % REPEATS_EVERY === 0 || onRanks;
  const ranks = onRanks ? 2 + (seed % 3) : 1;
  const program = repeats ? new RepeatingProgram(seed, ranks) : new FrontEndProgram(seed);
  const kinds = kindsOf(program);
  const [runtimes, backends, world] = runtimesOf(program, seed, repeats);
  let problem: string | undefined;
  const failed = (error: unknown): void => {
    problem ??= describeThrown(error) || 'an error without a text';
  };
  // An engine may find a wrong state between the calls of the program.
  world.onError = failed;
  Promise.all(
    runtimes.map(async (runtime) => {
      const rank = new FrontEndRank(program, runtime, seed);
      await rank.play();
      await runtime.close();
      if (!repeats) return;
      const { runs, stretches } = rank.played;
      Object.assign(kinds, { 'played runs': runs, 'runs with played stretches': stretches });
    }),
  ).then(() => (problem ??= ''), failed);
  for (let i = 0; i < TURNS && problem === undefined; i++) await setImmediate();
  problem ??= `hangs\n${runtimes.map((runtime) => runtime.explain()).join('\n')}`;
  // What is left of the program must not go on in a state that may be wrong.
  if (problem !== '') for (const backend of backends) backend.die();
  return { problem, kinds };
}
