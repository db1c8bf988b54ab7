// Several ranks' runs joined by a wire in memory: messages between two ranks keep their order, messages of different pairs
// arrive in any order. There is no engine: a run's tasks are over when the test says so.
import { HeadraceError } from '../../devices/errors.js';
import type { WireRecord } from '../../devices/network/wire.js';
import { RunState } from '../../scheduler/engine/run-state.js';
import { RankRuns } from '../../scheduler/ranks/agreement.js';
import type { RankHost } from '../../scheduler/ranks/host.js';
import type { CallCount, RankLinks } from '../../scheduler/ranks/links.js';
import type { TaskClassRow } from '../../stages/task-table.js';

const NO_CALLS: CallCount = { made: 0, digest: 0 };

interface Message {
  readonly from: number;
  readonly to: number;
  readonly record: WireRecord;
}

/** The record that `write(rank, kind, fields, text)` puts on the wire. */
export function recordOf(kind: number, fields: readonly number[], text: string): WireRecord {
  const bytes = new TextEncoder().encode(text);
  const end = 3 + fields.length + ((bytes.length + 7) >> 3);
  const words = new Float64Array(end);
  words.set([kind, end, ...fields, bytes.length]);
  new Uint8Array(words.buffer).set(bytes, (3 + fields.length) * 8);
  return { kind, words, at: 0, end };
}

/** One rank: its runs, and what they asked of their engine. */
class JoinedRank {
  readonly runs: RankRuns;
  readonly rank: number;
  /** Runs by number. */
  readonly byNumber: Map<number, RunState> = new Map();
  /** Numbers of settled runs, in order, and eras that began. */
  readonly settled: number[] = [];
  readonly eras: number[] = [];
  lostError: HeadraceError | undefined;
  private slot = 1;

  constructor(joined: JoinedRanks, rank: number) {
    this.rank = rank;
    const host: Partial<RankHost> = {
      wake: () => {},
      failRun: (run, error) => this.failRun(run, error),
      runIsSettled: (run) => {
        for (const [number, each] of this.byNumber) if (each === run) this.settled.push(number);
      },
    };
    const self = this;
    const links: Partial<RankLinks> = {
      rank,
      size: joined.size,
      device: {
        wire: {
          write: (to, kind, fields, text = '') =>
            joined.post({ from: rank, to, record: recordOf(kind, fields, text) }),
        },
      },
      calls: {
        mismatch: undefined,
        told: false,
        judge: undefined,
        length: 0,
        runBegins: () => NO_CALLS,
        programEnds: () => {},
        countOf: () => NO_CALLS,
        runEnds: () => {},
      },
      clocks: { measure: () => {} },
      votes: { begins: () => {}, ends: () => {} },
      get lostError() {
        return self.lostError;
      },
      failLaterReads: () => {},
      dropTorn: () => {},
      beginEra: (era) => void this.eras.push(era),
    };
    this.runs = new RankRuns(host as RankHost, links as RankLinks);
  }

  /** A run begins; returns its number. */
  begin(): number {
    const run = new RunState(this.slot++);
    const number = this.runs.begin(run, '', false);
    this.byNumber.set(number, run);
    return number;
  }

  run(number: number): RunState {
    return this.byNumber.get(number) as RunState;
  }

  /** A task of the given class is inserted in a run. */
  insert(number: number, name = 'task'): void {
    const cls = { id: name.length, name, modes: [], paramNames: [] } as Partial<TaskClassRow>;
    const none = new Int32Array(0);
    const run = this.run(number);
    this.runs.graphs.count(run, cls as TaskClassRow, none, new Float64Array(0), none, 0);
  }

  /** The run's program function has ended, and so have all its tasks. */
  end(number: number): void {
    const run = this.run(number);
    this.runs.programEnded(run);
    this.runs.graphEnded(run);
    run.over = true;
    this.runs.ended(run);
  }

  /** The run fails here, for a reason of its own. */
  fail(number: number): void {
    this.failRun(
      this.run(number),
      new HeadraceError('ERR_TASK_FAILED', `run ${number} on rank ${this.rank}`, {}),
    );
  }

  /** As the engine does it: the first failure counts, and the ranks hear of it. */
  private failRun(run: RunState, error: HeadraceError): void {
    if (run.error !== undefined) return;
    run.error = error;
    this.runs.failed(run, error);
  }
}

export class JoinedRanks {
  readonly size: number;
  readonly ranks: readonly JoinedRank[];
  /** Messages so far, by kind. */
  readonly sent: { readonly from: number; readonly to: number; readonly kind: number }[] = [];
  private readonly wires: Message[][];

  constructor(size: number) {
    this.size = size;
    this.wires = Array.from({ length: size * size }, () => []);
    this.ranks = Array.from({ length: size }, (_, rank) => new JoinedRank(this, rank));
  }

  post(message: Message): void {
    const { from, to, record } = message;
    this.sent.push({ from, to, kind: record.kind });
    this.wires[from * this.size + to].push(message);
  }

  /** Delivers the oldest message of one of the pairs that have any; false when none has. */
  deliver(choice: number): boolean {
    const full = this.wires.filter((wire) => wire.length > 0);
    const message = full[choice % Math.max(1, full.length)]?.shift();
    if (message === undefined) return false;
    this.ranks[message.to].runs.take(message.from, message.record);
    return true;
  }

  /** Delivers the oldest message between two ranks; false when there is none. */
  deliverNext(from: number, to: number): boolean {
    const message = this.wires[from * this.size + to].shift();
    if (message === undefined) return false;
    this.ranks[to].runs.take(from, message.record);
    return true;
  }

  /** Delivers all messages between two ranks. */
  deliverAll(from: number, to: number): void {
    while (this.deliverNext(from, to));
  }

  /** Delivers everything. */
  settle(): void {
    while (this.deliver(0));
  }
}
