// Child processes of the scripts. They have no stdin, so that no child waits for a terminal, and they end with the
// script.
import { spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import path from 'node:path';

const children = new Set();
let ending = false;

function endOn(signal, code) {
  process.on(signal, () => {
    if (ending) process.exit(code);
    ending = true;
    for (const child of children) signalGroup(child, signal);
    if (children.size === 0) process.exit(code);
    setTimeout(() => process.exit(code), 3000).unref();
    process.exitCode = code;
  });
}

/**
 * Signals a child and all its descendants. Each child leads a process group of its own, because a worker that is stuck
 * in native code would outlive its parent.
 */
function signalGroup(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch {
    // already gone
  }
}

/** Ends running children when the script gets a signal: exit code 130 for SIGINT, 143 for SIGTERM. */
export function forwardSignals() {
  endOn('SIGINT', 130);
  endOn('SIGTERM', 143);
}

/** True after the script got SIGINT or SIGTERM. */
export function isEnding() {
  return ending;
}

/**
 * Path of a program on PATH, or undefined. An absolute path is looked at itself.
 *
 * @param {string} name
 * @param {NodeJS.ProcessEnv} [env]
 */
export function which(name, env = process.env) {
  if (path.isAbsolute(name)) return which(path.basename(name), { PATH: path.dirname(name) });
  for (const folder of (env['PATH'] ?? '').split(path.delimiter)) {
    if (folder === '') continue;
    const file = path.join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      if (statSync(file).isFile()) return file;
    } catch {
      // not here
    }
  }
  return undefined;
}

/**
 * Runs a program to its end. Output goes to the terminal (`inherit`) or is collected.
 *
 * @param {string} program
 * @param {string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, inherit?: boolean, timeoutMs?: number }} [options]
 * @returns {Promise<{ code: number, signal: string | null, output: string, stdout: string }>} code 127: it could not be started, 124: time over
 */
export function runCommand(program, args, options = {}) {
  const { cwd, env = process.env, inherit = false, timeoutMs } = options;
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', inherit ? 'inherit' : 'pipe', inherit ? 'inherit' : 'pipe'],
    });
    children.add(child);
    let output = '';
    let stdout = '';
    child.stdout?.on('data', (chunk) => {
      output += chunk;
      stdout += chunk;
    });
    child.stderr?.on('data', (chunk) => {
      output += chunk;
    });
    let late = false;
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(() => {
            late = true;
            output += `no end after ${timeoutMs / 1000} s\n`;
            signalGroup(child, 'SIGTERM');
            setTimeout(() => signalGroup(child, 'SIGKILL'), 5000).unref();
          }, timeoutMs);
    const finish = (code, signal) => {
      clearTimeout(timer);
      children.delete(child);
      if (late) signalGroup(child, 'SIGKILL'); // ends the rest of its group
      resolve({ code: late ? 124 : code, signal, output, stdout });
    };
    child.on('error', (error) => {
      output += `${error.message}\n`;
      finish(127, null);
    });
    child.on('close', (code, signal) => finish(code ?? 128, signal));
  });
}
