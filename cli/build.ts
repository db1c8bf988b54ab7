// `headrace build`: builds the parts of an installed package that have no built addon from source: the message layer
// for each MPI library that is found, and the addon itself if the platform packages have none that loads.
// Invariant: files in build/Release are whole at any time. They are built in a folder of their own and moved there last,
// so a build that fails or is interrupted leaves the old files.
import { spawn } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import {
  aptCommand,
  buildCommand,
  isClone,
  isOnPath,
  missingTools,
  mpiRemedy,
  packageRoot,
} from '../devices/installation.js';
import { openNativeBackend } from '../devices/native/backend.js';
import { mpiEnvironment } from '../devices/native/open-network.js';
import { HeadraceError } from '../scheduler/errors.js';
import { type CliContext, ExitCode } from './context.js';
import { describeOptions, flag, parseOptions } from './options.js';

const options = {
  addon: flag({ help: 'build the addon itself too, although one loads' }),
  json: flag({ help: 'print the built files as one JSON object' }),
  help: flag({ help: 'this text' }),
};

const usage = `usage: headrace build [options]

Builds the missing parts of the installed package from source: the message layer for each MPI library
found on this machine (Open MPI, MPICH), and the addon itself if none loads. Needs cmake, make
or ninja, and a C++ compiler; takes about a minute.

${describeOptions(options)}`;

/** Runs the command. */
export async function runBuildCommand(
  argv: readonly string[],
  context: CliContext,
): Promise<number> {
  const values = parseOptions(argv, options, usage);
  if (values.help) {
    context.stdout.write(usage);
    return ExitCode.ok;
  }
  const root = packageRoot();
  checkPlace(root, context.env);
  const built = await build(root, values.addon || !addonLoads(), context);
  if (values.json) context.stdout.write(`${JSON.stringify({ ok: true, built })}\n`);
  else context.stdout.write(built.map((file) => `built ${file}\n`).join(''));
  return ExitCode.ok;
}

/** Refuses if nothing can be built, with the command that changes that. */
function checkPlace(root: string, env: CliContext['env']): void {
  if (isClone(root)) {
    throw new HeadraceError('ERR_BUILD', `${root} is a clone, which builds itself`, {
      remedy: buildCommand(),
    });
  }
  const tools = missingTools(env);
  if (tools.length > 0) {
    throw new HeadraceError('ERR_BUILD', `${tools.join(' and ')} not found on PATH`, {
      remedy: `${aptCommand(tools)} && ${buildCommand()}`,
    });
  }
  try {
    accessSync(root, constants.W_OK);
  } catch (cause) {
    throw new HeadraceError('ERR_BUILD', `the folder ${root} cannot be written`, {
      remedy: 'run the command as the user who installed the package',
      cause,
    });
  }
}

/** Whether an addon loads in this installation. */
function addonLoads(): boolean {
  try {
    openNativeBackend({
      driver: 'emulated',
      gpus: 0,
      firstGpu: 0,
      gpuBytes: 0,
      hostBytes: 4096,
      workers: 1,
      computeStreams: 1,
      ringRecords: 64,
      checked: false,
    }).close();
    return true;
  } catch (error) {
    if (error instanceof HeadraceError && error.code === 'ERR_NATIVE_MISSING') return false;
    throw error;
  }
}

/** Builds into a folder of its own, tries the result, and moves it to its place; returns the files. */
async function build(root: string, withAddon: boolean, context: CliContext): Promise<string[]> {
  const folder = mkdtempSync(path.join(root, '.build-'));
  try {
    const cmake = path.join(folder, 'cmake');
    context.stderr.write('headrace: building from source, this takes about a minute\n');
    await run(
      'cmake',
      [
        ...['-S', root, '-B', cmake, '-DCMAKE_BUILD_TYPE=Release', '-DHEADRACE_WARNINGS=OFF'],
        `-DHEADRACE_ADDON=${withAddon ? 'ON' : 'OFF'}`,
        `-DHEADRACE_NODE_API=${path.join(root, 'dist', 'node-api')}`,
        ...(isOnPath('make', context.env) ? ['-G', 'Unix Makefiles'] : ['-G', 'Ninja']),
      ],
      context,
    );
    await run('cmake', ['--build', cmake, '--parallel', String(availableParallelism())], context);
    const made = path.join(cmake, 'Release');
    const names = existsSync(made) ? readdirSync(made).filter((name) => /\.node$/.test(name)) : [];
    if (names.length === 0) {
      throw new HeadraceError(
        'ERR_BUILD',
        'no MPI library was found, so there is nothing to build',
        {
          remedy: mpiRemedy('openmpi', context.env),
        },
      );
    }
    for (const name of names) await tryToLoad(path.join(made, name), context);
    const place = path.join(root, 'build', 'Release');
    mkdirSync(place, { recursive: true });
    return names.sort().map((name) => {
      renameSync(path.join(made, name), path.join(place, name));
      return path.join(place, name);
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Loads an addon in a process of its own, which may end in a crash. */
async function tryToLoad(file: string, context: CliContext): Promise<void> {
  const env = mpiEnvironment(context.env);
  await run(process.execPath, ['-e', 'require(process.argv[1])', file], { ...context, env });
}

/** Lines of a failed program's output that are shown. */
const SHOWN = 60;

/** Runs a program to its end; its output is part of the error if it fails. */
function run(program: string, args: readonly string[], context: CliContext): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      env: { ...context.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own: cmake does not pass a signal on to the compilers it has started.
      detached: true,
    });
    const stop = (): void => {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM');
    };
    context.signal.addEventListener('abort', stop, { once: true });
    let text = '';
    const take = (chunk: Buffer): void => {
      text += chunk.toString();
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.on('error', reject);
    child.on('close', (code) => {
      context.signal.removeEventListener('abort', stop);
      if (code === 0) return resolve();
      const report = text.trimEnd().split('\n').slice(-SHOWN).join('\n');
      const words = [program, ...args].join(' ');
      reject(new HeadraceError('ERR_BUILD', `${words} failed (${code ?? 'signal'})`, { report }));
    });
  });
}
