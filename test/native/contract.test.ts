// The generated C++ header must agree with native/contract.ts.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

test('contract.h is the output of generate-contract.mjs for contract.ts', () => {
  const script = fileURLToPath(new URL('../../scripts/generate-contract.mjs', import.meta.url));
  expect(() =>
    execFileSync(process.execPath, [script, '--check'], { stdio: 'pipe' }),
  ).not.toThrow();
});
