// `headrace doctor`: the abilities of this machine, their places, and the commands that install missing parts.
// Under a launcher of several ranks they report together (doctor-launch.ts), and rank 0 prints.
import { fileURLToPath } from 'node:url';
import { aptCommand, isOnPath, mpiRemedy } from '../devices/installation.js';
import { launchOf } from '../devices/launch.js';
import { prove } from '../devices/native/gpu-aware.js';
import { askTwoRanks } from '../devices/native/two-ranks.js';
import { type CliContext, ExitCode } from './context.js';
import { type CudaFacts, cudaFindings } from './doctor-cuda.js';
import { describeLaunch, examineLaunch, type LaunchFacts } from './doctor-launch.js';
import { firstLine, type NoProbe, type Probe, probeNative } from './doctor-probe.js';
import { formatTable } from './format.js';
import { describeOptions, flag, parseOptions } from './options.js';

/** One part of the machine. */
interface Finding {
  readonly name: string;
  /** missing: needed and absent. absent: optional. */
  readonly state: 'ok' | 'missing' | 'absent';
  /** Version or place, or the reason why it is absent. */
  readonly found: string;
  /** The command that installs it; undefined if nothing is missing or no command helps. */
  readonly fix?: string;
}

const options = {
  json: flag({ help: 'print the findings as one JSON object' }),
  help: flag({ help: 'this text' }),
};

const usage = `usage: headrace doctor [options]

Reports the abilities of this machine for Headrace, and the commands that install missing parts.
Under mpirun or srun the ranks report together: per host its ranks, their cores and GPUs, the ways
between them, and their clocks.

${describeOptions(options)}`;

/** The findings of two ranks (doctor-ranks.ts). */
interface RankProbe {
  readonly size: number;
  readonly library: string;
  readonly threadLevel: string;
  readonly gpuAware: boolean;
  /** File of the MPI library. */
  readonly libraryFile: string;
  readonly ipc: boolean;
  /** Why a rank cannot read the other one's memory. */
  readonly problem: string;
}

/** Starts two ranks with a GPU of that driver each and asks them; a text gives the reason of a failure. */
async function probeRanks(
  env: CliContext['env'],
  driver: 'emulated' | 'cuda',
): Promise<RankProbe | string> {
  if (!isOnPath('mpirun', env)) return 'mpirun is not on PATH';
  const program = fileURLToPath(new URL('./doctor-ranks.js', import.meta.url));
  try {
    return (await askTwoRanks(program, driver)) as unknown as RankProbe;
  } catch (error) {
    return (error as Error).message;
  }
}

/** The abilities of ranks with CUDA GPUs: to give device pointers to MPI, to open each other's memory. */
async function examineRanksOnGpus(
  env: CliContext['env'],
  { gpuAware, library, libraryFile }: RankProbe,
): Promise<{ readonly findings: Finding[]; readonly isProven: boolean }> {
  const proof = gpuAware
    ? await prove(libraryFile)
    : { isProven: false, why: `${library.split(',')[0]} does not take them` };
  const ranks = await probeRanks(env, 'cuda');
  const ipc = typeof ranks !== 'string' && ranks.ipc;
  const why = typeof ranks === 'string' ? ranks : ranks.problem;
  const staged = 'data between ranks go through page-locked host memory instead';
  return {
    isProven: proof.isProven,
    findings: [
      proof.isProven
        ? { name: 'MPI on GPU memory', state: 'ok', found: 'proven: it sends and receives there' }
        : { name: 'MPI on GPU memory', state: 'absent', found: `${proof.why}; ${staged}` },
      ipc
        ? { name: 'IPC between GPUs', state: 'ok', found: "ranks read each other's GPU memory" }
        : { name: 'IPC between GPUs', state: 'absent', found: `${why}; ${staged}` },
    ],
  };
}

/** The findings in the form promised to programs (docs/network.md). */
export interface DoctorFacts {
  readonly node: string;
  readonly addon: boolean;
  readonly mpi: {
    readonly found: boolean;
    readonly library: string;
    readonly threadLevel: string;
    /** `proven` stays false until device pointers have arrived; emulated GPUs need no such proof. */
    readonly gpuAware: { readonly claimed: boolean; readonly proven: boolean };
  };
  /** Ranks of this host can map each other's GPU memory. */
  readonly ipc: boolean;
  readonly devices: readonly {
    readonly kind: string;
    readonly name: string;
    readonly memoryBytes: number;
    /** CUDA only. */
    readonly uuid?: string;
  }[];
  /** The ranks of this launch; absent where doctor runs alone. */
  readonly launch?: LaunchFacts;
  /** CUDA GPUs in full, with bandwidth in GB/s where it was measured; absent without one. */
  readonly cuda?: CudaFacts;
  readonly missing: readonly {
    readonly what: string;
    readonly disables: string;
    readonly fix: string;
  }[];
}

/** Memory of an emulated GPU unless the program asks for another size. */
const EMULATED_BYTES = 256 * 2 ** 20;
const DISABLES: Readonly<Record<string, string>> = {
  cmake: 'building the native addon',
  'C++ compiler': 'building the native addon',
  'native addon': 'everything that runs tasks',
  BLAS: 'fast tile arithmetic on the host and on emulated GPUs',
  MPI: 'more than one rank',
  'IPC between ranks': "comm: 'ipc'; data go through messages instead",
};

function cudaOf(probe: Probe | NoProbe): CudaFacts | undefined {
  return !('absent' in probe) && probe.cuda.devices.length > 0
    ? (probe.cuda as CudaFacts)
    : undefined;
}

function factsOf(
  findings: readonly Finding[],
  probe: Probe | NoProbe,
  ranks: Pick<RankProbe, 'library' | 'threadLevel' | 'gpuAware' | 'ipc'> | string,
  isProven: boolean,
): DoctorFacts {
  const found = typeof ranks !== 'string';
  const drivers = 'absent' in probe ? [] : probe.drivers.filter((driver) => driver.found);
  const cuda = cudaOf(probe);
  return {
    node: process.versions.node,
    addon: !('absent' in probe),
    mpi: {
      found,
      library: found ? ranks.library : '',
      threadLevel: found ? ranks.threadLevel : '',
      gpuAware: { claimed: found && ranks.gpuAware, proven: isProven },
    },
    ipc: found && ranks.ipc,
    devices: drivers.flatMap(({ name, devices }) =>
      name === 'emulated'
        ? [{ kind: name, name: 'emulated GPU', memoryBytes: EMULATED_BYTES }]
        : Array.from({ length: devices }, (_, i) => ({
            kind: name,
            name: (name === 'cuda' && cuda?.devices[i]?.name) || `${name} GPU ${i}`,
            memoryBytes: (name === 'cuda' && cuda?.devices[i]?.bytes) || 0,
            ...(name === 'cuda' && cuda !== undefined ? { uuid: cuda.devices[i].uuid } : {}),
          })),
    ),
    ...(cuda === undefined ? {} : { cuda }),
    missing: findings
      .filter(({ state, fix }) => state !== 'ok' && fix !== undefined)
      .map(({ name, fix }) => ({ what: name, disables: DISABLES[name] ?? name, fix: fix ?? '' })),
  };
}

/** The ranks of this launch, all of which run this command; a text gives the reason of a failure. */
async function joinRanks(): Promise<LaunchFacts | string> {
  try {
    return (await examineLaunch()) ?? 'only rank 0 has the facts';
  } catch (error) {
    return (error as Error).message;
  }
}

function factsOfLaunch(
  findings: readonly Finding[],
  probe: Probe | NoProbe,
  launch: LaunchFacts | string,
): DoctorFacts {
  if (typeof launch === 'string') return factsOf(findings, probe, launch, false);
  const { library, threadLevel, gpuAware, hosts, driver } = launch;
  const ipc = hosts.every(({ ranks, ways }) => ranks.length === 1 || ways.ipc);
  const isProven = driver !== 'emulated' && hosts.every(({ ways }) => ways.direct);
  return { ...factsOf(findings, probe, { library, threadLevel, gpuAware, ipc }, isProven), launch };
}

/** The findings about the addon and what it has loaded. */
function partsOf(probe: Probe): Finding[] {
  const findings: Finding[] = [];
  findings.push({ name: 'native addon', state: 'ok', found: 'loads' });
  const { blas, drivers } = probe;
  findings.push(
    blas.found
      ? { name: 'BLAS', state: 'ok', found: blas.library }
      : {
          name: 'BLAS',
          state: 'absent',
          found: blas.reason,
          fix: aptCommand(['libopenblas0-pthread']),
        },
  );
  for (const driver of drivers) {
    const name = `GPU driver ${driver.name}`;
    const devices = `${driver.devices} device${driver.devices === 1 ? '' : 's'}`;
    if (!driver.found) findings.push({ name, state: 'absent', found: driver.reason });
    else
      findings.push({
        name,
        state: 'ok',
        found: driver.name === 'emulated' ? 'built in' : devices,
      });
  }
  const cuda = cudaOf(probe);
  if (cuda !== undefined) findings.push(...cudaFindings(cuda));
  return findings;
}

/** Examines everything. */
async function examine(
  env: CliContext['env'],
): Promise<{ readonly findings: Finding[]; readonly facts: DoctorFacts }> {
  const findings: Finding[] = [
    {
      name: 'Node',
      state: 'ok',
      found: `${process.versions.node}, Node-API ${process.versions['napi']}`,
    },
  ];
  const program = async (
    name: string,
    command: string,
    required: boolean,
    fix: string,
  ): Promise<void> => {
    const found = isOnPath(command, env) ? await firstLine(command, '--version') : undefined;
    if (found !== undefined) findings.push({ name, state: 'ok', found });
    else findings.push({ name, state: required ? 'missing' : 'absent', found: 'not on PATH', fix });
  };
  const probe = await probeNative(launchOf(env).size === 1);
  const isBuilt = !('absent' in probe);
  // The build tools are needed only if the addon still has to be built.
  await program('cmake', 'cmake', !isBuilt, aptCommand(['cmake']));
  await program('C++ compiler', env['CXX'] ?? 'g++', !isBuilt, aptCommand(['g++']));
  if (isBuilt) {
    findings.push(...partsOf(probe));
  } else {
    const { absent: found, remedy: fix } = probe;
    const finding = { name: 'native addon', state: 'missing' as const, found };
    findings.push(fix === undefined ? finding : { ...finding, fix });
  }
  if (launchOf(env).size > 1) {
    const launch = isBuilt ? await joinRanks() : 'the native addon is missing';
    if (typeof launch === 'string') findings.push({ name: 'MPI', state: 'missing', found: launch });
    else findings.push(...describeLaunch(launch));
    return { findings, facts: factsOfLaunch(findings, probe, launch) };
  }
  const ranks = isBuilt ? await probeRanks(env, 'emulated') : 'the native addon is missing';
  if (typeof ranks === 'string') {
    findings.push({ name: 'MPI', state: 'absent', found: ranks, fix: mpiRemedy('openmpi', env) });
  } else {
    const pointers = ranks.gpuAware ? 'claims to take' : 'takes no';
    const found = `${ranks.library.split(',')[0]}, thread level ${ranks.threadLevel}, ${pointers} device pointers`;
    findings.push({ name: 'MPI', state: 'ok', found });
    findings.push(
      ranks.ipc
        ? { name: 'IPC between ranks', state: 'ok', found: 'ranks map the memory of emulated GPUs' }
        : {
            name: 'IPC between ranks',
            state: 'absent',
            found: 'a rank cannot map the memory of another',
          },
    );
  }
  let isProven = false;
  const hasCuda =
    isBuilt && probe.drivers.some((driver) => driver.name === 'cuda' && driver.devices > 0);
  if (hasCuda && typeof ranks !== 'string') {
    const onGpus = await examineRanksOnGpus(env, ranks);
    findings.push(...onGpus.findings);
    isProven = onGpus.isProven;
  }
  return { findings, facts: factsOf(findings, probe, ranks, isProven) };
}

/** Runs the command; exit code 1 if a needed part is missing. */
export async function runDoctorCommand(
  argv: readonly string[],
  context: CliContext,
): Promise<number> {
  const values = parseOptions(argv, options, usage);
  if (values.help) {
    context.stdout.write(usage);
    return ExitCode.ok;
  }
  if (launchOf(context.env).rank > 0) {
    await examineLaunch();
    return ExitCode.ok;
  }
  const { findings, facts } = await examine(context.env);
  const ok = findings.every(({ state }) => state !== 'missing');
  if (values.json) context.stdout.write(`${JSON.stringify({ ok, ...facts, findings })}\n`);
  else context.stdout.write(describeFindings(findings));
  return ok ? ExitCode.ok : ExitCode.failure;
}

/** Findings as a table, then the commands that install missing parts. */
export function describeFindings(findings: readonly Finding[]): string {
  const marks = { ok: 'ok', missing: 'MISSING', absent: '-' };
  const width = Math.max(...findings.map(({ found }) => found.length));
  const table = formatTable(
    findings.map(({ name, state, found }) => [name, marks[state].padEnd(7), found.padEnd(width)]),
  );
  const fixes = findings
    .filter(({ fix }) => fix !== undefined)
    .map(({ name, fix = '' }) => [`  ${name}`, `  ${fix}`]);
  const widest = Math.max(...fixes.map(([, fix]) => fix.length));
  for (const line of fixes) line[1] = line[1].padEnd(widest);
  return fixes.length === 0
    ? table
    : `${table}\nTo install the missing parts:\n${formatTable(fixes)}`;
}
