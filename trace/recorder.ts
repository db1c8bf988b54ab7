// Records of tasks, what they use and follow, and transfers. It sits in the engine's hot path: no method reads a clock,
// allocates, or does more than a handful of typed-array stores.
import { NONE, RecordKind, TaskTime } from './format.js';
import { GroupRecorder, SHORT_LIFE } from './group-recorder.js';

/**
 * Records one rank's run. Times are nanoseconds on the rank's clock (the header's `clockOrigin` is on the same
 * clock); spaces and lanes are indices into the header's tables. Ids are unsigned 32-bit numbers that the caller
 * keeps unique for the whole trace; `NONE` means none.
 */
export class TraceRecorder extends GroupRecorder {
  readonly #scratch: Float64Array = new Float64Array(TaskTime.count);
  // Open dependencies and accesses records of the current chunk (byte offset, or -1) and whom they are for.
  #dependencyAt = -1;
  #dependencyTask = NONE;
  #accessAt = -1;
  #accessTask = NONE;

  /** Hands what is recorded so far to the sink. */
  override flush(): void {
    this.#dependencyAt = -1;
    this.#accessAt = -1;
    super.flush();
  }

  /**
   * A retired task, from ten consecutive float64 of `times` starting at `at` (see `TaskTime`). This is the cheap
   * form: numbers passed one by one are boxed by V8 when the call is not inlined.
   *
   * A stage that was skipped or never reached may hold 0, NaN or any earlier time: it counts as passed at the time
   * of the stage before it, an insertion at the begin of the run. Stage times taken per batch are clamped so that they never contradict `execStart` and
   * `execEnd`, which are kept exactly.
   *
   * @param taskClass 0 to 65535, as given to `taskClass`
   * @param flags `TaskFlag` bits and the number of completed stages
   * @param releasedBy the predecessor that released it last, or `NONE`
   */
  taskRow(
    id: number,
    taskClass: number,
    device: number,
    lane: number,
    flags: number,
    releasedBy: number,
    times: Float64Array,
    at: number,
  ): void {
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
    if (isShort) {
      u32[w] = RecordKind.task | (2 << 8) | (taskClass << 16);
      // From a whole nanosecond, so that each time is the floor of what was given: order survives rounding.
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
    u32[w + 1] = device | (lane << 8) | (flags << 16);
    u32[w + 2] = id;
    u32[w + 3] = releasedBy;
    this.tasks++;
  }

  /** `taskRow` with the ten times as arguments. */
  task(
    id: number,
    taskClass: number,
    device: number,
    lane: number,
    flags: number,
    releasedBy: number,
    inserted: number,
    ready: number,
    alloc: number,
    stageIn: number,
    commIn: number,
    issued: number,
    execStart: number,
    execEnd: number,
    stageOut: number,
    finalized: number,
  ): void {
    const t = this.#scratch;
    t[0] = inserted;
    t[1] = ready;
    t[2] = alloc;
    t[3] = stageIn;
    t[4] = commIn;
    t[5] = issued;
    t[6] = execStart;
    t[7] = execEnd;
    t[8] = stageOut;
    t[9] = finalized;
    this.taskRow(id, taskClass, device, lane, flags, releasedBy, t, 0);
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

  /** Up to six parameters of a task, the first `count`; fractions are cut off. */
  parameters(task: number, count: number, a: number, b = 0, c = 0, d = 0, e = 0, f = 0): void {
    const p = this.unit(RecordKind.parameters, task);
    this.u8[p + 2] = count;
    const i32 = this.i32;
    const w = (p >>> 2) + 2;
    i32[w] = a;
    i32[w + 1] = b;
    i32[w + 2] = c;
    i32[w + 3] = d;
    i32[w + 4] = e;
    i32[w + 5] = f;
  }

  /**
   * A finished transfer. An issue time that was never taken (0, or later than the start) becomes the start.
   *
   * @param kind `TransferKind`
   * @param reason `TransferReason`
   * @param lane the lane that carried it
   * @param source memory space, or `NO_INDEX` when it is on another rank
   * @param destination memory space, or `NO_INDEX` when it is on another rank
   * @param task the task it was for (for a send: the task that produced the datum), or `NONE`
   * @param datum id of the datum, or `NONE`
   * @param version version of the datum
   * @param peer the other rank of a message, or `NO_PEER`
   * @param message number of the message between this ordered pair of ranks, equal on both sides, or `NONE`
   * @param bytes bytes moved
   * @param issued when it was handed to the lane
   * @param start when the bytes began to move
   * @param end when they had arrived
   */
  transfer(
    kind: number,
    reason: number,
    lane: number,
    source: number,
    destination: number,
    task: number,
    datum: number,
    version: number,
    peer: number,
    message: number,
    bytes: number,
    issued: number,
    start: number,
    end: number,
  ): void {
    const p = this.take(2);
    if (!(issued >= this.origin && issued <= start)) issued = start;
    const w = p >>> 2;
    const u32 = this.u32;
    u32[w] = RecordKind.transfer | (2 << 8) | (kind << 16) | (reason << 24);
    u32[w + 1] = lane | (source << 8) | (destination << 16);
    u32[w + 2] = task;
    u32[w + 3] = datum;
    u32[w + 4] = version;
    this.i32[w + 5] = peer;
    u32[w + 6] = message;
    u32[w + 7] = 0;
    const f64 = this.f64;
    const d = (p >>> 3) + 4;
    f64[d] = bytes;
    f64[d + 1] = issued;
    f64[d + 2] = start;
    f64[d + 3] = end;
    this.transfers++;
  }
}
