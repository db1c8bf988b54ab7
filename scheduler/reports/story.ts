// The history of a task or a datum, in order. In checked runs and in the simulated machine a ring keeps the last stimuli
// of the engine; they become text only on request.
//
// Invariant: keeping a stimulus allocates nothing and changes no decision.

import type { HeadraceError } from '../../devices/errors.js';
import type {
  Column,
  DatumId,
  QueueId,
  SpaceId,
  TaskHandle,
  TaskId,
} from '../../devices/handles.js';
import { WAIT_NAMES } from '../../stages/stage.js';
import { STAGE_NAMES, type TaskClassRow, TaskStage } from '../../stages/task-table.js';
import { formatTime } from '../../trace/analysis/text.js';
import { accessModeNames } from '../../trace/format.js';
import { EngineObserver, type Payload } from '../engine/observer.js';
import type { RunState } from '../engine/run-state.js';
import type { EngineState } from '../engine/state.js';

/** Stimuli that are kept; a power of two. A task leaves about ten of them. */
export const KEPT = 16_384;
/** Number of tasks whose stories a standstill prints, and of lines for each. */
const MOST_TASKS = 3;
const MOST_LINES = 16;

/** No task, or no datum. */
const NONE = -1;

/** The kinds of stimuli. `a` and `b` are their numbers. */
const Kind = {
  inserted: 0,
  /** a: access mode. */
  uses: 1,
  /** a: the predecessor. */
  follows: 2,
  /** a: stage, b: space. */
  stage: 3,
  /** a: reason. */
  waits: 4,
  /** a: queue, b: number of the command. */
  issued: 5,
  bodyStarted: 6,
  bodyEnded: 7,
  /** a: status. */
  retired: 8,
  dropped: 9,
  added: 10,
  removed: 11,
  /** a: source, b: destination. */
  copied: 12,
  copyFailed: 13,
  /** a: space. */
  evicted: 14,
  spilled: 15,
  /** a: rank, b: bytes. */
  sent: 16,
  received: 17,
  /** a: slot. */
  runFailed: 18,
} as const;

/** The stimuli of a task that also belong to the stories of its data. */
const ENDS: ReadonlySet<number> = new Set([
  Kind.issued,
  Kind.bodyStarted,
  Kind.retired,
  Kind.dropped,
]);

export class Story extends EngineObserver {
  override readonly watchesStages: boolean = true;
  private readonly state: EngineState;
  private readonly kind: Uint8Array = new Uint8Array(KEPT);
  private readonly time: Float64Array = new Float64Array(KEPT);
  private readonly task: Int32Array = new Int32Array(KEPT);
  private readonly datum: Int32Array = new Int32Array(KEPT);
  private readonly a: Int32Array = new Int32Array(KEPT);
  private readonly b: Int32Array = new Int32Array(KEPT);
  /** Number of stimuli so far. */
  private count = 0;

  constructor(state: EngineState) {
    super();
    this.state = state;
  }

  // --- Stimuli ------------------------------------------------------------------------------------------------------

  private note(kind: number, task: number, datum: number, a: number, b: number): void {
    const at = this.count++ & (KEPT - 1);
    this.kind[at] = kind;
    this.time[at] = this.state.backend.now();
    this.task[at] = task;
    this.datum[at] = datum;
    this.a[at] = a;
    this.b[at] = b;
  }

  private noteRow(kind: number, row: number, a: number, b: number): void {
    this.note(kind, this.state.tasks.idOf(row), NONE, a, b);
  }

  override inserted(
    id: TaskId,
    _row: number,
    { id: cls, modes }: TaskClassRow,
    run: RunState,
    flows: Column<Int32Array, DatumId>,
  ): void {
    this.note(Kind.inserted, id, NONE, cls, run.slot);
    for (let i = 0; i < modes.length; i++) this.note(Kind.uses, id, flows[i], modes[i], 0);
  }

  override dependency(successor: TaskId, predecessor: TaskId): void {
    this.note(Kind.follows, successor, NONE, predecessor, 0);
  }

  override entered(row: number, stage: number): void {
    this.noteRow(Kind.stage, row, stage, this.state.tasks.device[row]);
  }

  override waits(row: number, reason: number): void {
    this.noteRow(Kind.waits, row, reason, 0);
  }

  override issued(row: number): void {
    const { queue, seq } = this.state.tasks;
    this.noteRow(Kind.issued, row, queue[row], seq[row]);
  }

  override bodyStarted(row: number): void {
    this.noteRow(Kind.bodyStarted, row, 0, 0);
  }

  override bodyEnded(row: number): void {
    this.noteRow(Kind.bodyEnded, row, 0, 0);
  }

  override retired(row: number, status: number): void {
    this.noteRow(Kind.retired, row, status, 0);
  }

  override dropped(row: number): void {
    this.noteRow(Kind.dropped, row, 0, 0);
  }

  override datumAdded(d: DatumId): void {
    this.note(Kind.added, NONE, d, 0, 0);
  }

  override datumRemoved(d: DatumId): void {
    this.note(Kind.removed, NONE, d, 0, 0);
  }

  override transferDone(t: number, _queue: QueueId, _seq: number, status: number): void {
    const { task, datum, source, destination } = this.state.transfers;
    const kind = status === 0 ? Kind.copied : Kind.copyFailed;
    this.note(kind, task[t] === 0 ? NONE : task[t], datum[t], source[t], destination[t]);
  }

  override evicted(s: SpaceId, d: DatumId): void {
    this.note(Kind.evicted, NONE, d, s, 0);
  }

  override spilled(s: SpaceId, d: DatumId): void {
    this.note(Kind.spilled, NONE, d, s, 0);
  }

  override sent({ task, d, peer, bytes }: Payload): void {
    this.note(Kind.sent, task, d, peer, bytes);
  }

  override received({ task, d, peer, bytes }: Payload): void {
    this.note(Kind.received, task, d, peer, bytes);
  }

  override runFailed(run: RunState, _error: HeadraceError): void {
    this.note(Kind.runFailed, NONE, NONE, run.slot, 0);
  }

  // --- Words --------------------------------------------------------------------------------------------------------

  /** The story of task `id`, a line each, oldest first. */
  ofTask(id: TaskHandle): string[] {
    return this.lines((at) => this.task[at] === id && this.kind[at] !== Kind.added, false);
  }

  /** The story of datum row `d` since it holds its present datum. */
  ofDatum(d: DatumId): string[] {
    const users = new Set<number>();
    for (let at = 0; at < KEPT; at++)
      if (this.kind[at] === Kind.uses && this.datum[at] === d) users.add(this.task[at]);
    const about = this.lines(
      (at) => this.datum[at] === d || (ENDS.has(this.kind[at]) && users.has(this.task[at])),
      true,
    );
    const born = about.lastIndexOf('');
    return about.slice(born + 1);
  }

  /** The stories of the first tasks that stand still, as text; empty if no stimuli are kept. */
  ofStandstill(): string {
    const { tasks, x } = this.state;
    const parts: string[] = [];
    for (
      let id = tasks.head;
      id !== tasks.next && parts.length < MOST_TASKS;
      id = ((id + 1) | 0) as TaskId
    ) {
      const row = id & tasks.mask;
      const stage = tasks.stage[row];
      if (stage === TaskStage.done || stage === TaskStage.free) continue;
      const lines = this.ofTask(id).slice(-MOST_LINES);
      parts.push([`${x.describe(row)}:`, ...lines.map((line) => `  ${line}`)].join('\n'));
    }
    return parts.join('\n');
  }

  /** `named`: the lines name the task. A line is empty if its datum's row holds another datum now. */
  private lines(concerns: (at: number) => boolean, named: boolean): string[] {
    const lines: string[] = [];
    const origin = this.time[Math.max(0, this.count - KEPT) & (KEPT - 1)];
    for (let n = Math.max(0, this.count - KEPT); n < this.count; n++) {
      const at = n & (KEPT - 1);
      if (!concerns(at)) continue;
      if (this.kind[at] === Kind.added && named) lines.push('');
      const task = named && this.task[at] !== NONE ? `task #${this.task[at]}: ` : '';
      lines.push(`${formatTime(this.time[at] - origin).padStart(9)}  ${task}${this.words(at)}`);
    }
    return lines;
  }

  private words(at: number): string {
    const [a, b] = [this.a[at], this.b[at]];
    const { state } = this;
    const space = (n: number): string => state.spaceName(n as SpaceId);
    switch (this.kind[at]) {
      case Kind.inserted:
        return `inserted, class '${state.x.classes[a]?.name ?? a}'`;
      case Kind.uses:
        return `${accessModeNames[a]} of ${this.nameOf(at)}`;
      case Kind.follows:
        return `follows task #${a}`;
      case Kind.stage:
        return `enters ${STAGE_NAMES[a]} on ${space(b)}`;
      case Kind.waits:
        return `waits: ${WAIT_NAMES[a]}`;
      case Kind.issued:
        return `issued to queue ${a} (${state.spaceName(state.backend.queues[a].space)} ${state.backend.queues[a].kind}) as command ${b}`;
      case Kind.bodyStarted:
        return 'its body or transfer begins';
      case Kind.bodyEnded:
        return 'its body has ended';
      case Kind.retired:
        return a === 0 ? 'is over' : `is over, with status ${a}`;
      case Kind.dropped:
        return 'dropped: it will not run';
      case Kind.added:
        return `datum ${this.nameOf(at)} is made`;
      case Kind.removed:
        return `datum ${this.nameOf(at)} is forgotten`;
      case Kind.copied:
        return `${this.nameOf(at)} copied from ${space(a)} to ${space(b)}`;
      case Kind.copyFailed:
        return `copying ${this.nameOf(at)} from ${space(a)} to ${space(b)} failed`;
      case Kind.evicted:
        return `${this.nameOf(at)} leaves ${space(a)}`;
      case Kind.spilled:
        return `${this.nameOf(at)} is written back from ${space(a)}`;
      case Kind.sent:
        return `${this.nameOf(at)} sent to rank ${a}, ${b} bytes`;
      case Kind.received:
        return `${this.nameOf(at)} received from rank ${a}, ${b} bytes`;
      default:
        return `run ${a} failed`;
    }
  }

  private nameOf(at: number): string {
    const d = this.datum[at];
    return this.state.directory.info[d]?.name ?? `#${d}`;
  }
}
