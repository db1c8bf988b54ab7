// The promises of an installed package, on every kind of installation: each function checks one promise and throws if it
// is broken.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { copyFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './platforms.mjs';

const consumer = (name) => fileURLToPath(new URL(`consumers/${name}`, import.meta.url));

/** The example of the README, exactly as printed there. */
export function readmeExample() {
  const text = readFileSync(path.join(root, 'README.md'), 'utf8');
  return /## Twenty lines\n+```js\n([\s\S]*?)```/.exec(text)[1];
}

/** The README's example prints the output in its comment; a CommonJS program gets the same module. */
export async function programsRun(project) {
  project.write('readme.mjs', readmeExample());
  const printed = await project.must([...project.manager.node, 'readme.mjs']);
  assert.equal(printed.trim(), '20 11');
  const version = await project.must([...project.manager.node, '-p', 'process.versions.node']);
  if (project.manager.isPlugAndPlay && version.startsWith('20.')) return;
  copyFileSync(consumer('require.cjs'), path.join(project.folder, 'require.cjs'));
  const required = await project.must([...project.manager.node, 'require.cjs']);
  assert.equal(required.trim(), '1 true function function');
}

/** `headrace run cholesky` computes the right result, records a trace, and shows its progress. */
export async function cholesky(project) {
  const size = ['--n', '512', '--tile', '64'];
  const words = ['run', 'cholesky', ...size, '--watch', '--trace', 'run.hrtrace', '--json'];
  const result = JSON.parse(await project.headrace(...words));
  assert.equal(result.ok, true);
  assert.ok(result.backwardError < 1e-14, `backward error ${result.backwardError}`);
}

/** The page of a trace is complete: program, style and data are in it. */
function isPage(text) {
  assert.match(text, /^<!doctype html>/i);
  assert.match(text, /potrf/);
  assert.ok(text.length > 50_000, `the page has ${text.length} characters`);
}

/** Every trace command works: summary, page, exports, simulation. */
export async function traces(project) {
  assert.match(await project.headrace('trace', 'summary', 'run.hrtrace'), /makespan/i);
  await project.headrace('trace', 'html', 'run.hrtrace', '-o', 'run.html');
  isPage(readFileSync(path.join(project.folder, 'run.html'), 'utf8'));
  await project.headrace(
    'trace',
    'export',
    'run.hrtrace',
    '--format',
    'perfetto',
    '-o',
    'run.pftrace',
  );
  const simulated = await project.headrace('simulate', 'cholesky', '--n', '8192', '--json');
  assert.equal(JSON.parse(simulated).ok, true);
}

/** `headrace trace view` serves the page until it is interrupted. */
export async function viewer(project) {
  const [program, ...args] = [
    ...project.manager.start,
    'trace',
    'view',
    'run.hrtrace',
    '--no-open',
  ];
  const child = spawn(program, args, {
    cwd: project.folder,
    env: project.env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise((resolve) => child.on('close', resolve));
  try {
    const address = await new Promise((resolve, reject) => {
      let text = '';
      const take = (chunk) => {
        text += chunk;
        const match = /http:\/\/127\.0\.0\.1:\d+\//.exec(text);
        if (match !== null) resolve(match[0]);
      };
      child.stdout.on('data', take);
      child.stderr.on('data', take);
      child.on('close', () => reject(new Error(`trace view ended:\n${text}`)));
    });
    isPage(await (await fetch(address)).text());
  } finally {
    if (child.exitCode === null) process.kill(-child.pid, 'SIGINT');
    await ended;
  }
}

/** The doctor finds the addon. */
export async function doctor(project) {
  const { ok, addon } = JSON.parse(await project.headrace('doctor', '--json'));
  assert.deepEqual({ ok, addon }, { ok: true, addon: true });
}

/** A project of `headrace new` starts, tests and traces. The projects of this check have installed the package. */
export async function newProject(project) {
  await project.headrace('new', 'made');
  const made = path.join(project.folder, 'made');
  for (const [file, words] of [
    ['program.js', [...project.manager.start, 'run', '--watch', '--trace', 'made.hrtrace']],
    ['sums.test.js', [...project.manager.node, '--test']],
  ]) {
    await project.must([...words, path.join(made, file)]);
  }
  // Of the tasks that free a block there are as many as blocks that were still in use.
  assert.match(await project.headrace('trace', 'summary', 'made.hrtrace'), /^fill +100 /m);
}

/** Only packages that run are installed: `npm ls` names them. */
export async function dependencies(project) {
  const listed = JSON.parse(await project.must(['npm', 'ls', '--omit=dev', '--all', '--json']));
  const names = new Set();
  const visit = ({ dependencies = {} }) => {
    for (const [name, each] of Object.entries(dependencies)) {
      if (each.version === undefined) continue; // an optional one that is not there
      names.add(name);
      visit(each);
    }
  };
  visit(listed);
  const platform = `@headrace/${process.platform}-${process.arch}`;
  assert.deepEqual([...names].sort(), ['@dagrejs/graphlib', platform, 'eventemitter3', 'headrace']);
}

/** Programs in TypeScript compile, with the declarations checked, as modules and for a bundler, and as CommonJS. */
export async function types(project, compilers) {
  for (const file of ['types.ts', 'types-require.cts']) {
    copyFileSync(consumer(file), path.join(project.folder, file));
  }
  project.write(
    'package.json',
    readFileSync(path.join(project.folder, 'package.json'), 'utf8').replace(
      '{',
      '{ "type": "module",',
    ),
  );
  const cases = [
    ['nodenext', 'nodenext', ['types.ts'], '5.2'],
    ['esnext', 'bundler', ['types.ts'], '5.2'],
    ['nodenext', 'nodenext', ['types-require.cts'], '5.8'],
  ];
  for (const { version, program } of compilers) {
    for (const [module, moduleResolution, files, since] of cases) {
      if (version.localeCompare(since, 'en', { numeric: true }) < 0) continue;
      const settings = {
        noEmit: true,
        strict: true,
        target: 'es2022',
        types: [],
        skipLibCheck: false,
      };
      project.write(
        'tsconfig.json',
        JSON.stringify({ compilerOptions: { ...settings, module, moduleResolution }, files }),
      );
      await project.must(['node', program, '-p', 'tsconfig.json']);
    }
  }
}
