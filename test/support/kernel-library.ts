// Libraries of kernels for tests: of the examples, compiled once per test process, and of C in a test.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

let library: string | undefined;

/** Path of a shared object made of examples/kernels.c, without fused multiply-add. */
export function kernelLibrary(): string {
  library ??= compileKernels(
    'examples/kernels.c',
    path.join(folderOfProcess('kernels'), 'kernels.so'),
    ['-O2', '-ffp-contract=off'],
  );
  return library;
}

/** A new folder that is there until the process ends. */
export function folderOfProcess(name: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), `headrace-${name}-`));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Makes a shared object of a C file and returns its path. */
export function compileKernels(source: string, made: string, options: readonly string[]): string {
  execFileSync('cc', [...options, '-shared', '-fPIC', '-I', 'native/include', '-o', made, source]);
  return made;
}
