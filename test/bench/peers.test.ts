// The peer programs of the benchmark compute what the stencil computes: each that can be built here, and at least OpenMP, which
// comes with gcc.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterAll, describe, expect, test } from 'vitest';
import {
  buildPeers,
  checkPeer,
  expectedRow,
  headracePeer,
  peerNames,
  timePeer,
} from '../../bench/peer-programs.js';

const folder = mkdtempSync(`${tmpdir()}/headrace-peers-`);
const points = [1, 2, 57].map((steps) => ({ iterations: 4, steps }));

describe('peers', () => {
  afterAll(() => rmSync(folder, { recursive: true }));

  // One at a time, because a compiler of C++ may take a minute on a busy machine.
  test.each(peerNames)(
    '%s has the expected values, and times of each point',
    (name) => {
      const [peer] = buildPeers([name], folder);
      if ('missing' in peer) {
        expect(name, `${peer.missing} is missing`).not.toBe('openmp');
        return;
      }
      for (const columns of [2, 6]) checkPeer(peer, 2, columns, points);
      for (const { seconds, rate } of timePeer(peer, 2, 4, points)) {
        expect(seconds).toBeGreaterThan(0);
        expect(rate).toBeGreaterThan(0);
      }
    },
    240_000,
  );

  test.each(['played', 'online'] as const)(
    'Headrace, %s, times each point',
    (mode) => {
      const timed = timePeer(headracePeer(mode), 2, 4, [{ iterations: 0, steps: 10 }, ...points]);
      expect(timed).toHaveLength(4);
      for (const { seconds } of timed) expect(seconds).toBeGreaterThan(0);
    },
    60_000,
  );
});

describe('the check', () => {
  const printing = (rows: readonly number[][]) => ({
    name: 'printer',
    title: 'a printer',
    start: () => JSON.stringify(rows),
  });
  const rows = points.map(({ steps }) => expectedRow(3, steps));

  test('passes the expected values', () => {
    // By hand: columns begin with 1, 12 and 23.
    expect(expectedRow(3, 1)).toEqual([1 + 3 + 60, 1 + 36 + 115 + 1, 12 + 69 + 115 + 2]);
    checkPeer(printing(rows), 2, 3, points);
  });

  test('names the program, the point and the column of another value', () => {
    const wrong = [rows[0], [rows[1][0], 5, rows[1][2]], rows[2]];
    expect(() => checkPeer(printing(wrong), 2, 3, points)).toThrow(
      `a printer: column 1 after 2 steps of 4 iterations is 5, and should be ${rows[1][1]}`,
    );
    expect(() => checkPeer(printing(rows.slice(1, 2)), 2, 3, points)).toThrow('column 0');
  });
});
