// Event pruning: with pruned waits every command still follows all its predecessors, and no unnecessary wait is issued.
// Checked against the order that queues and issued waits enforce.

import '../support/removable-guards.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HOST, NO_QUEUE } from '../../devices/handles.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { type Launch, Submission } from '../../devices/submission.js';
import { queueId, spaceId, taskId } from '../support/handles.js';
import { ManualBackend } from '../support/manual-backend.js';

const args = new Float64Array(64);

function launch(row: number, nArgs: number): Launch {
  return { kernel: 0, row, task: taskId(1), run: 0, nFlows: 0, nArgs, args };
}

/** Orders that the issued commands enforce: per command and queue the last record that surely is over before it. */
function enforced(backend: ManualBackend, start: number): Map<string, Map<number, number>> {
  const before = new Map<string, Map<number, number>>();
  const current = backend.queues.map(() => new Map<number, number>());
  const merge = (into: Map<number, number>, from: Map<number, number>): void => {
    for (const [q, seq] of from) into.set(q, Math.max(into.get(q) ?? -1, seq));
  };
  for (const { queue, seq, onQueue, onSeq } of backend.commands) {
    const clock = current[queue];
    if (onQueue !== NO_QUEUE) {
      // Whatever precedes the event precedes this command; find the command that the event ends.
      const upTo = backend.commands
        .filter((c) => c.queue === onQueue && c.seq - start <= onSeq - start)
        .at(-1);
      if (upTo !== undefined)
        merge(clock, before.get(`${onQueue}/${upTo.seq}`) as Map<number, number>);
      merge(clock, new Map([[onQueue, onSeq - start]]));
    }
    before.set(`${queue}/${seq}`, new Map(clock));
    clock.set(queue, seq - start);
  }
  return before;
}

const steps = fc.array(
  fc.record({
    queue: fc.nat({ max: 3 }),
    what: fc.constantFrom('exec' as const, 'copy' as const, 'fill' as const, 'complete' as const),
    /** Events to follow: (queue, how far back from its newest command). */
    after: fc.array(fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 6 })), { maxLength: 5 }),
    amount: fc.nat({ max: 20 }),
  }),
  { maxLength: 60, size: 'max' },
);

describe('submission', () => {
  it('waits once for the last command of a queue, and what that has waited for', () => {
    const backend = new ManualBackend(3, 0);
    const sub = new Submission(backend.port);
    const issue = (queue: number, ...after: (readonly [number, number])[]): number => {
      sub.begin(queueId(queue));
      for (const [q, seq] of after) sub.after(queueId(q), seq);
      return sub.exec(launch(5, 0));
    };
    const waits = (queue: number): number[] =>
      backend.commands
        .filter((c) => c.queue === queue && c.onQueue !== NO_QUEUE)
        .map(({ onQueue }) => onQueue);
    const kernel = issue(0);
    const send = issue(1, [0, kernel]);
    issue(2, [0, kernel], [1, send]);
    expect(waits(2)).toEqual([1]);
    // The earlier event of queue 1 does not come after the later one of queue 0.
    const later = issue(0);
    issue(1, [0, later]);
    const sends = issue(1);
    issue(2, [0, later], [1, sends - 1]);
    expect(waits(2)).toEqual([1, 1, 0]);
    expect(sub.waits).toBe(5);
  });

  /** What a task waits for that follows a kernel, and a copy to the host behind that kernel. */
  const waitsBehindCopy = (): number[] => {
    const backend = new ManualBackend(2, 1);
    const sub = new Submission(backend.port);
    const [kernelQueue, taskQueue] = [0, 1].map(queueId);
    const copyQueue = queueId(backend.queues.findIndex(({ kind }) => kind === 'd2h'));
    sub.begin(kernelQueue);
    const kernel = sub.exec(launch(5, 0));
    sub.begin(copyQueue);
    sub.after(kernelQueue, kernel);
    const copied = sub.copy(7, HOST, 0, spaceId(1), 0, 64);
    sub.begin(taskQueue);
    sub.after(kernelQueue, kernel);
    sub.after(copyQueue, copied);
    sub.exec(launch(6, 0));
    const waits = backend.commands.filter((c) => c.queue === taskQueue && c.onQueue !== NO_QUEUE);
    return waits.map(({ onQueue }) => onQueue).sort((a, b) => a - b);
  };

  it('waits for what a queue of a GPU has waited for: its records end at once when the GPU is lost', () => {
    expect(waitsBehindCopy()).toEqual([0, 4]);
  });

  it('without impliedOnHost: what the queue of a lost GPU was to wait for counts as over', () => {
    setGuard('impliedOnHost', false);
    try {
      expect(waitsBehindCopy()).toEqual([4]);
    } finally {
      setGuard('impliedOnHost', true);
    }
  });

  it('enforces every edge that was asked for, and no edge twice', () => {
    fc.assert(
      fc.property(steps, (program) => {
        const backend = new ManualBackend(4, 0, { ring: 4096 });
        const sub = new Submission(backend.port);
        const commands: number[][] = [[], [], [], []];
        const asked: { command: string; queue: number; seq: number }[] = [];
        let unneeded = 0;
        for (const { queue, what, after, amount } of program) {
          if (what === 'complete') {
            // Some of what was issued to the queue is over (as queues really can: waits are ignored here).
            const list = commands[queue].filter((seq) => seq > backend.completed[queue]);
            if (list.length > 0) backend.completed[queue] = list[amount % list.length];
            continue;
          }
          sub.begin(queueId(queue));
          const wanted: (readonly [number, number])[] = [];
          for (const [q, back] of what === 'fill' ? [] : after) {
            const seq = commands[q][commands[q].length - 1 - back];
            if (seq === undefined) continue;
            sub.after(queueId(q), seq);
            wanted.push([q, seq]);
          }
          const from = backend.commands.length;
          const seq =
            what === 'exec'
              ? sub.exec(launch(5, amount))
              : what === 'copy'
                ? sub.copy(7, HOST, 0, spaceId(0), 0, 64)
                : sub.fill(queueId(queue), 7, 0, 64, 0xa5);
          commands[queue].push(seq);
          for (const [q, s] of wanted) {
            if (s > backend.completed[q])
              asked.push({ command: `${queue}/${seq}`, queue: q, seq: s });
          }
          const issuedNow = backend.commands.slice(from);
          for (const c of issuedNow) {
            if (c.onQueue === NO_QUEUE) continue;
            // No wait for the own queue, for what is over, or for what was not asked for.
            if (c.onQueue === queue || c.onSeq <= backend.completed[c.onQueue]) unneeded++;
            if (!wanted.some(([q, s]) => q === c.onQueue && s === c.onSeq)) unneeded++;
          }
          expect(new Set(issuedNow.map((c) => c.onQueue).filter((q) => q !== NO_QUEUE)).size).toBe(
            issuedNow.filter((c) => c.onQueue !== NO_QUEUE).length,
          );
        }
        expect(unneeded).toBe(0);
        const before = enforced(backend, 0);
        for (const { command, queue, seq } of asked) {
          const own = Number(command.split('/')[0]);
          if (own === queue) continue; // queue order
          expect(before.get(command)?.get(queue) ?? -1).toBeGreaterThanOrEqual(seq);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('needs one record for a command whose edges are known already', () => {
    const backend = new ManualBackend(3, 0);
    const sub = new Submission(backend.port);
    const exec = (queue: number, ...after: (readonly [number, number])[]): number => {
      sub.begin(queueId(queue));
      for (const [q, seq] of after) sub.after(queueId(q), seq);
      return sub.exec(launch(0, 0));
    };
    const a = exec(0);
    const b = exec(1);
    exec(2, [0, a], [1, b]); // one wait record, one folded
    expect(backend.commands.map((c) => c.kind)).toEqual(['exec', 'exec', 'wait', 'exec']);
    exec(2, [0, a], [1, b]); // known: nothing
    expect(backend.commands.at(-1)).toMatchObject({ kind: 'exec', onQueue: NO_QUEUE });
    const c = exec(0);
    exec(2, [0, a], [0, c], [0, a]); // the latest of one queue is enough
    expect(backend.commands.at(-1)).toMatchObject({ kind: 'exec', onQueue: 0, onSeq: c });
    backend.completeAll(0);
    exec(1, [0, c]); // over
    expect(backend.commands.at(-1)).toMatchObject({ kind: 'exec', onQueue: NO_QUEUE });
    expect(sub.waits).toBe(3);
  });

  it('hands out finished work once, in order, without the records that only wait', () => {
    const backend = new ManualBackend(2, 0);
    const sub = new Submission(backend.port);
    sub.begin(queueId(1));
    sub.exec(launch(40, 0));
    for (let row = 0; row < 5; row++) {
      sub.begin(queueId(0));
      sub.after(queueId(1), backend.issued[1]);
      sub.exec(launch(row, row * 3));
    }
    sub.begin(queueId(0));
    sub.copy(9, HOST, 0, spaceId(0), 0, 8);
    expect(sub.outstanding[0]).toBe(6);
    expect(sub.takeFinished(queueId(0))).toBe(0);
    backend.completeAll(0);
    const tokens = Array.from({ length: 7 }, () => sub.takeFinished(queueId(0)));
    expect(tokens).toEqual([1, 2, 3, 4, 5, -10, 0]);
    expect(sub.outstanding[0]).toBe(0);
    expect(sub.seen[0]).toBe(backend.issued[0]);
    expect(sub.room(queueId(0))).toBe(backend.ringRecords);
  });

  it('works across the wrap of sequence numbers', () => {
    const start = 2 ** 31 - 3;
    const backend = new ManualBackend(2, 0, { start });
    const sub = new Submission(backend.port);
    const seqs: number[] = [];
    for (let i = 0; i < 10; i++) {
      sub.begin(queueId(0));
      seqs.push(sub.exec(launch(i, 0)));
    }
    expect(seqs.some((seq) => seq < 0)).toBe(true);
    sub.begin(queueId(1));
    sub.after(queueId(0), seqs[2]);
    sub.after(queueId(0), seqs[8]);
    sub.exec(launch(0, 0));
    expect(backend.commands.at(-1)).toMatchObject({ onQueue: 0, onSeq: seqs[8] });
    expect(sub.happened(queueId(0), seqs[0])).toBe(false);
    backend.completed[0] = seqs[5];
    expect(seqs.map((seq) => sub.happened(queueId(0), seq))).toEqual(seqs.map((_, i) => i <= 5));
    const rows: number[] = [];
    for (
      let token = sub.takeFinished(queueId(0));
      token !== 0;
      token = sub.takeFinished(queueId(0))
    )
      rows.push(token - 1);
    expect(rows).toEqual([0, 1, 2, 3, 4, 5]);
    expect(sub.room(queueId(0))).toBe(backend.ringRecords - 4);
  });
});
