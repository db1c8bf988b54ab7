// Empty projects, one for each package manager, into which the tarballs are installed: the commands that install
// packages and start programs. Optional dependencies come from the registry that release:check serves.
import { existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { runCommand, which } from '../lib/command.mjs';

/** Programs that package managers need to start a program. Neither a compiler nor cmake is among them. */
const plain = [
  'sh',
  'env',
  'dirname',
  'basename',
  'sed',
  'uname',
  'cat',
  'readlink',
  'mkdir',
  'rm',
];

/** A folder of links that is a complete PATH: Node, its package managers, and the plain programs. */
export function pathWithoutCompiler(folder, node, tool) {
  const bin = mkdtempSync(path.join(folder, 'bin-'));
  const programs = {
    node,
    npm: which('npm'),
    npx: which('npx'),
    pnpm: tool('pnpm', 'bin', 'pnpm.cjs'),
    ...Object.fromEntries(plain.map((name) => [name, which(name)])),
  };
  for (const [name, file] of Object.entries(programs)) {
    if (file !== undefined && existsSync(file)) symlinkSync(file, path.join(bin, name));
  }
  return bin;
}

/**
 * @typedef {object} Manager
 * @property {(address: string) => Record<string, string>} files settings of the project, by file name
 * @property {(tarball: string) => string[]} install
 * @property {string[]} start words before `headrace`
 * @property {string[]} node words before a script
 * @property {boolean} [isPlugAndPlay] with Node 20 it does not find the packages that a required ES module imports
 */

const scoped = (address) => ({ '.npmrc': `@headrace:registry=${address}/\n` });
const ignoreScripts = '--ignore-scripts';

/** @param {(...parts: string[]) => string} tool @returns {Record<string, Manager>} */
export function managers(tool) {
  const yarn = ['node', tool('@yarnpkg', 'cli-dist', 'bin', 'yarn.js')];
  const classic = ['node', tool('yarn', 'bin', 'yarn.js')];
  const berry = (linker) => ({
    files: (address) => ({
      'yarn.lock': '',
      '.yarnrc.yml': [
        `nodeLinker: ${linker}`,
        'enableTelemetry: false',
        'enableGlobalCache: false',
        // Not the folder in the home folder: it may hold packages of an earlier check with the same version.
        'globalFolder: ../yarn',
        'enableScripts: false',
        'unsafeHttpWhitelist: ["127.0.0.1"]',
        `npmScopes: { headrace: { npmRegistryServer: "${address}" } }`,
        '',
      ].join('\n'),
    }),
    install: (tarball) => [...yarn, 'add', `headrace@file:${tarball}`],
    start: [...yarn, 'headrace'],
    node: [...yarn, 'node'],
    isPlugAndPlay: linker === 'pnp',
  });
  return {
    npm: {
      files: scoped,
      install: (tarball) => ['npm', 'install', tarball],
      start: ['npx', 'headrace'],
      node: ['node'],
    },
    'npm --ignore-scripts': {
      files: scoped,
      install: (tarball) => ['npm', 'install', ignoreScripts, tarball],
      start: ['npx', 'headrace'],
      node: ['node'],
    },
    pnpm: {
      files: scoped,
      install: (tarball) => ['pnpm', 'add', ignoreScripts, tarball],
      start: ['pnpm', 'exec', 'headrace'],
      node: ['node'],
    },
    'yarn 1': {
      files: scoped,
      install: (tarball) => [...classic, 'add', ignoreScripts, `file:${tarball}`],
      start: [...classic, '-s', 'headrace'],
      node: ['node'],
    },
    'yarn 4, node_modules': berry('node-modules'),
    'yarn 4, plug and play': berry('pnp'),
  };
}

/** A project in a folder of its own; `run` and `must` start programs in it with that PATH and without npm's variables. */
export class Project {
  constructor({ folder, name, manager, address, bin }) {
    this.name = name;
    this.manager = manager;
    this.folder = mkdtempSync(path.join(folder, 'project-'));
    const inherited = Object.entries(process.env).filter(
      ([key]) =>
        !/^(npm_|OMPI_|PMIX_|PMI_|INIT_CWD$|NODE_OPTIONS$|HEADRACE_)/i.test(key) ||
        /^NPM_CONFIG_/.test(key) ||
        /^OMPI_ALLOW/.test(key),
    );
    this.env = { ...Object.fromEntries(inherited), PATH: bin, NO_COLOR: '1', CI: '1' };
    mkdirSync(this.folder, { recursive: true });
    this.write('package.json', '{ "name": "project", "private": true }\n');
    for (const [file, text] of Object.entries(manager.files(address))) this.write(file, text);
  }

  write(file, text) {
    writeFileSync(path.join(this.folder, file), text);
  }

  /** Runs words as a program; resolves with its code and output. */
  run(words, env = {}) {
    return runCommand(words[0], words.slice(1), {
      cwd: this.folder,
      env: { ...this.env, ...env },
      timeoutMs: 600_000,
    });
  }

  /** Runs words; throws with the output unless the program ends with 0. Resolves with its standard output. */
  async must(words, env = {}) {
    const { code, output, stdout } = await this.run(words, env);
    if (code !== 0) throw new Error(`${words.join(' ')} ended with ${code}:\n${output}`);
    return stdout;
  }

  install(tarball) {
    return this.must(this.manager.install(tarball));
  }

  /** Runs `headrace` as a user of this package manager does. */
  headrace(...args) {
    return this.must([...this.manager.start, ...args]);
  }
}
