// The package works where the optional `@opentelemetry/api` is not installed: no span, no failure.
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

test('runs without @opentelemetry/api', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-bare-'));
  try {
    cpSync(path.join(root, 'dist'), path.join(folder, 'dist'), { recursive: true });
    cpSync(path.join(root, 'package.json'), path.join(folder, 'package.json'));
    symlinkSync(path.join(root, 'build'), path.join(folder, 'build'));
    const modules = path.join(folder, 'node_modules');
    mkdirSync(path.join(modules, '@dagrejs'), { recursive: true });
    for (const name of ['eventemitter3', '@dagrejs/graphlib']) {
      symlinkSync(path.join(root, 'node_modules', name), path.join(modules, name));
    }
    const program = path.join(folder, 'program.mjs');
    writeFileSync(
      program,
      `import { Runtime } from './dist/index.js';
       const runtime = await Runtime.create({ workers: 1 });
       const report = await runtime.run(() => {});
       await runtime.close();
       console.log('tasks', report.tasks);`,
    );
    expect(() => createRequire(program).resolve('@opentelemetry/api')).toThrow();
    const { stdout } = await promisify(execFile)(process.execPath, [program], { timeout: 60_000 });
    expect(stdout).toBe('tasks 0\n');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
