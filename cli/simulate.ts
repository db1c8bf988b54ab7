// `headrace simulate`: predicts a run on a machine that is described, not present, with the real engine in virtual
// time; or steps through a failing case of the random tests (--replay).
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { cholesky, choleskyFlops } from '../algorithms/cholesky.js';
import { gemm, gemmFlops } from '../algorithms/gemm.js';
import { SimulatedBackend } from '../devices/simulated/backend.js';
import { checkMachine, type MachineDescription } from '../devices/simulated/machine.js';
import { presets } from '../devices/simulated/presets.js';
import { HeadraceError } from '../scheduler/errors.js';
import { type Graph, Runtime, TiledMatrix, task, write } from '../scheduler/index.js';
import { summarize, type TraceSummary } from '../trace/analysis/index.js';
import { loadTrace } from '../trace/load.js';
import type { CommandRunner } from './commands.js';
import { type CliContext, ExitCode } from './context.js';
import {
  describeOptions,
  flag,
  integer,
  type OptionValues,
  parseOptions,
  text,
  UsageError,
} from './options.js';
import { replay } from './simulation/replay.js';

const options = {
  machine: text({
    metavar: 'FILE',
    help: `machine description, or ${Object.keys(presets).join(', ')}`,
    shown: 'h200-4',
  }),
  ranks: integer({ min: 1, max: 4096, fallback: 1, help: 'ranks (only 1 in this version)' }),
  gpus: integer({
    min: 0,
    max: 30,
    fallback: undefined,
    help: "GPUs per rank, instead of the machine's",
  }),
  n: integer({ min: 1, max: 1 << 24, fallback: 65536, help: 'order of the matrices' }),
  tile: integer({ min: 1, max: 1 << 16, fallback: 2048, help: 'rows and columns of a tile' }),
  trace: text({ metavar: 'FILE', help: 'keep the trace of the simulated run' }),
  replay: text({ metavar: 'FILE', help: 'step through a case of the random tests instead' }),
  json: flag({ help: 'print the result as one JSON object' }),
  help: flag({ help: 'this text' }),
};

type Values = OptionValues<typeof options>;

interface Program {
  readonly matrices: readonly string[];
  readonly lower: boolean;
  readonly insert: (graph: Graph, m: readonly TiledMatrix<'f64'>[]) => void;
  readonly flops: (n: number) => number;
}

const programs: Readonly<Record<string, Program>> = {
  cholesky: {
    matrices: ['A'],
    lower: true,
    insert: (graph, [a]) => cholesky(graph, a),
    flops: choleskyFlops,
  },
  gemm: {
    matrices: ['A', 'B', 'C'],
    lower: false,
    insert: (graph, [a, b, c]) => gemm(graph, a, b, c),
    flops: (n) => gemmFlops(n, n, n),
  },
};

const usage = `usage: headrace simulate <program> [options]

Predicts a run of ${Object.keys(programs).join(' or ')} in virtual time: same engine, same stages, no hardware.

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

/** Tiles begin in host memory; making them costs no time. */
const init = task({
  name: 'init',
  flows: { a: write('f64') },
  kernel: 'init',
  gpuKernel: false,
});

interface Simulated {
  readonly tasks: number;
  readonly makespanSeconds: number;
  readonly summary: TraceSummary;
  readonly bytes: Readonly<Record<string, number>>;
  readonly evictions: number;
  readonly events: number;
  readonly wallSeconds: number;
}

async function simulate(
  program: Program,
  machine: MachineDescription,
  values: Values,
  file: string,
): Promise<Simulated> {
  const begin = performance.now();
  const backend = new SimulatedBackend({ machine });
  const runtime = Runtime.over(backend, {
    trace: file,
    name: 'simulate',
    workers: machine.workers,
    window: 65536,
  });
  const matrices = program.matrices.map(
    (name) =>
      new TiledMatrix(runtime, 'f64', {
        rows: values.n,
        tile: values.tile,
        lower: program.lower,
        name,
      }),
  );
  await runtime.run((graph) => {
    for (const m of matrices) {
      for (let j = 0; j < m.tileColumns; j++) {
        for (let i = m.lower ? j : 0; i < m.tileRows; i++) graph.insert(init, { a: m.at(i, j) });
      }
    }
  });
  const report = await runtime.run((graph) => program.insert(graph, matrices));
  await runtime.close();
  const wallSeconds = (performance.now() - begin) / 1000;
  const { tasks, seconds: makespanSeconds, bytes, evictions } = report;
  const summary = summarize(loadTrace(file));
  return {
    tasks,
    makespanSeconds,
    bytes: { ...bytes },
    evictions,
    events: backend.events,
    wallSeconds,
    summary,
  };
}

/** Idle seconds by reason, of the GPUs' compute queues where there are any, else of the workers. */
function idleOf(summary: TraceSummary): Record<string, number> {
  const gpus = summary.lanes.filter((lane) => lane.kind === 'compute');
  const lanes = gpus.length > 0 ? gpus : summary.lanes;
  const sum: Record<string, number> = {};
  for (const lane of lanes) {
    for (const [reason, ns] of Object.entries(lane.idle))
      sum[reason] = (sum[reason] ?? 0) + ns / 1e9;
  }
  return sum;
}

function resultOf(s: Simulated): Record<string, unknown> {
  return {
    tasks: s.tasks,
    makespanSeconds: s.makespanSeconds,
    criticalPathSeconds: s.summary.bounds.criticalPath / 1e9,
    areaSeconds: s.summary.bounds.area / 1e9,
    bytes: s.bytes,
    evictions: s.evictions,
    idle: idleOf(s.summary),
    devices: s.summary.lanes
      .filter((lane) => lane.kind === 'compute')
      .map(({ lane, space, tasks, busy, idle }) => ({ lane, space, tasks, busy, idle })),
    eventsPerSecond: s.events / s.wallSeconds,
    tasksPerSecond: s.tasks / s.wallSeconds,
  };
}

function describe(name: string, machine: MachineDescription, s: Simulated, flops: number): string {
  const rate = flops / s.makespanSeconds / 1e12;
  const idle = Object.entries(idleOf(s.summary))
    .filter(([, seconds]) => seconds > 0)
    .map(([reason, seconds]) => `  idle, ${reason}: ${seconds.toPrecision(3)} s\n`)
    .join('');
  const bytes = Object.entries(s.bytes)
    .filter(([, n]) => n > 0)
    .map(([kind, n]) => `  ${kind}: ${(n / 1e9).toPrecision(4)} GB\n`)
    .join('');
  return (
    `${name} on ${machine.name}, ${machine.gpus} GPUs: ${s.tasks} tasks\n` +
    `  makespan       ${s.makespanSeconds.toPrecision(4)} s (${rate.toPrecision(3)} Tflop/s)\n` +
    `  critical path  ${(s.summary.bounds.criticalPath / 1e9).toPrecision(4)} s\n` +
    `  area           ${(s.summary.bounds.area / 1e9).toPrecision(4)} s\n${bytes}${idle}` +
    `simulated ${Math.round(s.tasks / s.wallSeconds)} tasks and ${Math.round(s.events / s.wallSeconds)} events per second\n`
  );
}

/** Runs the command. */
export const runSimulateCommand: CommandRunner = async (argv: string[], context: CliContext) => {
  const named = argv.length > 0 && !argv[0].startsWith('-') ? argv[0] : undefined;
  let values: Values;
  try {
    values = parseOptions(named === undefined ? argv : argv.slice(1), options);
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(error.message, usage);
    throw error;
  }
  if (values.help) {
    context.stdout.write(usage);
    return ExitCode.ok;
  }
  if (values.replay !== undefined) return replay(values.replay, context);
  if (named === undefined) throw new UsageError('a program is needed', usage);
  const program = Object.hasOwn(programs, named) ? programs[named] : undefined;
  if (program === undefined)
    throw new UsageError(`unknown program ${JSON.stringify(named)}`, usage);
  if (values.ranks > 1) {
    throw new HeadraceError('ERR_NOT_AVAILABLE', 'this version simulates one rank', {
      remedy: 'describe a machine with up to 30 GPUs instead',
    });
  }
  const machine = machineOf(values);
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-'));
  try {
    const file = values.trace ?? path.join(folder, 'simulated.hrtrace');
    const result = await simulate(program, machine, values, file);
    if (values.json) context.stdout.write(`${JSON.stringify({ ok: true, ...resultOf(result) })}\n`);
    else context.stdout.write(describe(named, machine, result, program.flops(values.n)));
    return ExitCode.ok;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
