// Installations with a missing part: the error names the cause, and the printed command is run unchanged and repairs it.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { programsRun, readmeExample } from './promises.mjs';
import { checkVariables } from './variables.mjs';

/** The remedy at the end of a message: the text in the last parentheses. */
export function remedyOf(message) {
  const match = /\(([^()]+)\)(?: \[\w+\])?\s*$/m.exec(message);
  assert.ok(match, `no remedy in: ${message}`);
  return match[1];
}

const platformFolder = (project) =>
  path.join(project.folder, 'node_modules', '@headrace', `${process.platform}-${process.arch}`);

/** The platform package was left out: the error says so, and the package manager installs it again. */
export async function withoutOptional(project, install, remedy) {
  await project.must(install);
  project.write('readme.mjs', readmeExample());
  const { code, output } = await project.run(['node', 'readme.mjs']);
  assert.notEqual(code, 0);
  assert.match(output, /ERR_NATIVE_MISSING/);
  assert.match(output, /package @headrace\/linux-\w+ [\d.]+ is not installed/);
  const shown = await project.run([...project.manager.start, 'run', 'cholesky']);
  assert.equal(remedyOf(shown.output), remedy);
  const diagnosis = await project.run([...project.manager.start, 'doctor', '--json']);
  const { missing } = JSON.parse(diagnosis.stdout);
  const fix = missing.find(({ what }) => what === 'native addon')?.fix;
  assert.equal(fix, remedy);
  await project.must(['sh', '-c', fix]);
  await programsRun(project);
}

/** The registry did not have the platform package: the error says so, and its remedy is a build from source. */
export async function notFound(project, tarball) {
  await project.must(['npm', 'install', tarball]);
  const { code, output } = await project.run([...project.manager.start, 'run', 'cholesky']);
  assert.notEqual(code, 0);
  assert.match(output, /npm did not find the package @headrace\/linux-\w+/);
  assert.match(remedyOf(output), /^.*apt-get install .*cmake g\+\+ make && npx headrace build$/);
}

/** The platform package has another version: it is not loaded. */
export async function otherVersion(project) {
  const file = path.join(platformFolder(project), 'package.json');
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replace(/"version": "[^"]+"/, '"version": "0.0.1"'));
  const { code, output } = await project.run(['node', 'readme.mjs']);
  writeFileSync(file, text);
  assert.notEqual(code, 0);
  assert.match(output, /ERR_NATIVE_MISSING/);
  assert.match(output, /its version is 0\.0\.1/);
}

/** Without tools, `headrace build` names the missing tools and the command that installs them. */
export async function buildWithoutTools(project) {
  const { code, output } = await project.run([...project.manager.start, 'build']);
  assert.equal(code, 1, output);
  assert.match(output, /cmake and g\+\+ and make not found on PATH/);
  assert.match(remedyOf(output), /apt-get install .*cmake g\+\+ make && npx headrace build$/);
}

/**
 * Addon and message layer are missing: the command that `doctor` prints is run, and then two ranks work together. `PATH`
 * has the tools.
 */
export async function builtFromSource(project, PATH) {
  const env = { PATH };
  const ask = async () => {
    const { stdout } = await project.run([...project.manager.start, 'doctor', '--json'], env);
    return JSON.parse(stdout);
  };
  const fixes = (await ask()).missing.filter(({ what }) => /MPI|addon/.test(what));
  const fix = 'npx headrace build';
  assert.deepEqual(
    fixes.map((each) => [each.what, each.fix]),
    [
      ['native addon', fix],
      ['MPI', fix],
    ],
  );
  await project.must(['sh', '-c', fix], env);
  const folder = path.join(project.folder, 'node_modules', 'headrace', 'build', 'Release');
  const built = readdirSync(folder);
  assert.ok(built.includes('headrace.node') && built.includes('mpi.node'), built.join(', '));
  for (const file of built) assert.deepEqual(checkVariables(path.join(folder, file)), []);
  const { mpi, ok } = await ask();
  assert.deepEqual({ ok, found: mpi.found }, { ok: true, found: true });
  const words = ['run', 'cholesky', '--n', '512', '--tile', '64', '--ranks', '2', '--gpus', '1'];
  const text = await project.must([...project.manager.start, ...words, '--json'], env);
  const result = JSON.parse(text);
  assert.deepEqual({ ok: result.ok, ranks: result.ranks }, { ok: true, ranks: 2 });
}
