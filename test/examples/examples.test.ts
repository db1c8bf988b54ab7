// Every example runs as a reader runs it, and prints the promised output.
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));

const PROMISES: Readonly<Record<string, readonly RegExp[]>> = {
  hello: [/^y\[0\] = 20 after 11 tasks$/m],
  cholesky: [
    /^286 tasks, /m,
    /^forward error \de-1[3-6]$|^forward error \d\.\de-1[3-6]$|^forward error 0\.0e\+0$/m,
    /^evictions [1-9]\d*, of which written back [1-9]/m,
    /between devices [1-9]/,
  ],
  kernels: [/^loaded: stencil_1d_f64$/m, /2 GPUs, [1-9]\d* bytes between devices/, /^same bits$/m],
  'conjugate-gradient': [
    /^(9[89]|100) iterations, residual \d\.\de-11$/m,
    /^bits: \d+$/m,
    /^a plain loop takes (9[89]|100), x is the same$/m,
    /^\d+ ms, the plain loop \d+ ms$/m,
  ],
  heat: [
    /^400 tasks, 30\d{4} bytes between GPUs, \d+ ms$/m,
    /^no more than the edges$/m,
    /^a plain loop takes \d+ ms$/m,
    /^the same heat$/m,
  ],
  'plan-heat': [
    /^planned: 20 tasks, 6144 bytes between GPUs, 0 evictions$/m,
    /^played: 100 times, \d+ ms$/m,
    /^a plain loop takes \d+ ms$/m,
    /^the same heat$/m,
  ],
  'plan-conjugate-gradient': [
    /^3[23] steps of 52 tasks$/m,
    /^residual \d\.\de-\d\d$/m,
    /^x is the exact solution$/m,
  ],
  lu: [
    /^180 tasks, \d+ ms$/m,
    /^largest error \d\.\de-(0?[9]|1[0-9])$/m,
    /^a plain loop takes \d+ ms to triangular form$/m,
  ],
  'edit-distance': [/^99 tasks, distance (\d+), by a plain loop \1$/m],
  quadrature: [/^4592 tasks, 1531 leaves$/m, /^mean 0\.509072619, same bits as recursion$/m],
  'merge-sort': [
    /^157 tasks, \d+ ms$/m,
    /^the sort of typed arrays takes \d+ ms$/m,
    /^the same order$/m,
  ],
  abort: [
    /^\d+ of \d+ tasks$/m,
    /^AbortError: the run was cancelled: enough \(ERR_ABORTED\)$/m,
    /^pinned: 0,0$/m,
    /^other data can still be read: 42$/m,
    /^and the runtime still works: 8 tasks$/m,
  ],
};

describe('examples', () => {
  it('are all listed here', () => {
    const files = readdirSync(path.join(root, 'examples')).filter((file) => file.endsWith('.ts'));
    expect(files.map((file) => file.slice(0, -3)).sort()).toEqual(Object.keys(PROMISES).sort());
  });

  it.each(Object.keys(PROMISES))('%s', async (name) => {
    const program = path.join(root, 'dist', 'examples', `${name}.js`);
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [program], {
      timeout: 20_000,
    });
    expect(stderr).toBe('');
    for (const promise of PROMISES[name]) expect(stdout).toMatch(promise);
  });
});
