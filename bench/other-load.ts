// Measurements on a machine that others use, too: one during which other processes were busy is repeated.
import { readFileSync } from 'node:fs';

/** Share of the cores' time that others may take in a measurement that counts. */
const MOST = 0.02;
/** Milliseconds between two looks for an idle machine. */
const LOOK = 400;

interface Ticks {
  readonly busy: number;
  readonly all: number;
  /** Of this process and its children that have ended. */
  readonly own: number;
}

/** The times of all cores (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal. */
function ticks(): Ticks {
  const [line] = readFileSync('/proc/stat', 'utf8').split('\n');
  const times = line.trim().split(/\s+/).slice(1, 9).map(Number);
  const all = times.reduce((sum, each) => sum + each);
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ');
  const own = fields.slice(11, 15).reduce((sum, each) => sum + Number(each), 0);
  return { busy: all - times[3] - times[4], all, own };
}

/** Share of the cores' time that others have used since. */
function othersSince(before: Ticks): number {
  const now = ticks();
  return (now.busy - before.busy - (now.own - before.own)) / Math.max(1, now.all - before.all);
}

function awaitIdle(until: number): void {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  for (let share = 1; share > MOST && performance.now() < until; ) {
    const before = ticks();
    Atomics.wait(cell, 0, 0, LOOK);
    share = othersSince(before);
  }
}

/**
 * The result of a measurement that others have not disturbed: it begins when the machine is idle, and is repeated for up to
 * so many seconds; then the least disturbed one counts. With 0 seconds it is made once. Linux only.
 */
export function undisturbed<T>(measure: () => T, seconds: number): T {
  if (seconds <= 0) return measure();
  const until = performance.now() + seconds * 1000;
  let best: { share: number; result: T } | undefined;
  do {
    awaitIdle(until);
    const before = ticks();
    const result = measure();
    const share = othersSince(before);
    if (best === undefined || share < best.share) best = { share, result };
  } while (best.share > MOST && performance.now() < until);
  return best.result;
}
