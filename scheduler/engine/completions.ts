// Handles completions: retires tasks, ends transfers, and checks again the tasks that wait for an event, a slot or
// memory.
//
// Invariant: each wait is on exactly one list, and the code that ends the wait scans that list (docs/reliability.md).

import { executesKernels, Status } from '../../devices/backend.js';
import { guards } from '../../devices/guards.js';
import { FIRST_QUEUE, HOST, type QueueId, type SpaceId } from '../../devices/handles.js';
import { PART } from '../../devices/submission.js';
import { advance } from '../../stages/pipeline.js';
import { Outcome, WaitReason } from '../../stages/stage.js';
import { TaskStage } from '../../stages/task-table.js';
import type { FailureEffects } from '../failure/effects.js';
import type { DepthControl } from './depth.js';
import type { Dispatcher } from './dispatcher.js';
import type { KernelTimes } from './kernel-times.js';
import type { LeavingData } from './leaving-data.js';
import type { QueueChoice } from './queue-choice.js';
import type { Retirement } from './retirement.js';
import type { EngineState } from './state.js';

/** The parts that a completion concerns. */
interface CompletionParts {
  readonly queueChoice: Pick<QueueChoice, 'lookAgain'>;
  readonly depth: Pick<DepthControl, 'completed'>;
  readonly dispatcher: Pick<Dispatcher, 'drainReleased'>;
  readonly failures: Pick<FailureEffects, 'markFailed'>;
  readonly retirement: Pick<Retirement, 'retired'>;
  readonly leaving: Pick<LeavingData, 'look'>;
  readonly kernelTimes: Pick<KernelTimes, 'isOpen' | 'ended'>;
}

export class Completions {
  private readonly state: EngineState;
  private readonly parts: CompletionParts;
  private readonly isCopyQueue: Uint8Array;
  /** Failed records handled per queue. */
  private readonly failuresSeen: Int32Array;
  /** Failed records handled on all queues, and the number of which the backend knows. */
  private failed = 0;
  private reported = 0;
  /** Old events must be forgotten at the end of the pass. */
  private mustForget = false;

  constructor(state: EngineState, parts: CompletionParts) {
    const { backend } = state;
    this.state = state;
    this.parts = parts;
    this.failuresSeen = Int32Array.from(backend.failures);
    this.isCopyQueue = Uint8Array.from(backend.queues, (q) =>
      executesKernels(q) || q.kind === 'lane' ? 0 : 1,
    );
  }

  /** Handles all completions since the last call. */
  take(): void {
    const { queueChoice, failures, leaving } = this.parts;
    const { submission, backend } = this.state;
    // A body or a movement may have held a datum's memory. No queue reports their end.
    leaving.look();
    if (!backend.poll() || this.state.playing) return;
    queueChoice.lookAgain();
    const queues = backend.queues.length;
    // Failures come first, and failures of copies come before failures of kernels. The failure must be known before
    // the results of later commands count as valid, and before the outputs of cancelled tasks count as unchanged.
    let haveFailed = false;
    for (let q = (queues - 1) as QueueId; q >= 0; q--) {
      if (backend.failures[q] === this.failuresSeen[q]) continue;
      if (this.isCopyQueue[q] === 1) this.takeFinished(q, true);
      else haveFailed = true;
    }
    if (haveFailed) failures.markFailed();
    for (let q = FIRST_QUEUE; q < queues; q++) {
      if (backend.failures[q] !== this.failuresSeen[q]) this.takeFinished(q, true);
    }
    for (let q = FIRST_QUEUE; q < queues; q++) {
      if (submission.seen[q] !== backend.completed[q]) this.takeFinished(q, false);
    }
    if (this.failed !== this.reported) {
      this.reported = this.failed;
      backend.handledFailures(this.failed);
    }
    leaving.look();
  }

  /** A play is over, which has handled the failures of its records. */
  passPlay(): void {
    const { backend } = this.state;
    for (let q = FIRST_QUEUE; q < backend.queues.length; q++) {
      this.failed = (this.failed + backend.failures[q] - this.failuresSeen[q]) | 0;
      this.failuresSeen[q] = backend.failures[q];
    }
    if (this.failed === this.reported) return;
    this.reported = this.failed;
    backend.handledFailures(this.failed);
  }

  private takeFinished(q: QueueId, failing: boolean): void {
    const { state } = this;
    const { submission, backend, x, transfers, observer, tasks } = state;
    const { retirement, kernelTimes } = this.parts;
    let n = 0;
    observer?.retirementsBegin();
    for (let token = submission.takeFinished(q); token !== 0; token = submission.takeFinished(q)) {
      const seq = submission.seen[q];
      let status = 0;
      if (failing) {
        // `backend.failures` may be ahead of the completed commands; `failuresSeen` reaches it as they complete.
        status = backend.status(q, seq);
        if (status !== Status.ok) {
          this.failuresSeen[q]++;
          this.failed = (this.failed + 1) | 0;
        }
      }
      if (token === PART) continue;
      if (token > 0) {
        if (kernelTimes.isOpen && status === Status.ok)
          kernelTimes.ended(x.classes[tasks.classOf[token - 1]], q, seq);
        retirement.retired(token - 1, status);
      } else transfers.finish(-token - 1, q, seq, status);
      n++;
    }
    observer?.retirementsEnd();
    if (submission.isSweepDue(q)) this.mustForget = true;
    this.parts.depth.completed(q, n);
    state.progressed += n;
    if (x.eventWaiters[q] >= 0) this.wakeEventWaiters(q);
    this.wakeSlotWaiters(q);
  }

  /** Sequence numbers wrap: an old event must not look like a future one. */
  forgetOldEvents(): void {
    if (!this.mustForget) return;
    this.mustForget = false;
    const { submission, directory } = this.state;
    directory.forgetHappened((queue, seq) => submission.happened(queue, seq));
    submission.refresh();
  }

  private wakeEventWaiters(q: QueueId): void {
    const { x, submission } = this.state;
    const nodes = x.waiterNodes;
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

  private wakeSlotWaiters(q: QueueId): void {
    const { x } = this.state;
    if (x.slotWaiting.count === 0 || !guards.slotWake) return;
    const line = x.slotWaiters[q];
    for (let n = line.length; n > 0; n--) x.woken.push(line.shift());
  }

  /** Checks every waiting task again whose named reason may be over. */
  wakeWaiters(): void {
    const { state } = this;
    const { x, tasks, spaces, allSpaces } = state;
    while (x.woken.length > 0) {
      const id = x.woken.shift();
      const row = id & tasks.mask;
      const reason = tasks.waiting[row];
      const isWoken =
        reason === WaitReason.slot || reason === WaitReason.copy || reason === WaitReason.credit;
      if (!tasks.contains(id) || !isWoken) continue;
      state.progressed++;
      advance(x, row);
    }
    for (let s = HOST; allSpaces.mustServe && s < spaces.length; s++) {
      if (allSpaces.mustServeLine(s) && guards.memoryWake) this.serveMemoryLine(s);
    }
    this.parts.dispatcher.drainReleased();
  }

  /** Memory was given back in the middle of a round, after the check of the tasks that wait for it. */
  memoryCameBack(): boolean {
    const { remote, spaces, allSpaces } = this.state;
    if (allSpaces.waiting.count === 0 || !allSpaces.mustServe) return false;
    if (remote === undefined || !guards.memoryWake || !guards.movementWake) return false;
    for (const space of spaces) if (space.mustServeLine && space.waiters.length > 0) return true;
    return false;
  }

  private serveMemoryLine(s: SpaceId): void {
    const { state } = this;
    const { x, tasks, spaces } = state;
    const space = spaces[s];
    space.beginServing();
    while (space.waiters.length > 0) {
      const id = space.waiters.peek();
      const row = id & tasks.mask;
      if (tasks.contains(id) && tasks.waiting[row] === WaitReason.memory) {
        const outcome = advance(x, row);
        // The task may now wait for memory elsewhere: on the host, for a copy that is staged there.
        const where = tasks.stage[row] === TaskStage.alloc ? tasks.device[row] : 0;
        if (outcome === Outcome.wait && tasks.waiting[row] === WaitReason.memory && where === s)
          return;
      }
      space.waiters.shift();
      state.progressed++;
    }
    // A write-back from a device may have waited for room on the host.
    if (s === 0) for (let g = 1; g < spaces.length; g++) spaces[g].wakeLine();
  }
}
