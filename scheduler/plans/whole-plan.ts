// The whole plan of several ranks, of which each rank keeps and saves its part only: a digest by which the parts know each other.
//
// Invariant: parts with the same digest were made from the same tasks on the same data by name, on the same ranks, with the same
// messages. So they may be played together, although each rank has chosen its queues and its memory on its own.
import { createHash } from 'node:crypto';
import type { DatumId } from '../../devices/handles.js';
import type { TaskClass } from '../program/task-class.js';
import { savedClass } from './file-header.js';
import type { Insertions } from './insertions.js';

export interface WholePlan {
  /** SHA-256, in hexadecimal digits. */
  readonly digest: string;
  /** The data of the tasks of all ranks, in the order of their first use. */
  readonly data: readonly DatumId[];
  /** Versions of up to that many bytes are sent in letters. */
  readonly inlineBytes: number;
}

/** What is the same on all ranks, besides the tasks. */
interface WholeOptions {
  readonly name: string;
  /** The classes of the program by the id of their row. Those of the library have none. */
  readonly classes: readonly TaskClass[];
  readonly infoOf: (d: DatumId) => unknown;
  readonly bytesOf: (d: DatumId) => number;
  /** Number of ranks. */
  readonly size: number;
  readonly treeFrom: number;
  readonly inlineBytes: number;
}

/** `insertions`: those of all ranks; `rankOf`: rank of each. */
export function wholePlanOf(
  insertions: Insertions,
  rankOf: readonly number[],
  of: WholeOptions,
): WholePlan {
  const classes = new Map<number, number>();
  const data = new Map<DatumId, number>();
  const words: number[] = [];
  const numberIn = <T>(known: Map<T, number>, key: T): number => {
    const number = known.get(key) ?? known.size;
    if (number === known.size) known.set(key, number);
    return number;
  };
  const hash = createHash('sha256');
  const flush = (): void => {
    hash.update(new Uint8Array(Int32Array.from(words).buffer));
    words.length = 0;
  };
  const texts: unknown[] = [];
  for (let n = 0; n < insertions.count; n++) {
    const row = insertions.classOf(n);
    if (!classes.has(row.id)) {
      const cls = of.classes[row.id];
      texts.push(cls === undefined ? [row.name, row.flowNames, row.paramNames] : savedClass(cls));
    }
    words.push(numberIn(classes, row.id), rankOf[n]);
    for (let i = 0; i < row.modes.length; i++) words.push(numberIn(data, insertions.datum(n, i)));
    if (words.length >= CHUNK) flush();
  }
  const slots = new Map<string, number>();
  for (const { insertion, parameter, slot } of insertions.open)
    words.push(insertion, parameter, numberIn(slots, slot));
  for (const [n, before] of insertions.after) words.push(n, before.length, ...before);
  flush();
  hash.update(new Uint8Array(insertions.allParameters().buffer));
  const { name, size, treeFrom, inlineBytes } = of;
  const shapes = Array.from(data.keys(), (d) => {
    const { name: datum, element } = of.infoOf(d) as { name: string; element?: string };
    return [datum, element, of.bytesOf(d)];
  });
  const facts = [
    name,
    size,
    treeFrom,
    inlineBytes,
    insertions.count,
    texts,
    shapes,
    [...slots.keys()],
  ];
  hash.update(JSON.stringify(facts));
  return { digest: hash.digest('hex'), data: [...data.keys()], inlineBytes };
}

/** Words that are kept before they are added to the digest. */
const CHUNK = 2 ** 16;
