// The calls of several ranks, joined by a wire in memory: messages between two ranks keep their order, messages of different
// pairs arrive in any order. There is no engine and no time: the test says when a rank waits without progress.
import type { WireRecord } from '../../devices/network/wire.js';
import { RankCalls } from '../../scheduler/ranks/calls.js';
import { NO_GID, RankData } from '../../scheduler/ranks/data.js';
import type { RankHost } from '../../scheduler/ranks/host.js';
import type { RankLinks } from '../../scheduler/ranks/links.js';
import { datumId } from './handles.js';
import { recordOf } from './joined-ranks.js';

/** A call of a program, equal on all ranks if its fields are. */
export type ProgramCall =
  | { readonly kind: 'data'; readonly length: number; readonly owner: number }
  | { readonly kind: 'read' | 'set' | 'restore' | 'close'; readonly d: number };

/** Length of the data that a rank has from the beginning. */
const LENGTH = 8;

class CallingRank {
  readonly calls: RankCalls;
  /** This rank waits for another one. */
  expecting = true;
  inBody = false;
  isLost = false;
  /** A promise of the program rejects because of a mismatch. */
  breaksOff = false;
  private readonly data: RankData;
  private readonly info: { name: string; row: number; length: number; element: 'f64' }[] = [];
  private readonly backend: { kind: string; whenStill?: () => void } = { kind: 'simulated' };

  constructor(joined: CallingRanks, rank: number) {
    this.data = new RankData(rank);
    const self = this;
    const host = {
      backend: this.backend,
      tasks: { head: 0, next: 0 },
      directory: { info: this.info },
      wake: () => {},
      get inBody() {
        return self.inBody;
      },
    };
    const links: Partial<RankLinks> = {
      rank,
      size: joined.size,
      device: {
        wire: {
          write: (to, kind, fields, text = '') =>
            joined.post(rank, to, recordOf(kind, fields, text)),
        },
      },
      runs: { programIsOpen: () => true, failureIn: () => undefined },
      get expecting() {
        return self.expecting;
      },
      get isLost() {
        return self.isLost;
      },
      breaksOff: () => self.breaksOff,
    };
    this.calls = new RankCalls(host as unknown as RankHost, links as RankLinks, this.data);
  }

  /** Adds a datum; `alone`: other ranks have none. */
  create(length: number, owner: number, alone = false): void {
    const row = datumId(this.info.length);
    this.info.push({ name: `d${row}`, row, length, element: 'f64' });
    this.data.add(row, owner, alone ? NO_GID : undefined);
    this.calls.created(row, owner);
  }

  make(call: ProgramCall): void {
    if (call.kind === 'data') this.create(call.length, call.owner);
    else this.calls.made(call.kind, this.info[call.d]);
  }

  /** Nothing more happens on this rank by itself. */
  standsStill(): void {
    this.backend.whenStill?.();
  }
}

export class CallingRanks {
  readonly size: number;
  readonly ranks: readonly CallingRank[];
  private readonly wires: { readonly from: number; readonly to: number; record: WireRecord }[][];

  /** Ranks with `data` data. */
  constructor(size: number, data = 0) {
    this.size = size;
    this.wires = Array.from({ length: size * size }, () => []);
    this.ranks = Array.from({ length: size }, (_, rank) => new CallingRank(this, rank));
    for (const rank of this.ranks) for (let d = 0; d < data; d++) rank.create(LENGTH, 0);
  }

  post(from: number, to: number, record: WireRecord): void {
    this.wires[from * this.size + to].push({ from, to, record });
  }

  /** Delivers the oldest message of one of the pairs that have any; false when none has. */
  deliver(choice: number): boolean {
    const full = this.wires.filter((wire) => wire.length > 0);
    const message = full[choice % Math.max(1, full.length)]?.shift();
    if (message === undefined) return false;
    this.ranks[message.to].calls.take(message.from, message.record);
    return true;
  }

  /** Delivers everything. */
  settle(): void {
    while (this.deliver(0));
  }
}
