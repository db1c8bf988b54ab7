// One rank fails; every other rank soon gets an error that names it, and no rank hangs.
import { spawnSync } from 'node:child_process';
import { describe, expect, test, vi } from 'vitest';
import { LIBRARIES, layers, needing } from '../support/needs.js';
import { mpirun, type RankResult } from './mpirun.js';

interface Failure {
  readonly code?: string;
  readonly message: string;
  readonly from: number | null;
}
interface Entry {
  readonly rank: number;
  readonly seconds: number;
  readonly first?: Failure;
  readonly again?: number;
  readonly refused?: string;
  /** Bytes this rank had got, and of how many. */
  readonly received?: number;
  readonly of?: number;
}

const WHO = 1;
const entries = (run: RankResult): Entry[] => run.reports as unknown as Entry[];
const firsts = (run: RankResult): Entry[] =>
  entries(run).filter(({ first }) => first !== undefined);

for (const library of LIBRARIES)
  describe(`failures over ${library}`, needing(layers[library]), () => {
    test.each([
      ['throw', 'push'],
      ['throw', 'pull'],
      ['program', 'push'],
      ['program', 'pull'],
      ['mismatch', 'push'],
      ['mismatch', 'pull'],
      ['pruned', 'push'],
    ])('%s: all ranks reject, then run again (%s)', async (way, fetch) => {
      const run = await mpirun(3, 'failures.mjs', {
        library,
        args: [JSON.stringify({ way, who: WHO, fetch })],
      });
      expect(run.code, run.output).toBe(0);
      expect(firsts(run), run.output).toHaveLength(3);
      for (const { rank, first, seconds } of firsts(run)) {
        expect(seconds).toBeLessThan(5);
        if (way === 'mismatch' || way === 'pruned') {
          expect(first?.code, run.output).toBe('ERR_GRAPH_MISMATCH');
          expect(first?.message).toContain('rank');
        } else if (rank !== WHO)
          expect(first, run.output).toMatchObject({ code: 'ERR_PEER_FAILED', from: WHO });
        else expect(first?.message, run.output).toContain('threw');
      }
      // Following another rank's task without data needs both ranks to know.
      const refused = entries(run).flatMap((entry) => entry.refused ?? []);
      expect(refused, run.output).toEqual(way === 'pruned' ? ['ERR_AFTER_ELSEWHERE'] : []);
      const again = entries(run).filter((entry) => entry.again !== undefined);
      expect(
        again.map((entry) => entry.again),
        run.output,
      ).toEqual([9, 9, 9]);
    });

    test.each([
      ['kill', 'push'],
      ['kill', 'pull'],
      ['exit', 'push'],
      ['loop', 'push'],
      ['loop', 'pull'],
    ])('%s: the error of the other ranks names the rank that died (%s)', async (way, fetch) => {
      const run = await mpirun(3, 'failures.mjs', {
        library,
        survive: library === 'mpich',
        reports: 2,
        args: [JSON.stringify({ way, who: WHO, fetch })],
      });
      const told = firsts(run).filter(({ rank }) => rank !== WHO);
      // MPICH's launcher kills every rank within milliseconds once one died of a signal, whatever its options say, and on
      // busy cores also once one has ended: then there is no time to tell anything, and nobody left to hang.
      const isKilled = run.output.includes('User defined signal 1');
      const isCutShort = library === 'mpich' && (way !== 'exit' || isKilled);
      if (!isCutShort) {
        expect(
          told.map(({ rank }) => rank),
          run.output,
        ).toEqual([0, 2]);
      }
      for (const { first, seconds } of told) {
        expect(first, run.output).toMatchObject({ code: 'ERR_PEER_LOST', from: WHO });
        expect(seconds).toBeLessThan(5);
      }
      // MPICH's launcher, which is told to let the others survive, has returned 0 after a rank that ended with 7.
      if (library === 'openmpi') expect(run.code, run.output).not.toBe(0);
      expect(run.seconds).toBeLessThan(15);
      const left = (): string =>
        spawnSync('pgrep', ['-f', 'programs/failures.mjs'], { encoding: 'utf8' }).stdout;
      await vi.waitFor(() => expect(left(), 'processes left running').toBe(''), 5000);
    });

    // MPICH's launcher leaves the others no time to tell what they saw.
    if (library === 'openmpi')
      test.each(['direct', 'staged', 'ipc'])(
        'a rank that is killed while its GPU is being read is named (%s)',
        async (comm) => {
          const given = { way: 'kill-moving', who: WHO, comm, gpus: 1, gpuMemory: '256MiB' };
          const run = await mpirun(3, 'failures.mjs', {
            library,
            reports: 2,
            args: [JSON.stringify({ ...given, hostMemory: '512MiB' })],
          });
          const told = firsts(run).filter(({ rank }) => rank !== WHO);
          expect(told, run.output).toHaveLength(2);
          for (const entry of told) {
            expect(entry.first, run.output).toMatchObject({ code: 'ERR_PEER_LOST', from: WHO });
            expect(entry.received, run.output).toBeLessThan(entry.of as number);
          }
          expect(told[0]?.received, run.output).toBeGreaterThan(0);
        },
      );
  });
