// The generated C++ header must say what native/contract.ts says.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

test('contract.h is what generate-contract.mjs makes of contract.ts', () => {
  const script = fileURLToPath(new URL('../../scripts/generate-contract.mjs', import.meta.url));
  expect(() =>
    execFileSync(process.execPath, [script, '--check'], { stdio: 'pipe' }),
  ).not.toThrow();
});
