// Compiles the C kernels of an example with the system's compiler.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** A compiled library, for `runtime.loadKernels`. Its file exists until `using` ends. */
interface KernelLibrary extends Disposable {
  readonly file: string;
}

/** Compiles `examples/<name>`. -ffp-contract=off: no fused multiply-add, because JavaScript has none. */
export function compile(name: string): KernelLibrary {
  const root = path.dirname(fileURLToPath(import.meta.resolve('headrace/package.json')));
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-example-'));
  const file = path.join(folder, 'kernels.so');
  const flags = ['-O2', '-ffp-contract=off', '-shared', '-fPIC'];
  const include = path.join(root, 'native', 'include');
  const source = path.join(root, 'examples', name);
  execFileSync('cc', [...flags, '-I', include, '-o', file, source]);
  return { file, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}
