// The promises of README, docs/network.md and docs/plans.md about several ranks: the program runs on two, and doctor prints the shown
// output.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { blocks } from '../support/markdown.js';
import { libraries, needing, ranks } from '../support/needs.js';
import { cleanEnvironment, mpirun } from './mpirun.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const main = path.join(root, 'dist/cli/main.js');

async function headrace(args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...args], {
    env: cleanEnvironment({}),
    cwd: root,
    timeout: 60_000,
  });
  return stdout;
}

describe('documentation of several ranks', needing(ranks), () => {
  test.each([
    { page: 'docs/network.md', has: 'TiledMatrix', ranks: 2, printed: ['0 2', '1 2'] },
    { page: 'docs/network.md', has: 'allReduce', ranks: 3, printed: ['0 3', '1 3', '2 3'] },
    { page: 'docs/plans.md', has: '// 2 5.1328125', ranks: 2 },
    { page: 'docs/plans.md', has: '// ring 5.1328125', ranks: 2 },
  ])(
    'the example of $page with $has prints one value on every rank',
    async ({ page, has, ...wanted }) => {
      const folder = mkdtempSync(path.join(root, 'dist', 'snippet-'));
      try {
        const file = path.join(folder, 'program.mjs');
        const entry = pathToFileURL(path.join(root, 'dist/index.js')).href;
        const algorithms = pathToFileURL(path.join(root, 'dist/algorithms/index.js')).href;
        const example = blocks(page, 'js').find((block) => block.includes(has)) ?? '';
        const program = example
          .replaceAll("'headrace'", `'${entry}'`)
          .replaceAll("'headrace/algorithms'", `'${algorithms}'`);
        writeFileSync(file, program);
        const run = await mpirun(wanted.ranks, file, { env: { FORCE_COLOR: '0' } });
        expect(run.code, run.output).toBe(0);
        const { printed = Array(wanted.ranks).fill(has.slice('// '.length)) } = wanted;
        expect(run.output.trim().split('\n').sort()).toEqual(printed);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );

  test.each(libraries)(
    'conjugate gradients print the same bits on any number of ranks of %s',
    async (library) => {
      const example = path.join(root, 'dist/examples/conjugate-gradient.js');
      const alone = await promisify(execFile)(process.execPath, [example], {
        env: cleanEnvironment({}),
      });
      /** Without the line of times. */
      const results = (output: string): string[] =>
        output.split('\n').filter((line) => !line.includes(' ms'));
      expect(results(alone.stdout).filter((line) => line.startsWith('bits: '))).toHaveLength(1);
      for (const count of [2, 3, 4]) {
        const run = await mpirun(count, example, { library, env: { FORCE_COLOR: '0' } });
        expect(run.code, run.output).toBe(0);
        expect(results(run.output)).toEqual(results(alone.stdout));
      }
    },
  );

  test('the two-rank command of the README runs and checks its factor', async () => {
    const [line] = blocks('README.md', 'sh')
      .flatMap((block) => block.split('\n'))
      .filter((each) => each.includes('--ranks 2'));
    const args = (/npm start -- ([^#]*)/.exec(line)?.[1] ?? '').trim().split(/\s+/);
    const size = ['--n', '512', '--tile', '100', '--json'];
    const result = JSON.parse(await headrace(['run', 'cholesky', ...args, ...size]));
    expect(result).toMatchObject({ ok: true, ranks: 2 });
  });

  test.each(['README.md', 'docs/network.md'])(
    'doctor prints the lines that %s shows, but for versions',
    async (page) => {
      const shown = blocks(page, 'text')
        .flatMap((block) => block.split('\n'))
        .filter((line) => /^(MPI|IPC) /.test(line));
      expect(shown).toHaveLength(2);
      // Another library says its name and version; everything else is as shown.
      const bare = (text: string): string => text.replace(/(Open MPI v|MPICH )[\d.a-z]+/g, 'MPI x');
      expect(bare(await headrace(['doctor']))).toContain(bare(shown.join('\n')));
    },
  );

  test('under a launcher doctor prints the lines that docs/network.md shows, but for names and figures', async () => {
    const shown = blocks('docs/network.md', 'text').find((block) => block.startsWith('launch'));
    const run = await mpirun(2, main, { args: ['doctor'], env: { NO_COLOR: '1' } });
    expect(run.code, run.output).toBe(0);
    const bare = (text: string): string[] =>
      text
        .split('\n')
        .filter((line) => /^(launch|host| {2}ways| {2}clocks) /.test(line))
        .map((line) =>
          line
            .replace(/^host \S+ +/, 'host X ')
            .replace(/by .*/, 'by X')
            .replace(/[\d.]+ cores?/, 'X cores')
            .replace(/[\d.]+ (us|ms|s)\b/g, 'X s')
            .replace(/\s+/g, ' '),
        );
    expect(bare(run.output)).toEqual(bare(shown ?? 'no block'));
  });

  test('doctor --json has the keys that scripts look at', async () => {
    const facts = JSON.parse(await headrace(['doctor', '--json']));
    expect(facts).toMatchObject({
      ok: true,
      node: process.versions.node,
      addon: true,
      mpi: {
        found: true,
        library: expect.stringMatching(/MPI/),
        threadLevel: expect.stringMatching(/^(single|funneled|serialized|multiple)$/),
        gpuAware: { claimed: expect.any(Boolean), proven: expect.any(Boolean) },
      },
      ipc: true,
    });
    expect(facts.devices).toContainEqual({
      kind: 'emulated',
      name: expect.any(String),
      memoryBytes: expect.any(Number),
    });
    for (const missing of facts.missing) {
      expect(Object.keys(missing).sort()).toEqual(['disables', 'fix', 'what']);
    }
  });

  test('without mpirun, doctor names the disabled features and the remedy', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [main, 'doctor', '--json'], {
      env: { ...cleanEnvironment({}), PATH: path.join(root, 'docs') },
      timeout: 60_000,
    }).catch((error: { stdout: string }) => error);
    const facts = JSON.parse(stdout);
    expect(facts.mpi.found).toBe(false);
    expect(facts.ipc).toBe(false);
    expect(facts.missing).toContainEqual({
      what: 'MPI',
      disables: expect.stringMatching(/rank/),
      fix: expect.stringContaining('libopenmpi-dev'),
    });
  });
});
