// `headrace simulate`: predicts a run on a described machine, with the real engine in virtual
// time; or steps through a failing case of the random tests (--replay).
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { checkMachine, type MachineDescription } from '../devices/simulated/machine/machine.js';
import { presets } from '../devices/simulated/machine/presets.js';
import { HeadraceError } from '../scheduler/errors.js';
import { traceOfRank } from '../trace/file-names.js';
import { awaited } from './awaited.js';
import { type CliContext, type CommandRunner, ExitCode } from './context.js';
import {
  describeOptions,
  flag,
  integer,
  type OptionValues,
  parseOptions,
  text,
  UsageError,
} from './options.js';
import { createProgress, type Progress } from './progress.js';
import { type Prediction, predict, type RankLane } from './simulation/predict.js';
import { type Program, type ProgramLayout, programs } from './simulation/programs.js';
import { replay } from './simulation/replay.js';

const options = {
  machine: text({
    metavar: 'FILE',
    help: `machine description, or ${Object.keys(presets).join(', ')}`,
    shown: 'h200-4',
  }),
  ranks: integer({ min: 1, max: 1024, fallback: 1, help: 'ranks, each with such a machine' }),
  gpus: integer({
    min: 0,
    max: 30,
    fallback: undefined,
    help: "GPUs per rank, instead of the machine's",
  }),
  n: integer({
    min: 1,
    max: 1 << 24,
    fallback: undefined,
    help: 'order of the matrices (65536; stencil: one tile per GPU)',
  }),
  tile: integer({ min: 1, max: 1 << 16, fallback: 2048, help: 'rows and columns of a tile' }),
  steps: integer({ min: 1, max: 1 << 20, fallback: 100, help: 'time steps of the stencil' }),
  trace: text({
    metavar: 'FILE',
    help: 'write the trace of the simulated run (one per rank: FILE.0, ...)',
  }),
  replay: text({ metavar: 'FILE', help: 'step through a case of the random tests instead' }),
  json: flag({ help: 'print the result as one JSON object' }),
  help: flag({ help: 'this text' }),
};

type Values = OptionValues<typeof options>;

const usage = `usage: headrace simulate <program> [options]

Predicts a run of ${new Intl.ListFormat('en', { type: 'disjunction' }).format(Object.keys(programs))} in virtual time: same engine, same stages, no hardware.

${describeOptions(options)}`;

function machineOf(values: Values): MachineDescription {
  const name = values.machine ?? 'h200-4';
  let machine = Object.hasOwn(presets, name) ? presets[name] : undefined;
  if (machine === undefined) {
    let json: unknown;
    try {
      json = JSON.parse(readFileSync(name, 'utf8'));
    } catch (cause) {
      throw new HeadraceError('ERR_MACHINE', `cannot read machine description '${name}'`, {
        cause,
      });
    }
    machine = checkMachine(json);
  }
  return values.gpus === undefined ? machine : { ...machine, gpus: values.gpus };
}

/** Idle seconds by reason, over all execution lanes. */
function idleOf(lanes: readonly RankLane[]): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const lane of lanes) {
    for (const [reason, ns] of Object.entries(lane.idle))
      sum[reason] = (sum[reason] ?? 0) + ns / 1e9;
  }
  return sum;
}

function resultOf(p: Prediction): Record<string, unknown> {
  const { lanes, events, wallSeconds, ...rest } = p;
  return {
    ...rest,
    idle: idleOf(lanes),
    devices: lanes.map(({ rank, lane, space, tasks, busy, idle }) => ({
      rank,
      lane,
      space,
      tasks,
      busy,
      idle,
    })),
    eventsPerSecond: events / wallSeconds,
    tasksPerSecond: p.tasks / wallSeconds,
  };
}

function describe(title: string, p: Prediction, flops: number): string {
  const rate = flops / p.makespanSeconds / 1e12;
  const idle = Object.entries(idleOf(p.lanes))
    .filter(([, seconds]) => seconds > 0)
    .map(([reason, seconds]) => `  idle, ${reason}: ${seconds.toPrecision(3)} s\n`)
    .join('');
  const bytes = Object.entries(p.bytes)
    .filter(([, n]) => n > 0)
    .map(([kind, n]) => `  ${kind}: ${(n / 1e9).toPrecision(4)} GB\n`)
    .join('');
  return (
    `${title}: ${p.tasks} tasks\n` +
    `  makespan       ${p.makespanSeconds.toPrecision(4)} s (${rate.toPrecision(3)} Tflop/s)\n` +
    `  critical path  ${p.criticalPathSeconds.toPrecision(4)} s\n` +
    `  area           ${p.areaSeconds.toPrecision(4)} s\n${bytes}${idle}` +
    `simulated ${Math.round(p.tasks / p.wallSeconds)} tasks and ${Math.round(p.events / p.wallSeconds)} events per second\n`
  );
}

/** Tasks of the program, with the tasks that make the tiles. */
function insertions(
  { matrices, lower, tasks }: Program,
  { rows, columns, tile }: ProgramLayout,
  steps: number,
): number {
  const [m, n] = [Math.ceil(rows / tile), Math.ceil(columns / tile)];
  const made = lower ? (m * (m + 1)) / 2 : m * n;
  return tasks(m, n, steps) + matrices.length * made;
}

/** Shows the number of inserted tasks, and ends the simulation when the user asks for it. */
function follow(total: number, progress: Progress, context: CliContext): () => void {
  let done = 0;
  return () => {
    progress.update('simulate', ++done, total);
    context.checkSignals?.();
    context.signal.throwIfAborted();
  };
}

/** Runs the command. */
export const runSimulateCommand: CommandRunner = async (argv: string[], context: CliContext) => {
  const named = argv.length > 0 && !argv[0].startsWith('-') ? argv[0] : undefined;
  const values = parseOptions(named === undefined ? argv : argv.slice(1), options, usage);
  if (values.help) {
    context.stdout.write(usage);
    return ExitCode.ok;
  }
  if (values.replay !== undefined) return replay(values.replay, context);
  if (named === undefined) throw new UsageError('a program is needed', usage);
  const program = Object.hasOwn(programs, named) ? programs[named] : undefined;
  if (program === undefined)
    throw new UsageError(`unknown program ${JSON.stringify(named)}`, usage);
  const machine = machineOf(values);
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-'));
  context.leftover?.(folder, true);
  const { stderr: stream, env } = context;
  const progress = createProgress({ stream, enabled: !values.json, env });
  try {
    const { ranks, n, tile, steps } = values;
    const layout = program.layout({ ranks, gpus: machine.gpus, n, tile, steps });
    const file = values.trace ?? path.join(folder, 'simulated.hrtrace');
    const traceOf = (rank: number): string => (ranks === 1 ? file : traceOfRank(file, rank));
    const onTask = follow(insertions(program, layout, steps), progress, context);
    const onAnalysis = (rank: number): void => progress.update('read traces', rank, ranks);
    const options = { ranks, layout, steps, traceOf, onTask, onAnalysis };
    const result = await awaited('the simulated run', predict(program, machine, options));
    progress.clear();
    const title = `${named} on ${ranks === 1 ? '' : `${ranks} ranks of `}${machine.name}, ${machine.gpus} GPUs${ranks === 1 ? '' : ' each'}`;
    if (values.json) context.stdout.write(`${JSON.stringify({ ok: true, ...resultOf(result) })}\n`);
    else context.stdout.write(describe(title, result, program.flops(layout, steps)));
    return ExitCode.ok;
  } finally {
    progress.clear();
    rmSync(folder, { recursive: true, force: true });
  }
};
