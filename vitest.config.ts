// Test suites as vitest projects; `scripts/test.mjs` runs each by itself and adds up their reports.
import { defineConfig, type ViteUserConfig } from 'vitest/config';
import { filesOf } from './scripts/lib/suites.mjs';

const config: ViteUserConfig = defineConfig({
  test: {
    pool: 'forks', // a crash in native code then ends one worker, not the run
    maxWorkers: 2,
    testTimeout: 30_000,
    projects: [
      {
        extends: true,
        test: { name: 'unit', include: filesOf('unit') },
      },
      {
        extends: true,
        test: { name: 'native', include: filesOf('native') },
      },
      {
        extends: true,
        test: { name: 'native-gpu', include: filesOf('native-gpu') },
      },
      {
        // Type tests sit in a project of their own: `--typecheck.only` on the command line together with
        // projects silently runs the runtime tests instead.
        extends: true,
        test: {
          name: 'types',
          include: [],
          typecheck: {
            enabled: true,
            only: true,
            include: filesOf('types'),
            tsconfig: './tsconfig.json',
          },
        },
      },
      {
        extends: true,
        test: {
          name: 'mpi',
          include: filesOf('mpi'),
          fileParallelism: false,
          testTimeout: 60_000,
        },
      },
    ],
  },
});

export default config;
