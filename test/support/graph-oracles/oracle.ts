// An oracle is a small program with an answer that is known, as parameterised graphs.
import type { RunOptions, Runtime } from '../../../index.js';

/** Plays on the ranks of a runtime; every rank calls it. Returns what is wrong. */
export type Oracle = (runtime: Runtime, options: RunOptions) => Promise<string[]>;

/** Elements of a datum. */
export const COUNT = 16;

export function differences(what: string, seen: unknown, expected: unknown): string[] {
  const [one, other] = [JSON.stringify(seen), JSON.stringify(expected)];
  return one === other ? [] : [`${what}: ${one}, not ${other}`];
}
