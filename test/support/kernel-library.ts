// The kernel library of the examples, compiled once per test process.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

let library: string | undefined;

/** Path of a shared object made of examples/kernels.c, without fused multiply-add. */
export function kernelLibrary(): string {
  if (library === undefined) {
    const folder = mkdtempSync(path.join(tmpdir(), 'headrace-kernels-'));
    process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
    library = path.join(folder, 'kernels.so');
    const options = ['-O2', '-ffp-contract=off', '-shared', '-fPIC', '-I', 'native/include'];
    execFileSync('cc', [...options, '-o', library, 'examples/kernels.c']);
  }
  return library;
}
