// A datum that goes back and forth between two ranks: every step is a task that depends on the one before on the other
// rank. The whole chain is inserted on both ranks before its first task may start, so that the time of a step is that
// of a dependency, not of an insertion. What holds the first task is a kernel, behind which the queues take the tasks that follow,
// or a JavaScript body, before whose end the engine issues none of them on its rank.
import { type Runtime, read, readWrite, task, write } from '../index.js';
import { median } from './harness.js';

/** Both ranks insert for less time than that. */
const HELD_MS = 250;

/** What holds the first task. */
export type Holder = 'kernel' | 'body';

/** Repeats the relay and returns the seconds of one step on rank 0, 0 on others: the median of the repeats. */
export async function relay(
  runtime: Runtime,
  bytes: number,
  steps: number,
  repeats: number,
  holder: Holder = 'kernel',
): Promise<number> {
  let began = 0;
  const seconds: number[] = [];
  const flows = { go: readWrite('f64') };
  const body = task({
    name: 'held',
    flows,
    body: async () => {
      await new Promise((resolve) => setTimeout(resolve, HELD_MS));
      began = performance.now();
    },
  });
  const kernel = task({ name: 'held', flows, params: { microseconds: 'f64' }, kernel: 'spin' });
  // Bodies note both ends of the chain, each after a kernel.
  const begun = task({
    name: 'begun',
    flows: { go: read('f64') },
    body: () => {
      began = performance.now();
    },
  });
  const first = task({
    name: 'first',
    flows: { x: readWrite('f64'), go: read('f64') },
    kernel: 'empty',
  });
  const pass = task({ name: 'pass', flows: { x: readWrite('f64') }, kernel: 'empty' });
  const last = task({
    name: 'last',
    flows: { x: readWrite('f64'), end: write('f64') },
    kernel: 'empty',
  });
  const note = task({
    name: 'note',
    flows: { end: read('f64') },
    body: () => {
      seconds.push((performance.now() - began) / 1e3 / steps);
    },
  });
  const x = runtime.data(new Float64Array(bytes / 8), { rank: 0 });
  const go = runtime.data(new Float64Array(1), { rank: 0 });
  const end = runtime.data(new Float64Array(1), { rank: 0 });
  for (let repeat = 0; repeat < repeats; repeat++) {
    await runtime.run((graph) => {
      if (holder === 'body') graph.insert(body, { go }, { rank: 0 });
      else {
        graph.insert(kernel, { go, microseconds: HELD_MS * 1000 }, { rank: 0 });
        graph.insert(begun, { go }, { rank: 0 });
      }
      graph.insert(first, { x, go }, { rank: 0 });
      for (let i = 1; i < steps; i++) graph.insert(pass, { x }, { rank: i & 1 });
      graph.insert(last, { x, end }, { rank: 0 });
      graph.insert(note, { end }, { rank: 0 });
    });
  }
  return seconds.length > 0 ? median(seconds) : 0;
}
