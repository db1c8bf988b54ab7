// Plans on several ranks: random programs against the same tasks inserted, plays that fail, and traces of plays.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadTrace, summarize } from '../../trace/index.js';
import { LIBRARIES, layers, needing, over } from '../support/needs.js';
import { mpirun } from './mpirun.js';

const CASES = [
  { ranks: 2, first: 1, seeds: 25 },
  { ranks: 3, first: 101, seeds: 15, inlineBytes: 64 },
  { ranks: 2, first: 201, seeds: 15, inlineBytes: 64, gpus: 1 },
  { ranks: 3, first: 301, seeds: 10, gpus: 2, gpuMemory: '64KiB', lanes: 2 },
  { ranks: 5, first: 401, seeds: 8, inlineBytes: 64, treeFrom: 2, lanes: 5 },
];

/** Plans that are saved and loaded. */
const FILES = [
  { ranks: 2, first: 501, seeds: 15 },
  { ranks: 2, first: 601, seeds: 10, inlineBytes: 64, gpus: 1, gpuMemory: '64KiB' },
  { ranks: 4, first: 701, seeds: 8, inlineBytes: 64, treeFrom: 2, lanes: 5 },
];

for (const library of LIBRARIES)
  describe(`plans over ${library}`, needing(layers[library]), () => {
    // The third has messages from GPUs, the last one trees and five ranks.
    test.each(over(library, CASES, [CASES[2], CASES[4]]))(
      '$ranks ranks from seed $first: what is played is what is inserted',
      async ({ ranks, ...options }) => {
        const run = await mpirun(ranks, 'plans.mjs', { library, args: [JSON.stringify(options)] });
        expect(run.code, run.output).toBe(0);
        expect(run.reports, run.output).toHaveLength(ranks);
        let messages = 0;
        for (const report of run.reports) {
          expect(report, run.output).toMatchObject({ ranks, problems: [] });
          messages += report['messages'] as number;
        }
        expect(messages).toBeGreaterThan(20);
      },
    );

    // Of the loaded ones, two ranks have messages from GPUs, and four have trees.
    test.each(over(library, FILES, FILES.slice(1)))(
      '$ranks ranks from seed $first: what is loaded is what is inserted',
      async ({ ranks, ...options }) => {
        const folder = mkdtempSync(path.join(tmpdir(), 'headrace-plans-'));
        try {
          const args = [JSON.stringify({ ...options, folder })];
          const run = await mpirun(ranks, 'plans.mjs', { library, args });
          expect(run.code, run.output).toBe(0);
          expect(run.reports, run.output).toHaveLength(ranks);
          for (const report of run.reports)
            expect(report, run.output).toMatchObject({ ranks, problems: [] });
        } finally {
          rmSync(folder, { recursive: true });
        }
      },
    );

    test.each([2, 4])(
      '%i ranks: a part that cannot be loaded on one rank is refused on all',
      async (ranks) => {
        const folder = mkdtempSync(path.join(tmpdir(), 'headrace-plans-'));
        try {
          const run = await mpirun(ranks, 'plan-files.mjs', { library, args: [folder] });
          expect(run.code, run.output).toBe(0);
          expect(run.reports, run.output).toHaveLength(ranks);
          for (const report of run.reports)
            expect(report, run.output).toMatchObject({ ranks, problems: [] });
        } finally {
          rmSync(folder, { recursive: true });
        }
      },
    );

    test.each([{ ranks: 2 }, { ranks: 3, inlineBytes: 64 }])(
      '$ranks ranks: a play that fails or is aborted on one rank ends on all',
      async ({ ranks, ...options }) => {
        const run = await mpirun(ranks, 'plan-failures.mjs', {
          library,
          args: [JSON.stringify(options)],
        });
        expect(run.code, run.output).toBe(0);
        expect(run.reports, run.output).toHaveLength(ranks);
        for (const report of run.reports)
          expect(report, run.output).toMatchObject({ ranks, problems: [] });
      },
    );

    test('a trace has the tasks and the messages of every iteration', async () => {
      const folder = mkdtempSync(path.join(tmpdir(), 'headrace-plans-'));
      try {
        const env = { HEADRACE_TRACE: path.join(folder, 'ring.hrtrace') };
        const run = await mpirun(2, 'plan-trace.mjs', { library, env });
        expect(run.code, run.output).toBe(0);
        for (const report of run.reports)
          expect(report).toMatchObject({ sent: 1, received: 1, tasks: 1 });
        const files = [0, 1].map((rank) => path.join(folder, `ring.${rank}.hrtrace`));
        const { classes, plans } = summarize(loadTrace(files));
        const tasks = (name: string): number =>
          classes.find((each) => each.name === name)?.count ?? 0;
        // Before the play tile 0 is brought to its reader.
        expect(['axpy', 'send', 'receive'].map(tasks)).toEqual([80, 81, 81]);
        expect(plans).toMatchObject([{ iterations: 80, tasks: 240 }]);
      } finally {
        rmSync(folder, { recursive: true });
      }
    });

    test('a trace of a play with a condition has the iterations that were played, and the messages of the number', async () => {
      const folder = mkdtempSync(path.join(tmpdir(), 'headrace-plans-'));
      try {
        const env = { HEADRACE_TRACE: path.join(folder, 'while.hrtrace') };
        const args = [JSON.stringify({ below: 1e3, every: 2 })];
        const run = await mpirun(2, 'plan-trace.mjs', { library, env, args });
        expect(run.code, run.output).toBe(0);
        // Tile 0 grows by a half of tile 1, which grows by a half of tile 0.
        let iterations = 0;
        for (let [x, y] = [0, 1]; iterations % 2 !== 0 || x < 1e3; iterations++) {
          y += 0.5 * x;
          x += 0.5 * y;
        }
        for (const report of run.reports) expect(report).toMatchObject({ iterations });
        const files = [0, 1].map((rank) => path.join(folder, `while.${rank}.hrtrace`));
        const { classes, plans } = summarize(loadTrace(files));
        const tasks = (name: string): number =>
          classes.find((each) => each.name === name)?.count ?? 0;
        // In each iteration both ranks send a tile, and the owner of tile 0 sends the number.
        expect(['axpy', 'send', 'receive'].map(tasks)).toEqual([
          2 * iterations,
          ...[3 * iterations + 1, 3 * iterations + 1],
        ]);
        expect(plans).toMatchObject([{ iterations: 2 * iterations, tasks: 8 * iterations }]);
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  });
