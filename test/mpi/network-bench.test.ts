// The programs of the network benchmark run with every library: the stencils give one time per point. Times are not tested.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { compileMpiStencil, expectedRow, type Timed } from '../../bench/peer-programs.js';
import { printedByRanks } from '../../bench/ranks.js';
import { LIBRARIES, launcherOf, layers, needing } from '../support/needs.js';

const stencil = fileURLToPath(new URL('../../dist/bench/network-stencil.js', import.meta.url));
const points = ['4x30', '64x20', '1x1'];

describe.each(LIBRARIES)('%s', (library) => {
  test('both stencils run on 2 and 3 ranks', needing(layers[library]), () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'headrace-stencil-'));
    try {
      const byHand = path.join(folder, 'stencil');
      const launcher = launcherOf(library) as string;
      const compiler = launcher.replace(/^mpi(run|exec)(\.hydra)?/, 'mpicxx');
      compileMpiStencil(compiler, byHand);
      for (const ranks of [2, 3]) {
        const options = ['--columns', '4', '--points', points.join(',')];
        const own = [[], ['--recognised', '--before', '7'], ['--played', '--before', '7']].map(
          (more) =>
            JSON.parse(
              printedByRanks(ranks, [process.execPath, stencil, ...options, ...more], launcher),
            ),
        );
        const row = [String(ranks), String(4 * ranks), ...points];
        const timed = JSON.parse(printedByRanks(ranks, [byHand, ...row], launcher)) as Timed[];
        const byHands = timed.map((each) => each.seconds);
        for (const seconds of [...own, byHands]) {
          expect(seconds).toHaveLength(points.length);
          expect(Math.min(...seconds)).toBeGreaterThan(0);
        }
        const rows = JSON.parse(printedByRanks(ranks, [byHand, '--check', ...row], launcher));
        expect(rows).toEqual([30, 20, 1].map((steps) => expectedRow(4 * ranks, steps)));
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

test('a program that fails is an error with its command', needing(layers.openmpi), () => {
  const launcher = launcherOf('openmpi') as string;
  const command = [process.execPath, '-e', 'process.exitCode = 3'] as const;
  expect(() => printedByRanks(2, [...command], launcher)).toThrow(
    /process\.exitCode = 3' ended with code 3/,
  );
});
