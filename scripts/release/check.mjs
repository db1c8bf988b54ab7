// Makes the tarballs, installs them in empty projects like a user, and checks the promises of README and
// docs/installation.md about an installed package. The PATH of the projects has no compiler, unless a check needs one.
//
// usage: npm run release:check [-- --npm-only] [-- --help]
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isEnding, runCommand, which } from '../lib/command.mjs';
import { commandLine } from '../lib/command-line.mjs';
import { prepare } from '../lib/prepare.mjs';
import { packAll } from './pack.mjs';
import { readManifest, root } from './platforms.mjs';
import { managers, Project, pathWithoutCompiler } from './projects.mjs';
import * as promise from './promises.mjs';
import { serveRegistry } from './registry.mjs';
import * as state from './states.mjs';
import { installTools, nodesOf } from './tools.mjs';

const usage = `usage: node scripts/release/check.mjs [--npm-only] [--help]

Makes the tarballs, installs them in empty projects, and checks the promises about an installed package:
with npm, pnpm and yarn, under Node 20, 22 and 24, as ES modules, CommonJS and TypeScript; runs publint
and are-the-types-wrong.

  --npm-only   only npm and the Node this runs with (about two minutes)
  --help       this text
`;

const failures = [];
let passed = 0;
let skipped = 0;

/** Runs one check and prints how it ended; a failure does not stop the other checks. */
async function check(name, work) {
  if (isEnding()) return;
  const begin = Date.now();
  try {
    await work();
    passed++;
    process.stdout.write(`ok      ${name} (${((Date.now() - begin) / 1000).toFixed(1)} s)\n`);
  } catch (error) {
    failures.push(name);
    process.stdout.write(`FAILED  ${name}\n${error.stack ?? error}\n`);
  }
}

function skip(name, reason) {
  skipped++;
  process.stdout.write(`skipped ${name}: ${reason}\n`);
}

async function lint(tarballs, tool) {
  const must = async (words) => {
    const { code, output } = await runCommand(process.execPath, words, { cwd: root });
    if (code !== 0) throw new Error(output);
  };
  const publint = tool('publint', 'src', 'cli.js');
  const attw = tool('@arethetypeswrong', 'cli', 'dist', 'index.js');
  for (const file of Object.values(tarballs)) {
    await check(`publint ${path.basename(file)}`, () => must([publint, 'run', file, '--strict']));
  }
  // `require` in CommonJS programs returns the ES module; every supported version of Node can do this.
  const accepted = ['--profile', 'node16', '--ignore-rules', 'cjs-resolves-to-esm'];
  await check('are the types wrong', () => must([attw, tarballs.main, ...accepted]));
}

/** Checks all promises of one installation. */
async function installation(project, tarball) {
  const say = (what) => `${project.name}: ${what}`;
  await check(say('install'), () => project.install(tarball));
  await check(say('README example, require'), () => promise.programsRun(project));
  await check(say('run cholesky'), () => promise.cholesky(project));
  await check(say('new project'), () => promise.newProject(project));
  await check(say('traces, simulation'), () => promise.traces(project));
  await check(say('viewer'), () => promise.viewer(project));
  await check(say('doctor'), () => promise.doctor(project));
}

/** Checks only with npm: dependencies, types, and installations with missing parts. */
async function throughNpm(make, { main, platform }, tool) {
  const project = make('npm --ignore-scripts');
  await installation(project, main);
  await check('npm: runtime dependencies', () => promise.dependencies(project));
  await check('npm: types', () => promise.types(project, compilersOf(tool)));
  await check('npm: build without tools', () => state.buildWithoutTools(project));
  await check('npm: another version of the addon', () => state.otherVersion(project));
  const sparse = make('npm');
  const omit = ['npm', 'install', '--omit=optional', main];
  const include = 'npm install --include=optional';
  await check('npm: --omit=optional and back', () => state.withoutOptional(sparse, omit, include));
  const local = make('npm', { address: 'http://127.0.0.1:9' });
  await check('npm: both tarballs, no registry', async () => {
    await local.must(['npm', 'install', main, platform]);
    await promise.programsRun(local);
  });
  await withoutPackage(make, main);
}

/** The registry has no platform package: the error says so, and a build from source makes everything. */
async function withoutPackage(make, main) {
  const empty = await serveRegistry([main]);
  try {
    const project = make('npm', empty);
    await check('npm: no package for the platform', () => state.notFound(project, main));
    const tools = ['cmake', 'g++', 'mpicc', 'mpirun'].filter((name) => which(name) === undefined);
    const name = 'npm: addon and message layer from source';
    const required = (process.env['HEADRACE_TEST_REQUIRE'] ?? '').split(',');
    if (tools.length > 0 && !required.includes('openmpi')) {
      skip(name, `${tools.join(', ')} not found`);
    } else {
      await check(name, () => state.builtFromSource(project, process.env['PATH']));
    }
  } finally {
    await empty.close();
  }
}

/** TypeScript of this project, and older versions if they are installed. */
function compilersOf(tool) {
  const folders = [
    path.join(root, 'node_modules', 'typescript'),
    ...['typescript-5.4', 'typescript-5.9'].map((name) => tool(name)).filter(existsSync),
  ];
  return folders.map((folder) => ({
    version: readManifest(folder).version,
    program: path.join(folder, 'bin', 'tsc'),
  }));
}

async function main(onlyNpm) {
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-release-'));
  let registry;
  try {
    let tarballs;
    await check('tarballs and their contents', async () => {
      tarballs = await packAll(path.join(folder, 'tarballs'));
    });
    if (tarballs === undefined) return;
    const tool = await installTools(!onlyNpm);
    registry = await serveRegistry(Object.values(tarballs));
    const all = managers(tool);
    const makeFor =
      (node, label) =>
      (name, { address } = registry) => {
        const bin = pathWithoutCompiler(folder, node, tool);
        return new Project({ folder, name: label(name), manager: all[name], address, bin });
      };
    await lint(tarballs, tool);
    await throughNpm(
      makeFor(process.execPath, (name) => name),
      tarballs,
      tool,
    );
    if (onlyNpm) return;
    const sparse = makeFor(process.execPath, (name) => name)('pnpm');
    const omit = ['pnpm', 'add', '--no-optional', '--ignore-scripts', tarballs.main];
    await check('pnpm: --no-optional and back', () =>
      state.withoutOptional(sparse, omit, 'pnpm install --force'),
    );
    for (const { name: version, program } of nodesOf(tool)) {
      const make = makeFor(program, (name) => `${version}, ${name}`);
      for (const name of Object.keys(all)) await installation(make(name), tarballs.main);
    }
  } finally {
    await registry?.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

const { values } = commandLine(usage, { 'npm-only': { type: 'boolean' } });
await prepare();
await main(values['npm-only'] === true);
const failed = failures.length;
process.stdout.write(`release: ${passed} passed, ${failed} failed, ${skipped} skipped\n`);
process.exitCode = failed > 0 || isEnding() ? 1 : 0;
