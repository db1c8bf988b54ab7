// The messages of a plan on several ranks. Every rank knows the tasks of all ranks, so each finds the same list.
//
// A version of a datum goes to every rank that reads it, directly after the task that writes it. The last version of an
// iteration also goes to the ranks that read the datum at the begin of an iteration: so an iteration begins with all data where
// they are read. Many readers get a version along a binomial tree.
//
// Order. Sends and receives have the place of the writer in program order, and every rank issues its commands in program order.
// Invariant: a command waits for commands of its own rank that were issued before it, for those of the iteration before, and,
// if it is a receive or a delivery, for the other end of its message. Why no ranks wait for each other in a circle: let c be the first
// command that never ends, by iteration, then by place in program order, then by number of the message. What it waits for on
// its own rank comes before it, so it ends. The two ends of a message have the same place, so all that the other end waits for
// comes before c, too, and the other end is reached. So c ends.
//
// Run-ahead. A short version travels in a letter, which the receiver keeps until its receive is reached. So a rank that only
// sends could fill the memory of another. Therefore each pair of ranks with short versions in one direction only gets a
// *turn* in the other: a message without bytes, at the end of the iteration. The short versions for a rank travel on one lane,
// in program order, and those from it on one, too. A short version waits for the last message from its receiver in the
// iteration before. Invariant: at the receiver lie letters of at most two iterations. Let a rank send in iteration k + 2:
// then it has the last message that the other one has sent in iteration k + 1, and before that the other has received all
// of iteration k.
//
// A condition. While a play has one, the last messages of an iteration bring the number that the condition looks at to all ranks
// (look.ts). Each rank looks at its own copy, when all of its commands of the iteration are over. The commands behind the look have a
// later iteration, so the reason above holds with it; a message of the iteration before the look waits for no look. The turns
// above remain: the number is the last message from its sender, and the next iteration's messages wait for it or for its turn.
import type { DatumId } from '../../devices/handles.js';
import { AccessMode } from '../../trace/format.js';
import type { Insertions } from './insertions.js';

/** A version, or a turn, that goes from a rank to another in every iteration. */
export interface PlannedMessage {
  /** From 1; the same on both ranks. */
  readonly key: number;
  /** Of a turn: any datum of the last message in the other direction. */
  readonly datum: DatumId;
  readonly from: number;
  readonly to: number;
  /** It travels in a letter. */
  readonly isShort: boolean;
  readonly isTurn: boolean;
}

/** What all ranks know of the messages of a plan when it is made. */
export interface MessageFacts {
  /** Ranks that read a datum before any task of an iteration writes it. */
  readonly readers: ReadonlyMap<DatumId, readonly number[]>;
  /** The writer of the last version of a datum, and the other ranks that have it after an iteration. */
  readonly last: ReadonlyMap<
    DatumId,
    { readonly rank: number; readonly others: readonly number[] }
  >;
  /** The last key. */
  readonly keys: number;
  /** The pairs of ranks with short messages, turns included: `from to`. */
  readonly pairs: ReadonlySet<string>;
}

export interface PlannedMessages extends MessageFacts {
  /** By number of the insertion that they follow. */
  readonly after: ReadonlyMap<number, readonly PlannedMessage[]>;
  /** At the end of the iteration. */
  readonly turns: readonly PlannedMessage[];
}

interface Version {
  readonly task: number;
  readonly datum: DatumId;
  readonly rank: number;
  readonly readers: number[];
}

/** `rankOf`: rank of each insertion; `isShort`: whether a datum fits into a letter; `treeFrom`: readers from which on a version goes along a tree. */
export function planMessages(
  insertions: Pick<Insertions, 'count' | 'classOf' | 'datum'>,
  rankOf: readonly number[],
  isShort: (datum: DatumId) => boolean,
  treeFrom: number,
): PlannedMessages {
  const versions: Version[] = [];
  const current = new Map<DatumId, Version>();
  const readers = new Map<DatumId, number[]>();
  for (let n = 0; n < insertions.count; n++) {
    const { modes } = insertions.classOf(n);
    const rank = rankOf[n];
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] === AccessMode.write) continue;
      const datum = insertions.datum(n, i);
      const version = current.get(datum);
      if (version?.rank === rank) continue;
      const list = version?.readers ?? readers.get(datum) ?? [];
      if (!list.includes(rank)) list.push(rank);
      if (version === undefined) readers.set(datum, list);
    }
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] === AccessMode.read) continue;
      const datum = insertions.datum(n, i);
      const version: Version = { task: n, datum, rank, readers: [] };
      versions.push(version);
      current.set(datum, version);
    }
  }
  for (const [datum, list] of readers) {
    const version = current.get(datum);
    for (const rank of version === undefined ? [] : list)
      if (version?.rank !== rank && !version?.readers.includes(rank)) version?.readers.push(rank);
  }
  const after = new Map<number, PlannedMessage[]>();
  let key = 0;
  for (const version of versions) {
    const { task, datum } = version;
    for (const [from, to] of branches(version, treeFrom)) {
      const message = { key: ++key, datum, from, to, isShort: isShort(datum), isTurn: false };
      const list = after.get(task);
      if (list === undefined) after.set(task, [message]);
      else list.push(message);
    }
  }
  const last = new Map([...current].map(([d, { rank, readers: others }]) => [d, { rank, others }]));
  const short = [...after.values()].flat().filter((message) => message.isShort);
  const pairs = new Set(short.map(pairOf));
  const turns = turnsOf(short, pairs, key);
  for (const turn of turns) pairs.add(pairOf(turn));
  return { after, turns, readers, last, keys: key + turns.length, pairs };
}

/**
 * The messages that bring the number of a condition to all ranks, with the turns that they need: at the end of the iteration, in
 * this order.
 */
export function numberMessages(
  { last, keys, pairs }: MessageFacts,
  datum: DatumId,
  ranks: number,
  isShort: boolean,
  treeFrom: number,
): readonly PlannedMessage[] {
  const { rank } = last.get(datum) as { rank: number };
  const readers = Array.from({ length: ranks }, (_, r) => r).filter((r) => r !== rank);
  const sent = branches({ rank, readers }, treeFrom).map(
    ([from, to], i): PlannedMessage => ({
      ...{ key: keys + 1 + i, datum, from, to, isShort, isTurn: false },
    }),
  );
  if (!isShort) return sent;
  const all = new Set([...pairs, ...sent.map(pairOf)]);
  return [...sent, ...turnsOf(sent, all, keys + sent.length)];
}

function pairOf({ from, to }: Pick<PlannedMessage, 'from' | 'to'>): string {
  return `${from} ${to}`;
}

/** Pairs (from, to): a rank sends a version after it has received it. */
function branches(
  { rank, readers }: Pick<Version, 'rank' | 'readers'>,
  treeFrom: number,
): [number, number][] {
  const members = [rank, ...readers];
  const isTree = readers.length >= treeFrom;
  return readers.map((to, i) => {
    const place = i + 1;
    // In a binomial tree the parent's number is this one without its highest bit.
    const parent = isTree ? place - 2 ** Math.floor(Math.log2(place)) : 0;
    return [members[parent], to];
  });
}

/** A turn for each pair of ranks with short versions in the other direction only. `used`: the last key. */
function turnsOf(
  short: readonly PlannedMessage[],
  pairs: ReadonlySet<string>,
  used: number,
): PlannedMessage[] {
  const last = new Map(short.map((message) => [pairOf(message), message]));
  let key = used;
  return [...last.values()]
    .filter(({ from, to }) => !pairs.has(`${to} ${from}`))
    .map(({ datum, from, to }) => ({
      ...{ key: ++key, datum, from: to, to: from, isShort: true, isTurn: true },
    }));
}
