// Records the calls that every rank must make, and asks other ranks for their calls when this rank waits for them.
//
// Normally the ranks exchange only a few numbers, with messages that are sent anyway: the number of calls before a run,
// the number of calls in its program, and a digest of them. A rank that waits without progress tells rank 0, which
// fetches the calls of all ranks and compares them one by one (judge.ts). A rank with fewer calls is late, which is no
// mistake. A different call at the same position is a mistake, and rank 0 tells all ranks.
//
// Invariants: calls of a program function count for its run only until the run ends or fails, because ranks leave a
// failed program at different points; a rank leaves (`close`) only when all ranks are quiet, so that every question
// about data is answered.
import { AsyncLocalStorage } from 'node:async_hooks';
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import { textOf, Wire, type WireRecord } from '../../devices/network/wire.js';
import type { ElementType } from '../program/element-type.js';
import { CallKind, CallLog, type CallObject, mix, type SharedObject, wordsOf } from './call-log.js';
import { NO_GID, type RankData } from './data.js';
import type { RankHost } from './host.js';
import { type CallsOf, RankJudge } from './judge.js';
import type { CallCount, CallNotes, RankLinks } from './links.js';

/** After this long without progress this rank asks for the calls of the others; milliseconds. */
const PATIENCE_MS = 500;
/** Limit for the text of one answer; the rest is requested separately. */
const MOST_TEXT = 8000;
const MOST_WORDS = 200;

const ELEMENTS: Readonly<Record<ElementType, number>> = { f64: 0, f32: 1, i32: 2, u32: 3, u8: 4 };

/** A datum in a call. */
interface CalledDatum extends CallObject {
  readonly row: number;
  readonly length: number;
  readonly element: ElementType;
  /** The datum of which it is a part. */
  readonly whole?: { readonly row: number } | undefined;
}

/** A program function of a run that makes calls. */
interface ProgramContext {
  readonly calls: RankCalls;
  readonly number: number;
}

const programs: AsyncLocalStorage<ProgramContext> = new AsyncLocalStorage<ProgramContext>();
const RUNTIME: CallObject = { name: 'runtime' };

export class RankCalls implements CallNotes {
  /** The ranks do not make the same calls. */
  mismatch: HeadraceError | undefined;
  /** The program has learned of the mismatch from a rejected promise. */
  told = false;
  /** This rank waits for all others before it leaves. */
  leaving = false;
  readonly judge: RankJudge | undefined;
  private readonly engine: RankHost;
  private readonly ranks: RankLinks;
  private readonly data: RankData;
  private readonly main: CallLog = new CallLog('');
  /** Logs of program functions, by number of the run. */
  private readonly logs: Map<number, CallLog> = new Map();
  private readonly timer: NodeJS.Timeout | undefined;
  private seen = '';
  private askedAt = 0;
  private mayLeave: (() => void) | undefined;

  constructor(engine: RankHost, ranks: RankLinks, data: RankData) {
    this.engine = engine;
    this.ranks = ranks;
    this.data = data;
    if (ranks.rank === 0) this.judge = new RankJudge(engine, ranks, this);
    // Virtual time detects by itself that nothing more will happen.
    engine.backend.whenStill = () => this.look();
    if (engine.backend.kind !== 'simulated') {
      this.timer = setInterval(() => this.look(), PATIENCE_MS);
      this.timer.unref();
    }
  }

  get length(): number {
    return this.main.length;
  }

  // --- Recording calls --------------------------------------------------------------------------------------------

  created(d: number, owner: number): void {
    if (this.data.gid[d] === NO_GID) return;
    const datum = this.engine.directory.info[d] as unknown as CalledDatum;
    const size = datum.length * 8 + (ELEMENTS[datum.element] ?? 0);
    this.main.add(CallKind.data, size, owner, datum);
  }

  /** A matrix was created on all ranks; they make its `length` tiles later. */
  shared(length: number, { name, element, shape }: SharedObject): void {
    const size = shape.reduce(mix, ELEMENTS[element as ElementType] ?? 0);
    this.main.add(CallKind.shared, size, 0, { name, element, length });
  }

  /** A matrix of all ranks, whose first tile is `gid`, is closed. */
  closedShared(gid: number, { name }: SharedObject): void {
    this.log()?.add(CallKind.closeShared, gid, 0, { name });
  }

  /**
   * A call on a datum that every rank must make.
   * @throws HeadraceError `ERR_PROGRAM_MISMATCH` when the ranks are out of step, `ERR_INSERT_ALONE` in a body
   */
  made(kind: 'read' | 'set' | 'restore' | 'close', datum: CalledDatum): void {
    const gid = this.data.gid[(datum.whole ?? datum).row];
    if (gid === NO_GID) return;
    if (kind !== 'close') this.check();
    if (this.engine.inBody) {
      throw new HeadraceError(
        'ERR_INSERT_ALONE',
        `${kind} of datum '${datum.name}' is called by a body on rank ${this.ranks.rank}, but a body runs on one rank only`,
        { datum: datum.name, remedy: 'call it in the program, on all ranks' },
      );
    }
    this.log()?.add(CallKind[kind], gid, 0, datum);
  }

  /** A run begins; returns how many calls were made before it. */
  runBegins(number: number, name: string, pruned: boolean): CallCount {
    const before = { made: this.main.length, digest: this.main.digest };
    this.main.add(CallKind.run, number, pruned ? 1 : 0, { name });
    this.logs.set(number, new CallLog(` in the program of run '${name}'`));
    return before;
  }

  /** The program function of a run has ended without an error; later calls are not its own. */
  programEnds(number: number): void {
    this.logs.get(number)?.add(CallKind.seal, 0, 0, RUNTIME);
  }

  /** Calls that the program function of a run made. */
  countOf(number: number): CallCount {
    const log = this.logs.get(number);
    return { made: log?.length ?? 0, digest: log?.digest ?? 0 };
  }

  /** A run is over. `agreed`: all ranks made the same calls before it. */
  runEnds(number: number, agreed: CallCount | undefined): void {
    this.logs.delete(number);
    this.judge?.forget(number, agreed);
    if (agreed !== undefined) this.main.forget(agreed.made);
  }

  /** The runtime is closed by this rank. */
  closes(): void {
    this.main.add(CallKind.end, 0, 0, RUNTIME);
  }

  /** Calls the program function of a run, so that its calls are recorded as its own. */
  within<T>(number: number, program: () => T): T {
    return programs.run({ calls: this, number }, program);
  }

  /** Number of the run whose program function is active, else 0. */
  get program(): number {
    const context = programs.getStore();
    if (context === undefined || context.calls !== this) return 0;
    return this.ranks.runs.programIsOpen(context.number) ? context.number : 0;
  }

  /** The log for a call; undefined in the program of a failed run. */
  private log(): CallLog | undefined {
    const { program } = this;
    if (program === 0) return this.main;
    return this.ranks.runs.failureIn(program) === undefined ? this.logs.get(program) : undefined;
  }

  logOf(number: number): CallLog | undefined {
    return number === 0 ? this.main : this.logs.get(number);
  }

  /** The logs of the program itself (0) and of the open runs. */
  numbers(): number[] {
    return [0, ...this.logs.keys()];
  }

  // --- Out of step --------------------------------------------------------------------------------------------------

  /** Throws when the ranks are out of step. */
  check(): void {
    if (this.mismatch === undefined) return;
    this.told = true;
    throw this.mismatch;
  }

  /** This rank waits in a call that blocks its thread. */
  blocks(): void {
    const now = this.engine.backend.now();
    if (now - this.askedAt < PATIENCE_MS * 1e6) return;
    this.askedAt = now;
    this.look();
  }

  /** Asks for the others' calls if this rank waits for them and nothing has moved since the last check. */
  private look(): void {
    const { engine, ranks } = this;
    this.judge?.looked();
    if (!ranks.expecting || this.mismatch !== undefined || !guards.callOrder) return;
    const state = `${engine.tasks.head} ${engine.tasks.next} ${this.main.length}`;
    const isStill = state === this.seen;
    this.seen = state;
    // In virtual time one check without progress is enough.
    if (isStill === (engine.backend.kind === 'simulated')) return;
    if (this.judge !== undefined) this.judge.inquire();
    else ranks.device.wire.write(0, Wire.waiting, []);
    engine.wake();
  }

  take(from: number, record: WireRecord): void {
    const { words, at } = record;
    switch (record.kind) {
      case Wire.waiting:
        this.judge?.inquire();
        break;
      case Wire.ask:
        this.answer(words[at + 2], words[at + 3]);
        break;
      case Wire.calls:
        this.judge?.hear(
          from,
          words[at + 2],
          words[at + 3],
          JSON.parse(textOf(record, 2)) as CallsOf,
        );
        break;
      case Wire.apart:
        this.ranks.device.wire.write(0, Wire.heard, []);
        this.outOfStep(textOf(record, 1), words[at + 2]);
        break;
      case Wire.heard:
        this.judge?.heard();
        break;
      case Wire.leaving:
        this.judge?.leaves(from, { made: words[at + 2], digest: words[at + 3] });
        break;
      case Wire.left:
        this.leave();
        break;
    }
    this.engine.wake();
  }

  private answer(number: number, from: number): void {
    const log = this.logOf(number);
    const at = Math.max(from, log?.first ?? 0);
    const made = log?.length ?? 0;
    const calls: CallsOf['calls'][number][] = [];
    let text = 0;
    for (let i = at; i < made && text < MOST_TEXT; i++) {
      const call = log?.at(i);
      if (call === undefined) break;
      const entry = [
        call.kind,
        call.subject,
        call.more,
        wordsOf(call).slice(0, MOST_WORDS),
      ] as const;
      calls.push(entry);
      text += JSON.stringify(entry).length;
    }
    const answer: CallsOf = { made, calls };
    this.ranks.device.wire.write(0, Wire.calls, [number, at], JSON.stringify(answer));
  }

  /** The ranks are out of step; `rank` is the other rank, as seen from this one. */
  outOfStep(message: string, rank: number): void {
    if (this.mismatch !== undefined) return;
    this.mismatch = new HeadraceError('ERR_PROGRAM_MISMATCH', message, {
      rank: rank === this.ranks.rank ? 0 : rank,
      remedy: 'make the same calls in the same order on every rank',
    });
    if (this.ranks.breaksOff(this.mismatch)) this.told = true;
    this.engine.wake();
  }

  // --- Leaving ------------------------------------------------------------------------------------------------------

  /** Resolves when all ranks have ended their programs, or one was lost. */
  async leaves(): Promise<void> {
    if (this.ranks.isLost) return;
    const { length: made, digest } = this.main;
    await new Promise<void>((resolve) => {
      this.mayLeave = resolve;
      this.leaving = true;
      if (this.judge !== undefined) this.judge.leaves(0, { made, digest });
      else this.ranks.device.wire.write(0, Wire.leaving, [made, digest]);
      this.engine.wake();
    });
  }

  /** A rank was lost: no rank waits for an answer. */
  lost(): void {
    this.judge?.carryOut();
    this.leave();
  }

  /** This rank may leave. */
  leave(): void {
    this.leaving = false;
    this.mayLeave?.();
    this.mayLeave = undefined;
  }

  /** This rank asks no other rank any more. */
  stop(): void {
    clearInterval(this.timer);
    this.engine.backend.whenStill = undefined;
  }
}
