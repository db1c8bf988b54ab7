// Runs a program of the algorithms on a described machine, on one rank or many, and adds up its costs.
import type { MachineDescription } from '../../devices/simulated/machine/machine.js';
import { HeadraceError } from '../../scheduler/errors.js';
import type { RunReport } from '../../scheduler/index.js';
import { type LaneUse, summarize } from '../../trace/analysis/index.js';
import { loadTrace } from '../../trace/load.js';
import { ProgramBounds } from './bounds.js';
import { openRanks, type SimulatedRanks } from './open.js';
import type { Program, ProgramLayout } from './programs.js';
import { Together } from './together.js';

interface PredictOptions {
  readonly ranks: number;
  readonly layout: ProgramLayout;
  readonly steps: number;
  /** Trace file of a rank. */
  readonly traceOf: (rank: number) => string;
  /** Called for every inserted task; an error that it throws ends the simulation. */
  readonly onTask?: (() => void) | undefined;
  /** Called before the trace of each rank is analysed. */
  readonly onAnalysis?: ((rank: number) => void) | undefined;
}

/** A lane of one rank. */
export interface RankLane extends LaneUse {
  readonly rank: number;
}

export interface Prediction {
  readonly tasks: number;
  readonly makespanSeconds: number;
  readonly criticalPathSeconds: number;
  readonly areaSeconds: number;
  readonly bytes: Readonly<Record<string, number>>;
  readonly evictions: number;
  /** Execution lanes of all ranks: of the GPUs if there are any, else of the workers. */
  readonly lanes: readonly RankLane[];
  /** Commands and messages. */
  readonly events: number;
  readonly wallSeconds: number;
}

/** Rejects when no event can happen in the world any more: every wait that is left would last for ever. */
function standstill({ world, runtimes }: SimulatedRanks): Promise<never> {
  return new Promise((_, reject) => {
    world.onStill = () => {
      // Programs may insert more tasks when something ends; they learn of the end before the event loop turns.
      setImmediate(() => {
        if (world.next < Number.POSITIVE_INFINITY) return;
        const report = runtimes.map((runtime, rank) => `rank ${rank}:\n${runtime.explain()}`);
        reject(
          new HeadraceError('ERR_STALLED', 'the simulated machine stands still', {
            remedy: 'this is a defect of Headrace; please report it with this table',
            report: report.join('\n'),
          }),
        );
      });
    };
  });
}

/**
 * Simulates the program; resolves when all of it is done and analysed.
 *
 * @throws HeadraceError `ERR_MACHINE` when ranks have no network, `ERR_STALLED` when the engines wait for nothing.
 */
export async function predict(
  program: Program,
  machine: MachineDescription,
  options: PredictOptions,
): Promise<Prediction> {
  const begin = performance.now();
  const simulated = openRanks(machine, options.ranks, options.traceOf);
  const prediction = simulate(program, machine, options, simulated, begin);
  return Promise.race([prediction, standstill(simulated)]);
}

async function simulate(
  program: Program,
  machine: MachineDescription,
  options: PredictOptions,
  { backends, runtimes, network }: SimulatedRanks,
  begin: number,
): Promise<Prediction> {
  const bounds = new ProgramBounds(machine);
  const together = new Together(runtimes, (cls, args) => {
    options.onTask?.();
    bounds.add(cls, args);
  });
  const matrices = await together.make(program, options.layout);
  const reports = await together.run((graph) => program.insert(graph, matrices, options.steps));
  await Promise.all(runtimes.map((runtime) => runtime.close()));
  const wallSeconds = (performance.now() - begin) / 1000;
  const lanes = lanesOf(machine, options);
  const executors =
    options.ranks *
    (machine.gpus > 0 ? machine.gpus * (machine.computeStreams ?? 1) : machine.workers);
  return {
    tasks: sum(reports, (r) => r.tasks),
    makespanSeconds: Math.max(...reports.map((r) => r.seconds)),
    criticalPathSeconds: bounds.criticalPath,
    areaSeconds: bounds.work / executors,
    bytes: addBytes(reports),
    evictions: sum(reports, (r) => r.evictions),
    lanes,
    events: sum(backends, (b) => b.events) + (network?.messages ?? 0) + (network?.transfers ?? 0),
    wallSeconds,
  };
}

function sum<T>(list: readonly T[], of: (item: T) => number): number {
  return list.reduce((total, item) => total + of(item), 0);
}

function addBytes(reports: readonly RunReport[]): Record<string, number> {
  const total: Record<string, number> = {};
  for (const { bytes } of reports)
    for (const [kind, n] of Object.entries(bytes)) total[kind] = (total[kind] ?? 0) + n;
  return total;
}

/** One rank's trace after the other, so that memory does not grow with their number. */
function lanesOf(machine: MachineDescription, options: PredictOptions): RankLane[] {
  const lanes: RankLane[] = [];
  for (let rank = 0; rank < options.ranks; rank++) {
    options.onAnalysis?.(rank);
    const summary = summarize(loadTrace(options.traceOf(rank)));
    for (const lane of summary.lanes)
      if (lane.kind === 'compute' || machine.gpus === 0) lanes.push({ ...lane, rank });
  }
  return lanes;
}
