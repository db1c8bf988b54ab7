// What the engine sees of its queues while threads complete and fail records: every interleaving of a look with other threads
// must keep the promises of devices/native/progress.ts.
import '../support/removable-guards.js';
import { afterEach, describe, expect, test } from 'vitest';
import type { QueueId } from '../../devices/handles.js';
import { QueueProgress } from '../../devices/native/progress.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { Control, Shared } from '../../native/contract.js';
import { random } from '../support/tasks.js';

/** Queue 0 is no queue; lanes begin at `LANE`. */
const QUEUES = 5;
const LANE = 3;

/** A record that completes: the steps in which its thread says so. */
interface Completion {
  readonly queue: number;
  readonly failed: boolean;
}

class Threads {
  readonly control = new Int32Array(QUEUES * Control.words);
  readonly shared = new Int32Array(Shared.words);
  readonly queues = { length: QUEUES };
  /** In the order in which they became complete. */
  readonly completions: Completion[] = [];
  private readonly steps: (() => void)[] = [];

  /** Records complete one after the other, as if each waited for the one before. */
  add(completion: Completion): void {
    const { queue, failed } = completion;
    const base = queue * Control.words;
    if (failed) {
      this.steps.push(() => this.control[base + Control.failures]++);
      this.steps.push(() => this.shared[Shared.failed]++);
    }
    this.steps.push(() => {
      this.control[base + Control.completed]++;
      this.completions.push(completion);
    });
    if (queue >= LANE) this.steps.push(() => this.shared[Shared.arrivals]++);
  }

  step(): boolean {
    const next = this.steps.shift();
    next?.();
    return next !== undefined;
  }
}

/** Looks and steps in an order drawn from `seed`; what is wrong after a look, or undefined. */
function firstProblem(seed: number): string | undefined {
  const draw = random(seed);
  const threads = new Threads();
  for (let i = 0; i < 12; i++)
    threads.add({ queue: 1 + Math.floor(draw() * (QUEUES - 1)), failed: draw() < 0.4 });
  let haste = 0;
  const progress = new QueueProgress(threads, LANE, (words, index) => {
    while (draw() < haste && threads.step());
    return words[index];
  });
  haste = draw();
  for (let look = 0; look < 40; look++) {
    const before = progress.completed.slice();
    const moved = progress.poll();
    if (moved !== progress.completed.some((n, q) => n !== before[q])) return 'movement';
    const problem = problemOf(threads, progress);
    if (problem !== undefined) return problem;
    progress.handledFailures(handled(threads, progress));
    threads.step();
  }
  while (threads.step());
  progress.poll();
  const all = threads.completions.filter(({ failed }) => failed).length;
  return handled(threads, progress) === all ? undefined : 'a failure is never handled';
}

/** Failed records among those that are seen complete. */
function handled({ completions }: Threads, progress: QueueProgress): number {
  const left = progress.completed.slice();
  return completions.filter(({ queue, failed }) => left[queue]-- > 0 && failed).length;
}

function problemOf({ completions }: Threads, progress: QueueProgress): string | undefined {
  const { completed, failures } = progress;
  for (let q = 1 as QueueId; q < QUEUES; q++) {
    const own = completions.filter(({ queue }) => queue === q).slice(0, completed[q]);
    if (own.filter(({ failed }) => failed).length > failures[q]) return 'a failure is not counted';
  }
  const left = completed.slice();
  const seen = completions.map(({ queue }) => left[queue]-- > 0);
  const last = seen.lastIndexOf(true);
  if (completions.some(({ failed }, i) => failed && i < last && !seen[i]))
    return 'what followed a failure is seen before it';
  return undefined;
}

const SEEDS = Array.from({ length: 4000 }, (_, seed) => seed + 1);

describe('completions and failures of queues', () => {
  afterEach(() => setGuard('failuresSettle', true));

  test('every failure is seen with the completion of its record, and before what follows it', () => {
    for (const seed of SEEDS) expect(firstProblem(seed), `seed ${seed}`).toBeUndefined();
  });

  test('without failuresSettle: what was computed from a failure counts as valid', () => {
    setGuard('failuresSettle', false);
    expect(SEEDS.map(firstProblem)).toContain('what followed a failure is seen before it');
  });
});
