// Runs that have come before, by one number per run, which stands for its insertions (periods.ts). A run is recorded only if it
// begins as one that has come often enough. Then a program that never repeats pays for these numbers and for nothing else.
//
// Numbers may be equal by chance. That costs a recording: what is recorded is compared with the insertions themselves.
import { mix } from '../ranks/call-log.js';

interface Signature {
  /** The number of its first insertion, and its tasks. */
  readonly first: number;
  readonly tasks: number;
  /** How often it has come. */
  seen: number;
}

/** Doublings of the times that a run must come. */
const MOST_DOUBTS = 6;
/** Runs that are known. Those that have not come for the longest time go first. */
const MOST = 64;

export class Signatures {
  /** By the number of the run and its tasks. */
  private readonly known: Map<number, Signature> = new Map();
  /** The most that a run with that first insertion has come, if it has come twice. */
  private readonly begins: Map<number, number> = new Map();
  /** How often runs that begin so were others than it seemed. */
  private readonly doubts: Map<number, number> = new Map();

  /** A run with that number is over. Returns how often it has come. */
  came(run: number, first: number, tasks: number): number {
    const { known, begins } = this;
    // Not all insertions count for the number: of two runs that take turns, one may be the begin of the other.
    const key = mix(run, tasks);
    const before = known.get(key);
    const isSame = before?.tasks === tasks && before.first === first;
    const seen = isSame ? before.seen + 1 : 1;
    known.delete(key);
    known.set(key, { first, tasks, seen });
    dropFirst(known);
    if (seen > 1) {
      begins.set(first, Math.max(seen, begins.get(first) ?? 0));
      dropFirst(begins);
    }
    return seen;
  }

  /** How often a run that begins like this has come, halved by every doubt; 0 if it has not come twice. */
  timesOf(first: number): number {
    return (this.begins.get(first) ?? 0) / 2 ** (this.doubts.get(first) ?? 0);
  }

  /** Runs that begin like this are to be counted anew. `isWrong`: they were recorded and turn out to be others. */
  forget(first: number, isWrong = false): void {
    const { begins, known, doubts } = this;
    if (isWrong) {
      doubts.set(first, Math.min((doubts.get(first) ?? 0) + 1, MOST_DOUBTS));
      dropFirst(doubts);
    }
    if (!begins.delete(first)) return;
    for (const [run, signature] of known)
      if (signature.first === first && signature.seen > 1) known.delete(run);
  }

  /** Runs that begin like this are what they seem to be. */
  trust(first: number): void {
    this.doubts.delete(first);
  }
}

function dropFirst(map: Map<number, unknown>): void {
  if (map.size <= MOST) return;
  for (const key of map.keys()) {
    map.delete(key);
    return;
  }
}
