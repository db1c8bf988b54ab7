// `headrace doctor`: what this machine offers, where it was found, and the command that gets what is missing.
// The native addon is asked in a child process, so that a broken driver cannot take the command down.
import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import { type CliContext, ExitCode } from './context.js';
import { formatTable } from './format.js';
import { describeOptions, flag, type OptionValues, parseOptions, UsageError } from './options.js';

/** One thing looked for. */
export interface Finding {
  readonly name: string;
  /** missing: needed and absent. absent: optional. */
  readonly state: 'ok' | 'missing' | 'absent';
  /** Version or place, or why it is not there. */
  readonly found: string;
  /** What gets it; undefined when nothing has to be done or nothing can. */
  readonly fix?: string;
}

const options = {
  json: flag({ help: 'print the findings as one JSON object' }),
  help: flag({ help: 'this text' }),
};

const usage = `usage: headrace doctor [options]

Tells what this machine offers to Headrace and how to get what is missing.

${describeOptions(options)}`;

/** What the addon tells about itself (native/contract.ts, `NativeProbe`). */
interface Probe {
  readonly blas: { readonly found: boolean; readonly library: string; readonly reason: string };
  readonly drivers: readonly {
    readonly name: string;
    readonly found: boolean;
    readonly devices: number;
    readonly reason: string;
  }[];
}

/** Runs a program; resolves to its first output line, or undefined when it is missing or fails. */
function firstLine(program: string, ...args: string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = execFile(program, args, { timeout: 20_000 }, (error, stdout) => {
      resolve(error === null ? (stdout.trim().split('\n')[0] ?? '') : undefined);
    });
    child.stdin?.end();
  });
}

function isOnPath(program: string, env: CliContext['env']): boolean {
  return (env['PATH'] ?? '').split(path.delimiter).some((folder) => {
    try {
      accessSync(path.join(folder, program), constants.X_OK);
      return folder !== '';
    } catch {
      return false;
    }
  });
}

/** Asks the addon in a child process. */
async function probeNative(): Promise<Probe | string> {
  const where = new URL('../native/index.js', import.meta.url).href;
  const code = `
    try {
      const { loadNative } = await import(${JSON.stringify(where)});
      console.log(JSON.stringify(loadNative().probe()));
    } catch (error) {
      console.log(JSON.stringify(String(error.message).split('\\n')[0]));
    }`;
  const line = await firstLine(process.execPath, '--input-type=module', '-e', code);
  return line === undefined ? 'loading it ended the process' : (JSON.parse(line) as Probe | string);
}

const apt = (packages: string): string => `apt-get install ${packages}`;

/** Looks at everything. */
export async function examine(env: CliContext['env']): Promise<Finding[]> {
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
  const probe = await probeNative();
  const isBuilt = typeof probe !== 'string';
  // The build tools are needed only where the addon still has to be built.
  await program('cmake', 'cmake', !isBuilt, apt('cmake'));
  await program('C++ compiler', env['CXX'] ?? 'g++', !isBuilt, apt('g++'));
  if (isBuilt) {
    findings.push({ name: 'native addon', state: 'ok', found: 'loads' });
    const { blas, drivers } = probe;
    findings.push(
      blas.found
        ? { name: 'BLAS', state: 'ok', found: blas.library }
        : { name: 'BLAS', state: 'absent', found: blas.reason, fix: apt('libopenblas0-pthread') },
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
  } else {
    findings.push({ name: 'native addon', state: 'missing', found: probe, fix: 'npm run setup' });
  }
  await program('Open MPI', 'mpirun', false, apt('libopenmpi-dev openmpi-bin'));
  return findings;
}

/** Runs the command; exit code 1 when something needed is missing. */
export async function runDoctorCommand(
  argv: readonly string[],
  context: CliContext,
): Promise<number> {
  let values: OptionValues<typeof options>;
  try {
    values = parseOptions(argv, options);
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(error.message, usage);
    throw error;
  }
  if (values.help) {
    context.stdout.write(usage);
    return ExitCode.ok;
  }
  const findings = await examine(context.env);
  const ok = findings.every(({ state }) => state !== 'missing');
  if (values.json) context.stdout.write(`${JSON.stringify({ ok, findings })}\n`);
  else context.stdout.write(describeFindings(findings));
  return ok ? ExitCode.ok : ExitCode.failure;
}

/** Findings as a table, then the commands that get what is missing. */
export function describeFindings(findings: readonly Finding[]): string {
  const marks = { ok: 'ok', missing: 'MISSING', absent: '-' };
  const width = Math.max(...findings.map(({ found }) => found.length));
  const table = formatTable(
    findings.map(({ name, state, found }) => [name, marks[state].padEnd(7), found.padEnd(width)]),
  );
  const fixes = findings
    .filter(({ fix }) => fix !== undefined)
    .map(({ name, fix }) => [`  ${name}`, `  ${fix}`.padEnd(50)]);
  return fixes.length === 0 ? table : `${table}\nTo get what is not there:\n${formatTable(fixes)}`;
}
