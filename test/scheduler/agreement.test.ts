// Runs of several ranks: one verdict for all, failures told once, runs that are open together fail together, eras.
import '../support/removable-guards.js';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { Wire } from '../../devices/network/wire.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { JoinedRanks } from '../support/joined-ranks.js';

const all = (joined: JoinedRanks, act: (rank: JoinedRanks['ranks'][number]) => void): void => {
  for (const rank of joined.ranks) act(rank);
};
const settled = (joined: JoinedRanks): number[][] => joined.ranks.map((each) => each.settled);
const eras = (joined: JoinedRanks): number[][] => joined.ranks.map((each) => each.eras);
const codes = (joined: JoinedRanks, number: number): (string | undefined)[] =>
  joined.ranks.map((each) => each.run(number).error?.code);
const none = [undefined, undefined, undefined];

describe('the verdict', () => {
  it('comes when the last rank has voted, and then everywhere', () => {
    const joined = new JoinedRanks(3);
    all(joined, (each) => void each.begin());
    for (const rank of [2, 0]) {
      joined.ranks[rank].end(1);
      joined.settle();
      expect(settled(joined)).toEqual([[], [], []]);
    }
    joined.ranks[1].end(1);
    joined.settle();
    expect(settled(joined)).toEqual([[1], [1], [1]]);
    expect(codes(joined, 1)).toEqual(none);
    expect(eras(joined)).toEqual([[], [], []]);
    expect(joined.ranks.map(({ runs }) => runs.open)).toEqual([0, 0, 0]);
  });

  it('of runs that end in another order comes in that order', () => {
    const joined = new JoinedRanks(3);
    all(joined, (each) => void each.begin());
    all(joined, (each) => void each.begin());
    all(joined, (each) => each.end(2));
    joined.settle();
    all(joined, (each) => each.end(1));
    joined.settle();
    expect(settled(joined)).toEqual([
      [2, 1],
      [2, 1],
      [2, 1],
    ]);
  });
});

describe('a failure', () => {
  it('is told once to every other rank, and all of them fail with its reason', () => {
    const joined = new JoinedRanks(3);
    all(joined, (each) => void each.begin());
    joined.ranks[1].fail(1);
    joined.ranks[1].fail(1);
    joined.settle();
    const told = joined.sent.filter(({ kind }) => kind === Wire.fail);
    expect(told.map(({ from, to }) => [from, to])).toEqual([
      [1, 0],
      [1, 2],
    ]);
    expect(codes(joined, 1)).toEqual(['ERR_PEER_FAILED', 'ERR_TASK_FAILED', 'ERR_PEER_FAILED']);
    expect(joined.ranks[2].run(1).error?.message).toContain('rank 1 failed: run 1 on rank 1');
    expect(settled(joined)).toEqual([[], [], []]);
    all(joined, (each) => each.end(1));
    joined.settle();
    expect(settled(joined)).toEqual([[1], [1], [1]]);
  });

  it('is known where the run has not begun yet', () => {
    const joined = new JoinedRanks(3);
    joined.ranks[1].begin();
    joined.ranks[1].fail(1);
    joined.settle();
    joined.ranks[2].begin();
    expect(joined.ranks[2].run(1).error?.message).toMatch(/^rank 1 failed: run 1 on/);
  });

  it('makes the run fail on a rank that has voted for success', () => {
    const joined = new JoinedRanks(3);
    all(joined, (each) => void each.begin());
    joined.ranks[2].end(1);
    joined.ranks[1].fail(1);
    for (const rank of [0, 1]) joined.ranks[rank].end(1);
    // The verdict comes before the failed rank's own message.
    joined.deliverAll(2, 0);
    joined.deliverAll(1, 0);
    joined.deliverAll(0, 2);
    expect(joined.ranks[2].settled).toEqual([1]);
    joined.settle();
    expect(codes(joined, 1)).toEqual(['ERR_PEER_FAILED', 'ERR_TASK_FAILED', 'ERR_PEER_FAILED']);
    expect(settled(joined)).toEqual([[1], [1], [1]]);
    // News of a run that is over concerns no other run.
    all(joined, (each) => void each.begin());
    expect(codes(joined, 2)).toEqual(none);
  });

  it('makes all runs fail that are open with it', () => {
    const joined = new JoinedRanks(3);
    all(joined, (each) => void each.begin());
    all(joined, (each) => void each.begin());
    joined.ranks[2].fail(2);
    const together = 'run 2 failed on rank 2 while this one was open';
    expect(joined.ranks[2].run(1).error?.message).toContain(together);
    joined.deliverNext(2, 0);
    expect(joined.ranks[0].run(1).error?.message).toContain(together);
    joined.settle();
    for (const rank of [0, 1, 2]) {
      expect(joined.ranks[rank].run(1).error?.message).toContain('run 2 failed on rank 2');
    }
    // A run that begins now, before the failed one is settled, is one of them.
    joined.ranks[0].begin();
    expect(joined.ranks[0].run(3).error?.code).toBe('ERR_PEER_FAILED');
  });

  it('is settled when no run is open on rank 0 that has not failed with it', () => {
    const joined = new JoinedRanks(3);
    all(joined, (each) => void each.begin());
    all(joined, (each) => void each.begin());
    joined.ranks[1].fail(1);
    joined.settle();
    all(joined, (each) => each.end(1));
    joined.settle();
    expect(settled(joined)).toEqual([[], [], []]);
    all(joined, (each) => each.end(2));
    joined.settle();
    expect(settled(joined)).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
    ]);
    expect(eras(joined)).toEqual([[1], [1], [1]]);
  });
});

describe('graphs that differ', () => {
  afterEach(() => setGuard('refusalCounts', true));
  const differ = (): JoinedRanks => {
    const joined = new JoinedRanks(3);
    all(joined, (each) => void each.begin());
    all(joined, (each) => each.insert(1, each.rank === 2 ? 'one' : 'other'));
    all(joined, (each) => each.end(1));
    joined.settle();
    return joined;
  };
  it('end the run and begin an era on all ranks, although all have voted before they hear of it', () => {
    const joined = differ();
    expect(codes(joined, 1)).toEqual(Array(3).fill('ERR_GRAPH_MISMATCH'));
    expect(settled(joined)).toEqual([[1], [1], [1]]);
    expect(eras(joined)).toEqual([[1], [1], [1]]);
  });

  it('without refusalCounts: stay in the era of the failed run', () => {
    setGuard('refusalCounts', false);
    const joined = differ();
    expect(codes(joined, 1)).toEqual(Array(3).fill('ERR_GRAPH_MISMATCH'));
    expect(eras(joined)).toEqual([[], [], []]);
  });
});

describe('an era', () => {
  it('begins in a launch of one rank, where the next run may go well', () => {
    const joined = new JoinedRanks(1);
    for (const number of [1, 2]) {
      all(joined, (each) => void each.begin());
      if (number === 1) joined.ranks[0].fail(number);
      joined.settle();
      all(joined, (each) => each.end(number));
      joined.settle();
    }
    expect(eras(joined)).toEqual([[1]]);
    expect(codes(joined, 2)).toEqual([undefined]);
  });

  it('begins on all ranks after a failed run, once, and the next run may go well', () => {
    const joined = new JoinedRanks(3);
    for (const number of [1, 2, 3]) {
      all(joined, (each) => void each.begin());
      if (number !== 2) joined.ranks[0].fail(number);
      joined.settle();
      all(joined, (each) => each.end(number));
      joined.settle();
    }
    expect(eras(joined)).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
    ]);
    expect(codes(joined, 2)).toEqual(none);
  });

  it('fails a run that one rank began before it heard of the new era', () => {
    const joined = new JoinedRanks(2);
    all(joined, (each) => void each.begin());
    // Rank 1 has voted well and begins the next run; the failure and its settlement are under way to it.
    joined.ranks[1].end(1);
    joined.ranks[1].begin();
    joined.ranks[0].fail(1);
    joined.ranks[0].end(1);
    joined.deliverAll(1, 0);
    expect(joined.ranks[0].settled).toEqual([1]);
    joined.ranks[0].begin();
    all(joined, (each) => each.insert(2));
    joined.settle();
    all(joined, (each) => each.end(2));
    joined.settle();
    expect(codes(joined, 2)).toEqual(['ERR_PEER_FAILED', 'ERR_PEER_FAILED']);
    expect(settled(joined)).toEqual([
      [1, 2],
      [1, 2],
    ]);
  });

  it.each([1, 2])('fails such a run also when only rank %i is late', (late) => {
    const joined = new JoinedRanks(3);
    all(joined, (each) => void each.begin());
    joined.ranks[late].end(1);
    joined.ranks[0].fail(1);
    for (const rank of [0, 3 - late]) joined.ranks[rank].end(1);
    joined.deliverAll(1, 0);
    joined.deliverAll(2, 0);
    joined.deliverAll(0, 3 - late);
    // Nothing of all this has come to the late rank, and its second run is over before it does.
    joined.ranks[late].begin();
    joined.ranks[late].end(2);
    for (const rank of [0, 3 - late]) {
      joined.ranks[rank].begin();
      joined.ranks[rank].end(2);
    }
    joined.settle();
    expect(codes(joined, 2)).toEqual(Array(3).fill('ERR_PEER_FAILED'));
    expect(joined.ranks[late].eras.at(-1)).toBe(joined.ranks[0].eras.at(-1));
  });
});

it('graphs that differ are refused on all ranks', () => {
  const joined = new JoinedRanks(3);
  all(joined, (each) => void each.begin());
  all(joined, (each) => each.insert(1, each.rank === 2 ? 'another' : 'task'));
  all(joined, (each) => each.runs.programEnded(each.run(1)));
  all(joined, (each) => each.runs.graphEnded(each.run(1)));
  joined.settle();
  expect(codes(joined, 1)).toEqual(Array(3).fill('ERR_GRAPH_MISMATCH'));
});

it('random schedules: all ranks have one verdict for each run, and the same era', () => {
  const step = fc.record({
    act: fc.constantFrom('begin', 'end', 'end', 'fail', 'deliver', 'deliver', 'deliver'),
    rank: fc.nat(),
    choice: fc.nat(),
  });
  const schedule = fc.array(step, { maxLength: 120, size: 'max' });
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 4 }), fc.nat(5), schedule, (size, failures, steps) => {
      const joined = new JoinedRanks(size);
      const begun = joined.ranks.map(() => 0);
      const open = joined.ranks.map((): number[] => []);
      let mayFail = failures;
      const begin = (r: number): void => void open[r].push((begun[r] = joined.ranks[r].begin()));
      const end = (r: number, choice: number): void => {
        const [number] = open[r].splice(choice % open[r].length, 1);
        joined.ranks[r].end(number);
      };
      for (const { act, rank, choice } of steps) {
        const r = rank % size;
        if (act === 'begin' && begun[r] < 6) begin(r);
        else if (act === 'end' && open[r].length > 0) end(r, choice);
        else if (act === 'fail' && open[r].length > 0 && mayFail-- > 0)
          joined.ranks[r].fail(open[r][choice % open[r].length]);
        else if (act === 'deliver') joined.deliver(choice);
      }
      // All ranks run the program to its end.
      const last = Math.max(...begun);
      joined.ranks.forEach((_, r) => {
        while (begun[r] < last) begin(r);
        while (open[r].length > 0) end(r, 0);
      });
      joined.settle();
      const [first] = joined.ranks;
      for (let number = 1; number <= last; number++) {
        const failed = joined.ranks.map((each) => each.run(number).error !== undefined);
        expect(new Set(failed).size).toBe(1);
      }
      for (const each of joined.ranks) {
        expect([...each.settled].sort((a, b) => a - b)).toEqual(
          Array.from({ length: last }, (_, i) => i + 1),
        );
        expect(each.settled).toEqual(first.settled);
        expect(each.eras.at(-1)).toBe(first.eras.at(-1));
        expect(each.runs.open).toBe(0);
      }
    }),
    { numRuns: 200 },
  );
});
