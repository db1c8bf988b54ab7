// Records of tasks, their data, their predecessors, and transfers. It is in the engine's hot path: no method reads a clock,
// allocates, or does more than a handful of typed-array stores.
import { NONE, RecordKind, TaskTime } from './format.js';
import { GroupRecorder, MOST_PARAMETERS, SHORT_LIFE } from './group-recorder.js';
import type { FinishedTransfer, RetiredTask, TaskHead } from './recorder-input.js';

/**
 * Records one rank's run. Times are nanoseconds on the rank's clock (the header's `clockOrigin` is on the same
 * clock); spaces and lanes are indices into the header's tables. Ids are unsigned 32-bit numbers that the caller
 * keeps unique for the whole trace; `NONE` means none.
 */
export class TraceRecorder extends GroupRecorder {
  readonly #scratch: Float64Array = new Float64Array(TaskTime.count);
  // Open dependencies and accesses records of the current chunk (byte offset, or -1) and their tasks.
  #dependencyAt = -1;
  #dependencyTask = NONE;
  #accessAt = -1;
  #accessTask = NONE;

  /** Hands the records so far to the sink. */
  override flush(): void {
    this.#dependencyAt = -1;
    this.#accessAt = -1;
    super.flush();
  }

  /**
   * A retired task, from ten consecutive float64 of `times` starting at `at` (see `TaskTime`). This is the cheap
   * form: a time that is the field of an object is boxed by V8.
   *
   * A skipped or unreached stage may hold 0, NaN or any earlier time. It counts as passed at the time
   * of the stage before it, an insertion at the begin of the run. Stage times taken per batch are clamped, so they never
   * contradict `execStart` and `execEnd`, which are kept exactly.
   */
  taskRow(head: TaskHead, times: Float64Array, at: number): void {
    let inserted = times[at + TaskTime.inserted];
    if (!(inserted >= this.origin)) inserted = this.runBegin;
    let execStart = times[at + TaskTime.execStart];
    let execEnd = times[at + TaskTime.execEnd];
    const latest = execStart >= inserted ? execStart : Number.POSITIVE_INFINITY;
    let ready = times[at + TaskTime.ready];
    if (!(ready >= inserted)) ready = inserted;
    if (ready > latest) ready = latest;
    let alloc = times[at + TaskTime.alloc];
    if (!(alloc >= ready)) alloc = ready;
    if (alloc > latest) alloc = latest;
    let stageIn = times[at + TaskTime.stageIn];
    if (!(stageIn >= alloc)) stageIn = alloc;
    if (stageIn > latest) stageIn = latest;
    let commIn = times[at + TaskTime.commIn];
    if (!(commIn >= stageIn)) commIn = stageIn;
    if (commIn > latest) commIn = latest;
    let issued = times[at + TaskTime.issued];
    if (!(issued >= commIn)) issued = commIn;
    if (issued > latest) issued = latest;
    if (!(execStart >= issued)) execStart = issued;
    if (!(execEnd >= execStart)) execEnd = execStart;
    let stageOut = times[at + TaskTime.stageOut];
    if (!(stageOut >= execEnd)) stageOut = execEnd;
    let finalized = times[at + TaskTime.finalized];
    if (!(finalized >= stageOut)) finalized = stageOut;

    const isShort = finalized - inserted < SHORT_LIFE;
    const p = this.take(isShort ? 2 : 3);
    const u32 = this.u32;
    const w = p >>> 2;
    const { taskClass } = head;
    if (isShort) {
      u32[w] = RecordKind.task | (2 << 8) | (taskClass << 16);
      // From a whole nanosecond, so that each time is the floor of the given one: order survives rounding.
      const base = Math.floor(inserted);
      this.f64[(p >>> 3) + 2] = base;
      u32[w + 6] = ready - base;
      u32[w + 7] = alloc - base;
      u32[w + 8] = stageIn - base;
      u32[w + 9] = commIn - base;
      u32[w + 10] = issued - base;
      u32[w + 11] = execStart - base;
      u32[w + 12] = execEnd - base;
      u32[w + 13] = stageOut - base;
      u32[w + 14] = finalized - base;
      u32[w + 15] = 0;
    } else {
      u32[w] = RecordKind.longTask | (3 << 8) | (taskClass << 16);
      const f64 = this.f64;
      const d = (p >>> 3) + 2;
      f64[d] = inserted;
      f64[d + 1] = ready;
      f64[d + 2] = alloc;
      f64[d + 3] = stageIn;
      f64[d + 4] = commIn;
      f64[d + 5] = issued;
      f64[d + 6] = execStart;
      f64[d + 7] = execEnd;
      f64[d + 8] = stageOut;
      f64[d + 9] = finalized;
    }
    u32[w + 1] = head.device | (head.lane << 8) | (head.flags << 16);
    u32[w + 2] = head.id;
    u32[w + 3] = head.releasedBy;
    this.tasks++;
  }

  /** `taskRow` with the ten times in the record. */
  task(task: RetiredTask): void {
    const t = this.#scratch;
    t[0] = task.inserted;
    t[1] = task.ready;
    t[2] = task.alloc;
    t[3] = task.stageIn;
    t[4] = task.commIn;
    t[5] = task.issued;
    t[6] = task.execStart;
    t[7] = task.execEnd;
    t[8] = task.stageOut;
    t[9] = task.finalized;
    this.taskRow(task, t, 0);
  }

  /** One predecessor of a task; all calls for one successor in a row share records of up to six. */
  dependency(successor: number, predecessor: number): void {
    let p = this.#dependencyAt;
    if (p < 0 || this.#dependencyTask !== successor || this.u8[p + 2] === 6) {
      p = this.unit(RecordKind.dependencies, successor);
      this.#dependencyAt = p;
      this.#dependencyTask = successor;
    }
    const count = this.u8[p + 2]++;
    this.u32[(p >>> 2) + 2 + count] = predecessor;
  }

  /** One datum of a task, in flow order; `mode` is an `AccessMode`. Shares records like `dependency`. */
  access(task: number, datum: number, mode: number): void {
    let p = this.#accessAt;
    if (p < 0 || this.#accessTask !== task || this.u16[(p >>> 1) + 1] >>> 12 === 6) {
      p = this.unit(RecordKind.accesses, task);
      this.#accessAt = p;
      this.#accessTask = task;
    }
    const h = (p >>> 1) + 1;
    const head = this.u16[h];
    const count = head >>> 12;
    this.u32[(p >>> 2) + 2 + count] = datum;
    this.u16[h] = (head + 0x1000) | (mode << (2 * count));
  }

  /** All data of a task: `count` ids of `data` from `first` on, with their modes. As `access` for one after the other. */
  accesses(task: number, data: Int32Array, first: number, modes: readonly number[]): void {
    const count = modes.length;
    if (count > 6 || count === 0) {
      for (let i = 0; i < count; i++) this.access(task, data[first + i], modes[i]);
      return;
    }
    const p = this.unit(RecordKind.accesses, task);
    const u32 = this.u32;
    const w = (p >>> 2) + 2;
    let head = count << 12;
    for (let i = 0; i < count; i++) {
      u32[w + i] = data[first + i];
      head |= modes[i] << (2 * i);
    }
    this.u16[(p >>> 1) + 1] = head;
    this.#accessAt = p;
    this.#accessTask = task;
  }

  /** Up to six parameters of a task: `count` of `values` from `first` on; fractions are cut off. */
  parameters(
    task: number,
    values: ArrayLike<number>,
    first = 0,
    count: number = values.length,
  ): void {
    const p = this.unit(RecordKind.parameters, task);
    this.u8[p + 2] = count;
    const i32 = this.i32;
    const w = (p >>> 2) + 2;
    for (let i = 0; i < MOST_PARAMETERS; i++) i32[w + i] = i < count ? values[first + i] : 0;
  }

  /** A finished transfer. */
  transfer(transfer: FinishedTransfer): void {
    const p = this.take(2);
    const { start } = transfer;
    let { issued } = transfer;
    if (!(issued >= this.origin && issued <= start)) issued = start;
    const w = p >>> 2;
    const u32 = this.u32;
    u32[w] = RecordKind.transfer | (2 << 8) | (transfer.kind << 16) | (transfer.reason << 24);
    u32[w + 1] = transfer.lane | (transfer.source << 8) | (transfer.destination << 16);
    u32[w + 2] = transfer.task;
    u32[w + 3] = transfer.datum;
    u32[w + 4] = transfer.version;
    this.i32[w + 5] = transfer.peer;
    u32[w + 6] = transfer.message;
    u32[w + 7] = 0;
    const f64 = this.f64;
    const d = (p >>> 3) + 4;
    f64[d] = transfer.bytes;
    f64[d + 1] = issued;
    f64[d + 2] = start;
    f64[d + 3] = transfer.end;
    this.transfers++;
  }
}
