// Runs a rank program under mpirun and collects what its ranks report (programs/report.mjs).
//
// Rules, each from a defect: mpirun is never killed with SIGKILL (that leaves its ranks running): its own
// timeout comes first, then SIGTERM; the environment of an outer mpirun and of vitest does not reach the ranks.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { first, type Library, launcherOf } from '../support/needs.js';

export interface RankOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly seconds?: number;
  readonly library?: Library;
  /** Ranks go on when one of them dies, so that they can tell what they saw. */
  readonly survive?: boolean;
  /** Reports to wait for after the launcher has ended: MPICH's leaves first when a rank is killed. */
  readonly reports?: number;
}

export interface RankResult {
  readonly code: number | null;
  readonly signal: string | null;
  /** What was reported, in the order of ranks; several reports of a rank in the order made. */
  readonly reports: readonly Record<string, unknown>[];
  readonly output: string;
  readonly seconds: number;
}

const root: string = fileURLToPath(new URL('../..', import.meta.url));
/** Environment without what an outer launcher or test runner put there. */
export function cleanEnvironment(extra: Readonly<Record<string, string>>): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (value === undefined) continue;
    if (
      /^(OMPI_|PMIX_|PMI_|PRTE_|HYDRA_|MPI_|SLURM_|VITEST|NODE_OPTIONS$|NODE_CHANNEL|TINYPOOL)/.test(
        name,
      )
    )
      continue;
    env[name] = value;
  }
  return {
    ...env,
    OMPI_MCA_btl_vader_single_copy_mechanism: 'none',
    OMPI_MCA_rmaps_base_oversubscribe: '1',
    ...extra,
  };
}

function commandLine(
  library: Library,
  ranks: number,
  options: RankOptions,
  seconds: number,
): string[] {
  if (library === 'openmpi') {
    return [
      '--allow-run-as-root',
      '--oversubscribe',
      '--bind-to',
      'none',
      '--timeout',
      String(seconds),
      ...(options.survive === true ? ['--enable-recovery'] : []),
      '-n',
      String(ranks),
    ];
  }
  return [
    ...(options.survive === true ? ['-disable-auto-cleanup'] : []),
    '-bind-to',
    'none',
    '-n',
    String(ranks),
  ];
}

function reportsIn(folder: string): Record<string, unknown>[] {
  const lines = readdirSync(folder).flatMap((file) =>
    readFileSync(path.join(folder, file), 'utf8').split('\n'),
  );
  return lines
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Runs `program` (a file of test/mpi/programs) on `ranks` ranks. */
export function mpirun(
  ranks: number,
  program: string,
  options: RankOptions = {},
): Promise<RankResult> {
  const library = options.library ?? first ?? 'openmpi';
  const seconds = options.seconds ?? 30;
  const launcher = launcherOf(library) as string;
  const file = path.isAbsolute(program)
    ? program
    : path.join(root, 'test', 'mpi', 'programs', program);
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-ranks-'));
  const env = cleanEnvironment({
    HEADRACE_REPORTS: folder,
    MPIEXEC_TIMEOUT: String(seconds),
    ...options.env,
  });
  const began = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(
      launcher,
      [
        ...commandLine(library, ranks, options, seconds),
        process.execPath,
        file,
        ...(options.args ?? []),
      ],
      { env, cwd: root, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    let output = '';
    child.stdout.on('data', (data) => {
      output += data;
    });
    child.stderr.on('data', (data) => {
      output += data;
    });
    const late = setTimeout(() => child.kill('SIGTERM'), (seconds + 5) * 1000);
    child.on('error', reject);
    child.on('close', async (code, signal) => {
      clearTimeout(late);
      const until = performance.now() + 5000;
      let reports = reportsIn(folder);
      while (reports.length < (options.reports ?? 0) && performance.now() < until) {
        await new Promise((go) => setTimeout(go, 50));
        reports = reportsIn(folder);
      }
      rmSync(folder, { recursive: true, force: true });
      reports.sort((a, b) => Number(a['rank']) - Number(b['rank']));
      resolve({ code, signal, reports, output, seconds: (performance.now() - began) / 1000 });
    });
  });
}
