// A datum that goes back and forth between two ranks: every step is a task that depends on the one before on the other
// rank. The whole chain is inserted on both ranks before its first task may start, so that the time of a step is that
// of a dependency, not of an insertion. What holds the first task is a kernel, behind which the queues take the tasks that follow,
// or a JavaScript body, before whose end the engine issues none of them on its rank: no receive is run past before the bodies of earlier
// tasks are over. (So the body that notes the beginning comes behind the chain in the order of the program.) The chain is held for a few
// times as long as its insertion takes, not much longer: threads that have waited for 10 ms fall asleep, and a processor that was idle
// can take longer to come to its full speed than the whole chain lasts.
import { type Datum, type Runtime, read, readWrite, task, write } from '../index.js';
import { median } from './harness.js';

/** The chain is held that many times as long as its last insertion took; */
const HELD_INSERTIONS = 3;
/** at least so long, */
const LEAST_HELD_MS = 4;
/** and so long at most, and the first time. */
const MOST_HELD_MS = 250;

const begin = task({
  name: 'held',
  flows: { go: readWrite('f64') },
  params: { microseconds: 'f64' },
  kernel: 'spin',
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

/** What holds the first task. */
export type Holder = 'kernel' | 'body';

export class Relay {
  private readonly runtime: Runtime;
  private readonly holder: Holder;
  private readonly x: Datum<'f64'>;
  private readonly go: Datum<'f64'>;
  private readonly end: Datum<'f64'>;
  /** The milliseconds that rank 0 took to insert the chain. */
  private readonly insertion: Datum<'f64'>;
  private held = MOST_HELD_MS;
  private began = 0;
  private seconds: number | undefined;
  private readonly body = task({
    name: 'held by a body',
    flows: { go: readWrite('f64') },
    body: async () => {
      await new Promise((resolve) => setTimeout(resolve, this.held));
      this.began = performance.now();
    },
  });
  // Bodies note both ends of the chain, each after a kernel.
  private readonly begun = task({
    name: 'begun',
    flows: { go: read('f64') },
    body: () => {
      this.began = performance.now();
    },
  });
  private readonly note = task({
    name: 'note',
    flows: { end: read('f64') },
    body: () => {
      this.seconds = (performance.now() - this.began) / 1e3;
    },
  });

  /** `bytes`: of the datum. */
  constructor(runtime: Runtime, bytes: number, holder: Holder = 'kernel') {
    this.runtime = runtime;
    this.holder = holder;
    this.x = runtime.data(new Float64Array(bytes / 8), { rank: 0 });
    this.go = runtime.data(new Float64Array(1), { rank: 0 });
    this.end = runtime.data(new Float64Array(1), { rank: 0 });
    this.insertion = runtime.data(new Float64Array(1), { rank: 0 });
  }

  /** Repeats the chain and returns the seconds of one step on rank 0, 0 on others: the median of the repeats. */
  async run(steps: number, repeats: number): Promise<number> {
    const seconds: number[] = [];
    for (let repeat = 0; repeat < repeats; repeat++) {
      const taken = await this.once(steps);
      if (taken !== undefined) seconds.push(taken / steps);
    }
    return seconds.length > 0 ? median(seconds) : 0;
  }

  /** Seconds of one chain, on rank 0. */
  private async once(steps: number): Promise<number | undefined> {
    const { runtime, body, begun, note, x, go, end, held, insertion } = this;
    this.seconds = undefined;
    let milliseconds = 0;
    await runtime.run((graph) => {
      const since = performance.now();
      if (this.holder === 'body') graph.insert(body, { go }, { rank: 0 });
      else graph.insert(begin, { go, microseconds: held * 1000 }, { rank: 0 });
      graph.insert(first, { x, go }, { rank: 0 });
      for (let i = 1; i < steps; i++) graph.insert(pass, { x }, { rank: i & 1 });
      graph.insert(last, { x, end }, { rank: 0 });
      if (this.holder === 'kernel') graph.insert(begun, { go }, { rank: 0 });
      graph.insert(note, { end }, { rank: 0 });
      milliseconds = performance.now() - since;
    });
    // All ranks insert the same program.
    await insertion.set(Float64Array.of(milliseconds));
    const [measured] = await insertion.read();
    this.held = Math.min(MOST_HELD_MS, Math.max(LEAST_HELD_MS, HELD_INSERTIONS * measured));
    return this.seconds;
  }
}
