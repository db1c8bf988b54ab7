// What the file of one of several ranks has besides: its ends of messages, and what all ranks know of all messages. Columns:
// - messages: key, sender, receiver, and 1 for a turn; those of this rank, in program order;
// - readers: datum, number of ranks, ranks; and last: datum, rank of the writer, number of others, others (messages.ts);
// - pairs: sender and receiver.
//
// A datum is the number that it has in the header of the file.
import { createHash } from 'node:crypto';
import type { DatumId } from '../../devices/handles.js';
import { badFile, type Columns, type FileContent } from './file-format.js';
import type { SavedRanks } from './file-header.js';
import type { MessageFacts, PlannedMessage } from './messages.js';

type Numbers = ArrayLike<number>;

/** Numbers of a message in the column. */
const MESSAGE = 4;

/** The columns of the facts. `numberOf`: number of a datum in the file. */
export function factColumns(
  { readers, last, pairs }: MessageFacts,
  numberOf: (d: DatumId) => number,
): { readonly readers: number[]; readonly last: number[]; readonly pairs: number[] } {
  return {
    readers: [...readers].flatMap(([d, ranks]) => [numberOf(d), ranks.length, ...ranks]),
    last: [...last].flatMap(([d, { rank, others }]) => [
      ...[numberOf(d), rank, others.length],
      ...others,
    ]),
    pairs: [...pairs].flatMap((pair) => pair.split(' ').map(Number)),
  };
}

export function messageColumn(messages: Iterable<PlannedMessage>): Columns {
  const column = Array.from(messages, ({ key, from, to, isTurn }) => [
    ...[key, from, to],
    Number(isTurn),
  ]);
  return { messages: column.flat() };
}

/** Eight numbers that are the same on ranks which may play together: the digest of the whole plan, and of its messages. */
export function agreementOf(
  digest: string,
  facts: MessageFacts,
  numberOf: (d: DatumId) => number,
): number[] {
  const text = JSON.stringify([digest, facts.keys, factColumns(facts, numberOf)]);
  const bytes = createHash('sha256').update(text).digest();
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readUInt32LE(4 * i));
}

/** Reads the columns; every number is checked. */
export class RankColumns {
  private readonly file: string;
  private readonly column: FileContent['column'];
  private readonly ranks: SavedRanks;

  constructor(file: string, column: FileContent['column'], ranks: SavedRanks) {
    this.file = file;
    this.column = column;
    this.ranks = ranks;
  }

  private check(holds: boolean, text: string): void {
    if (!holds) throw badFile(this.file, text);
  }

  private checkRank(rank: number | undefined): void {
    this.check(rank !== undefined && rank < this.ranks.size, 'a message has an unknown rank');
  }

  get messages(): number {
    return Math.floor(this.column('messages').length / MESSAGE);
  }

  /** End `m` of a message with that datum. `isInline`: a version of the datum fits into a letter. */
  message(m: number, datum: DatumId, isInline: boolean): PlannedMessage {
    const { rank, keys } = this.ranks;
    const numbers: Numbers = this.column('messages');
    this.check(m < this.messages, 'an end of a message is missing');
    const at = m * MESSAGE;
    const [key, from, to, turn] = [numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]];
    this.checkRank(from);
    this.checkRank(to);
    this.check(
      from !== to && (from === rank || to === rank) && key >= 1 && key <= keys && turn <= 1,
      'a message is not one of this rank',
    );
    const isTurn = turn === 1;
    return { key, datum, from, to, isShort: isTurn || isInline, isTurn };
  }

  /** `data`: rows by number in the file. */
  facts(data: readonly DatumId[]): MessageFacts {
    const readers = new Map<DatumId, readonly number[]>();
    for (const [datum, ranks] of this.lists('readers', 1)) readers.set(data[datum], ranks);
    const last = new Map<DatumId, { rank: number; others: readonly number[] }>();
    for (const [datum, [rank, ...others]] of this.lists('last', 2))
      last.set(data[datum], { rank, others });
    for (const d of [...readers.keys(), ...last.keys()])
      this.check(d !== undefined, 'a message has an unknown datum');
    const numbers: Numbers = this.column('pairs');
    const pairs = new Set<string>();
    for (let i = 0; i + 1 < numbers.length; i += 2) {
      this.checkRank(numbers[i]);
      this.checkRank(numbers[i + 1]);
      pairs.add(`${numbers[i]} ${numbers[i + 1]}`);
    }
    return { readers, last, keys: this.ranks.keys, pairs };
  }

  /** Lists of a datum and different ranks: `head` numbers, the length of the rest, and the rest. Without the length. */
  private lists(name: 'readers' | 'last', head: number): [number, number[]][] {
    const numbers = this.column(name);
    const found: [number, number[]][] = [];
    for (let at = 0; at < numbers.length; ) {
      const end = at + head + 1 + numbers[at + head];
      this.check(end <= numbers.length, 'a list of ranks is cut');
      const ranks = Array.from(numbers.subarray(at + 1, end));
      ranks.splice(head - 1, 1);
      for (const rank of ranks) this.checkRank(rank);
      this.check(new Set(ranks).size === ranks.length, 'a rank gets a value twice');
      found.push([numbers[at], ranks]);
      at = end;
    }
    return found;
  }
}
