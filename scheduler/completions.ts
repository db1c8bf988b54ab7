// What completions set free: tasks are retired, transfers end, and whoever waited for an event, for a slot or for
// memory is looked at again.
//
// Invariant: each wait is on one list, and what ends the wait looks at that list (docs/reliability.md).
import { Status } from '../devices/backend.js';
import { Fifo } from '../devices/fifo.js';
import { guards } from '../devices/guards.js';
import { advance, complete } from '../stages/pipeline.js';
import { Outcome, WaitReason } from '../stages/stage.js';
import { TaskStage } from '../stages/task-table.js';
import type { Engine } from './engine.js';

export class Completions {
  /** Data to forget once their transfers are over. */
  readonly leaving: Fifo = new Fifo();
  private readonly engine: Engine;
  private readonly isCopyQueue: Uint8Array;
  /** Failed records handled per queue. */
  private readonly failuresSeen: Int32Array;

  constructor(engine: Engine) {
    const { backend } = engine;
    this.engine = engine;
    this.failuresSeen = Int32Array.from(backend.failures);
    this.isCopyQueue = Uint8Array.from(backend.queues, (q) =>
      q.kind === 'worker' || q.kind === 'compute' ? 0 : 1,
    );
  }

  /** Handles everything that was completed since the last call. */
  take(): void {
    const { engine } = this;
    const { submission, backend } = engine;
    // What kept a datum's memory may have been a body or a movement, whose end no queue tells.
    for (let n = this.leaving.length; n > 0; n--) engine.forgetDatum(this.leaving.shift());
    if (!backend.poll()) return;
    engine.placement.lookAgain();
    const queues = backend.queues.length;
    // Failures first, of copies before those of kernels: what ran behind a failure must not be taken for good, and
    // what was cancelled behind a failed copy not for unchanged, before the failure is known.
    let haveFailed = false;
    for (let q = queues - 1; q >= 0; q--) {
      if (backend.failures[q] === this.failuresSeen[q]) continue;
      if (this.isCopyQueue[q] === 1) this.takeFinished(q, true);
      else haveFailed = true;
    }
    if (haveFailed) engine.failures.markFailed();
    for (let q = 0; q < queues; q++) {
      if (backend.failures[q] !== this.failuresSeen[q]) this.takeFinished(q, true);
    }
    for (let q = 0; q < queues; q++) {
      if (submission.seen[q] !== backend.completed[q]) this.takeFinished(q, false);
    }
    for (let n = this.leaving.length; n > 0; n--) engine.forgetDatum(this.leaving.shift());
  }

  private takeFinished(q: number, failing: boolean): void {
    const { engine } = this;
    const { submission, backend, x, transfers } = engine;
    let n = 0;
    engine.tracer?.tasks.begin();
    for (let token = submission.takeFinished(q); token !== 0; token = submission.takeFinished(q)) {
      const seq = submission.seen[q];
      let status = 0;
      if (failing) {
        // The count may run ahead of what is complete: it is met when that many were seen to fail.
        status = backend.status(q, seq);
        if (status !== Status.ok) this.failuresSeen[q]++;
      }
      if (token > 0) complete(x, token - 1, status);
      else transfers.finish(-token - 1, q, seq, status);
      n++;
    }
    engine.tracer?.tasks.end();
    engine.depthControl.completed(q, n, x.now);
    engine.progressed += n;
    if (x.eventWaiters[q] >= 0) this.wakeEventWaiters(q);
    this.wakeSlotWaiters(q);
  }

  /** Sequence numbers wrap: events of long ago must not look like events to come. */
  forgetOldEvents(): void {
    const { submission, directory } = this.engine;
    directory.forgetHappened((queue, seq) => submission.happened(queue, seq));
    submission.refresh();
  }

  private wakeEventWaiters(q: number): void {
    const { x, submission } = this.engine;
    const nodes = x.eventNodes;
    let kept = -1;
    for (let n = x.eventWaiters[q]; n >= 0; ) {
      const id = nodes.value[n];
      const seq = nodes.extra[n];
      n = nodes.free(n);
      if (submission.happened(q, seq) && guards.eventWake) x.woken.push(id);
      else kept = nodes.push(kept, id, seq);
    }
    x.eventWaiters[q] = kept;
  }

  private wakeSlotWaiters(q: number): void {
    const { x } = this.engine;
    const line = x.slotWaiters[q];
    if (!guards.slotWake) return;
    for (let n = line.length; n > 0; n--) x.woken.push(line.shift());
  }

  /** Looks again at every task whose named reason may be over. */
  wakeWaiters(): void {
    const { engine } = this;
    const { x, tasks, spaces } = engine;
    while (x.woken.length > 0) {
      const id = x.woken.shift();
      const row = id & tasks.mask;
      const reason = tasks.waiting[row];
      const isWoken =
        reason === WaitReason.slot || reason === WaitReason.copy || reason === WaitReason.credit;
      if (!tasks.contains(id) || !isWoken) continue;
      engine.progressed++;
      advance(x, row);
    }
    for (let s = 0; s < spaces.length; s++) {
      if (spaces[s].freed && guards.memoryWake) this.serveMemoryLine(s);
    }
    engine.starter.drainReleased();
  }

  /** Memory was given back in the middle of a round, behind those who wait for it. */
  memoryCameBack(): boolean {
    const { ranks, spaces } = this.engine;
    if (ranks === undefined || !guards.memoryWake || !guards.movementWake) return false;
    for (const space of spaces) if (space.freed && space.waiters.length > 0) return true;
    return false;
  }

  private serveMemoryLine(s: number): void {
    const { engine } = this;
    const { x, tasks, spaces } = engine;
    const space = spaces[s];
    space.freed = false;
    while (space.waiters.length > 0) {
      const id = space.waiters.peek();
      const row = id & tasks.mask;
      if (tasks.contains(id) && tasks.waiting[row] === WaitReason.memory) {
        const outcome = advance(x, row);
        // It may wait for memory elsewhere by now: on the host, for a copy that takes the way round.
        const where = tasks.stage[row] === TaskStage.alloc ? tasks.device[row] : 0;
        if (outcome === Outcome.wait && tasks.waiting[row] === WaitReason.memory && where === s)
          return;
      }
      space.waiters.shift();
      engine.progressed++;
    }
    // Room on the host may be what a write-back from a device waited for.
    if (s === 0) for (let g = 1; g < spaces.length; g++) spaces[g].freed = true;
  }
}
