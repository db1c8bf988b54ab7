// The test suites: npm test runs them, and the configuration of vitest makes a project of each suite with folders.
// Invariant: a folder of tests is in one suite (test/scripts/test-command.test.ts).

/** Folders whose tests need no addon, or a loadable one. */
const unitFolders = [
  'scheduler',
  'stages',
  'devices',
  'simulated',
  'trace',
  'algorithms',
  'cli',
  'scripts',
  'docs',
  'oracles',
  'examples',
  'bench',
].map((room) => `test/${room}`);

/**
 * Suites in their order. A suite without sources is left out. A suite that exceeds its minutes is ended and counts as
 * failed, because vitest's own limits do not end code that is stuck in native threads. The limits are twice what the suites take
 * on two cores, so that a busy machine does not reach them.
 */
export const suites = {
  unit: { minutes: 30, folders: unitFolders, ending: '.test.ts' },
  native: { minutes: 20, folders: ['test/native'], ending: '.test.ts' },
  cpp: { minutes: 10, sources: 'native/test/main.cpp', program: 'build-tests/headrace_tests' },
  gpu: { minutes: 15, sources: 'native/stub/stub.cmake', script: 'scripts/gpu-native-tests.mjs' },
  sanitizers: { minutes: 25, sources: 'native/stub/stub.cmake', script: 'scripts/sanitizers.mjs' },
  'native-gpu': { minutes: 15, folders: ['test/native-gpu'], ending: '.test.ts' },
  types: { minutes: 15, folders: ['test/types'], ending: '.test-d.ts' },
  mpi: { minutes: 30, folders: ['test/mpi'], ending: '.test.ts' },
  // Random simulated cases for a fixed time: one test.
  soak: {
    minutes: 3,
    sources: 'scripts/soak.mjs',
    script: 'scripts/soak.mjs',
    options: ['--seconds', '30', '--test'],
  },
};

/** Patterns of the test files of a suite with folders. */
export const filesOf = (name) => {
  const { folders, ending } = suites[name];
  return folders.map((folder) => `${folder}/**/*${ending}`);
};
