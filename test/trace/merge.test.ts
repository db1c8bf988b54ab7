import { describe, expect, test } from 'vitest';
import {
  choleskyProgram,
  randomProgram,
  simulateInMemory,
  smallMachine,
} from '../../bench/trace-synthetic.js';
import { loadTrace, NO_INDEX, NONE, TransferKind, TransferReason } from '../../trace/index.js';
import { record, task, testHeader } from './support.js';

// Rank 1 sends message 7 to rank 0. Rank 1's clock is 400 ns ahead at the start and gains 100 ns in 1000.
type Measurement = readonly [time: number, offset: number, error: number];
const drifting: readonly Measurement[] = [
  [5000, -4400, 20],
  [5001, -9999, 500],
  [6100, -4500, 10],
];

function twoRanks(measured: readonly Measurement[]): Uint8Array[] {
  const receive = record(
    (recorder) => {
      task(recorder, 1, 0, { start: 900, end: 950 });
      recorder.transfer({
        kind: TransferKind.staged,
        reason: TransferReason.receive,
        lane: 6,
        source: NO_INDEX,
        destination: 0,
        task: 1,
        datum: NONE,
        version: 1,
        peer: 1,
        message: 7,
        bytes: 64,
        issued: 1000,
        start: 1500,
        end: 1600,
      });
    },
    testHeader({ ranks: 2 }),
  );
  const send = record(
    (recorder) => {
      for (const [time, offset, error] of measured) recorder.clock(0, time, offset, error);
      task(recorder, 1, 0, { start: 0, end: 550 }, { origin: 5000 });
      recorder.transfer({
        kind: TransferKind.staged,
        reason: TransferReason.send,
        lane: 6,
        source: 0,
        destination: NO_INDEX,
        task: 1,
        datum: NONE,
        version: 1,
        peer: 0,
        message: 7,
        bytes: 64,
        issued: 5550,
        start: 5550,
        end: 5770,
      });
    },
    testHeader({ ranks: 2, rank: 1, clockOrigin: 5000 }),
  );
  return [receive, send];
}

describe('several ranks on one time axis', () => {
  test('measured offsets are interpolated, so drift is taken out; the best measurement counts', () => {
    const trace = loadTrace(twoRanks(drifting));
    // At 5550 the offset is -4400 - 550/11 = -4450: local 5550 is 1100 on rank 0's clock, 100 after its origin.
    expect(trace.transfers.start[1]).toBe(100);
    expect(trace.tasks.times[7][1]).toBe(100);
    expect(trace.tasks.times[6][1]).toBe(5000 - 4400 - 1000);
    expect(trace.transfers.partner).toEqual(Int32Array.of(1, 0));
    expect(trace.problems).toEqual([]);
  });

  test('measurements that one offset explains are no drift, however wide apart they are', () => {
    // The true offset is -4450; the answers took long, once on the way there and once on the way back.
    const wide: Measurement[] = [
      [5000, -3950, 510],
      [6100, -4950, 505],
    ];
    const trace = loadTrace(twoRanks(wide));
    // Between -4460 and -4445, of which the middle is taken: half a nanosecond is rounded down.
    expect(trace.transfers.start[1]).toBe(5550 - 4453 - 1000);
    expect(trace.tasks.times[6][1]).toBe(5000 - 4453 - 1000);
    expect(trace.problems).toEqual([]);
  });

  test('without measurements clocks are taken as equal, and messages still never arrive before they leave', () => {
    const trace = loadTrace(twoRanks([]));
    const { start, end, partner } = trace.transfers;
    expect(partner[0]).toBe(1);
    expect(end[0]).toBeGreaterThanOrEqual(start[1]);
    expect(trace.problems.join('\n')).toMatch(/no clock measurement/);
    expect(trace.problems.join('\n')).toMatch(/no message arrives before it leaves/);
  });

  test.each([0, 1, 2, 3, 4])(
    'random programs on four ranks with wrong clocks (seed %i)',
    (seed) => {
      const machine = { ...smallMachine, ranks: 4, gpus: 1 };
      const program = randomProgram(600, seed, machine);
      const trace = loadTrace(simulateInMemory(program, machine, { clockError: 3e5, seed }));
      const { count, partner, reason, start, end } = trace.transfers;
      let messages = 0;
      for (let row = 0; row < count; row++) {
        if (partner[row] < 0 || reason[row] !== TransferReason.send) continue;
        expect(end[partner[row]]).toBeGreaterThanOrEqual(start[row]);
        messages++;
      }
      expect(messages).toBeGreaterThan(20);
      expect(trace.tasks.count).toBe(600);
    },
  );

  test('with exact clocks the merged times are those of the simulation', () => {
    const machine = { ...smallMachine, ranks: 2 };
    const program = choleskyProgram(6, 65536, machine);
    const trace = loadTrace(simulateInMemory(program, machine));
    expect(trace.problems).toEqual([]);
    const { tasks, transfers } = trace;
    expect(tasks.count).toBe(program.tasks.length);
    for (let row = 0; row < tasks.count; row++) {
      const { rank } = program.tasks[tasks.id[row]];
      expect(tasks.rank[row]).toBe(rank);
      expect(trace.lanes[tasks.lane[row]].rank).toBe(rank);
      expect(trace.spaces[tasks.space[row]].rank).toBe(rank);
      for (let t = 1; t < 10; t++) {
        expect(tasks.times[t][row]).toBeGreaterThanOrEqual(tasks.times[t - 1][row]);
      }
    }
    const paired = transfers.partner.filter((row) => row >= 0).length;
    const messages = [...transfers.peer].filter((peer) => peer >= 0).length;
    expect(paired).toBe(messages);
  });

  test('damaged files of some ranks still merge, and each problem names its rank', () => {
    const [first, second] = twoRanks(drifting);
    const trace = loadTrace([first, second.subarray(0, second.length - 100)]);
    expect(trace.problems.join('\n')).toMatch(/rank 1 .*cut off/);
  });
});
