// Test suites as vitest projects; `scripts/test.mjs` runs each by itself and adds up their reports.
import { defineConfig, type ViteUserConfig } from 'vitest/config';

const unitRooms =
  'scheduler,stages,devices,simulated,trace,algorithms,cli,scripts,docs,oracles,examples,bench';

const config: ViteUserConfig = defineConfig({
  test: {
    pool: 'forks', // a crash in native code then ends one worker, not the run
    maxWorkers: 2,
    testTimeout: 30_000,
    projects: [
      {
        extends: true,
        test: { name: 'unit', include: [`test/{${unitRooms}}/**/*.test.ts`] },
      },
      {
        extends: true,
        test: { name: 'native', include: ['test/native/**/*.test.ts'] },
      },
      {
        extends: true,
        test: { name: 'native-gpu', include: ['test/native-gpu/**/*.test.ts'] },
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
            include: ['test/types/**/*.test-d.ts'],
            tsconfig: './tsconfig.json',
          },
        },
      },
      {
        extends: true,
        test: {
          name: 'mpi',
          include: ['test/mpi/**/*.test.ts'],
          fileParallelism: false,
          testTimeout: 60_000,
        },
      },
    ],
  },
});

export default config;
