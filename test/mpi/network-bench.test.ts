// The programs of the network benchmark run with every library: the stencils give one time per point. Times are not tested.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { expectedRow, type Timed, withMpiProgram } from '../../bench/peer-programs.js';
import { printedByRanks } from '../../bench/ranks.js';
import { LIBRARIES, launcherOf, layers, needing } from '../support/needs.js';

const stencil = fileURLToPath(new URL('../../dist/bench/network-stencil.js', import.meta.url));
const pair = fileURLToPath(new URL('../../dist/bench/network-pair.js', import.meta.url));
const points = ['4x30', '64x20', '1x1'];

describe.each(LIBRARIES)('%s', (library) => {
  const launcher = launcherOf(library) as string;

  const compiler = (): string => launcher.replace(/^mpi(run|exec)(\.hydra)?/, 'mpicxx');

  /** They start many processes, one after the other. */
  const patient = { timeout: 180_000, ...needing(layers[library]) };
  test('both stencils run on 2 and 3 ranks', patient, () => {
    withMpiProgram('mpi_stencil.cpp', compiler(), (byHand) => {
      for (const ranks of [2, 3]) {
        const options = ['--columns', '4', '--points', points.join(',')];
        const own = [['--before', '7'], ['--unrecognised'], ['--played', '--before', '7']].map(
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
    });
  });

  test(
    'the staged way by hand brings the bytes, and prints its rates',
    needing(layers[library]),
    () => {
      withMpiProgram('mpi_staged.cpp', compiler(), (byHand) => {
        const rates = JSON.parse(printedByRanks(2, [byHand, '1'], launcher));
        expect(Object.keys(rates)).toEqual(['whole', 'staged']);
        expect(Math.min(rates.whole, rates.staged)).toBeGreaterThan(0);
      });
    },
  );

  test('a figure of two ranks is measured in processes of its own', patient, () => {
    const words = [pair, '--figure', 'played', '--launcher', launcher];
    const figure = JSON.parse(execFileSync(process.execPath, words, { encoding: 'utf8' }));
    expect(Object.keys(figure)).toEqual(['library', 'raw', 'value', 'ratio']);
    expect(Math.min(figure.raw, figure.value, figure.ratio)).toBeGreaterThan(0);
  });
});

test('a program that fails is an error with its command', needing(layers.openmpi), () => {
  const launcher = launcherOf('openmpi') as string;
  const command = [process.execPath, '-e', 'process.exitCode = 3'] as const;
  expect(() => printedByRanks(2, [...command], launcher)).toThrow(
    /process\.exitCode = 3' ended with code 3/,
  );
});
