// Helpers of the native tests besides the contract: they write records and wait for them, like the engine.
import type { NativeCore, NativeOptions } from '../../native/contract.js';
import { Control, Opcode, QueueKind, Record, Shared, Times } from '../../native/contract.js';
import { loadNative } from '../../native/index.js';

export interface Event {
  readonly queue: number;
  readonly seq: number;
}

const NEVER: Event = { queue: -1, seq: 0 };

export class Machine implements Disposable {
  readonly core: NativeCore;
  private readonly issued: Int32Array;
  private readonly mask: number;

  constructor(options: Partial<NativeOptions> = {}) {
    this.core = loadNative().open({
      driver: 'emulated',
      gpus: 0,
      gpuBytes: 2 ** 20,
      hostBytes: 2 ** 20,
      workers: 1,
      computeStreams: 1,
      ringRecords: 64,
      checked: true,
      ...options,
    });
    this.mask = this.core.rings[0].length / Record.words - 1;
    this.issued = this.core.queues.map((_, q) => this.word(q, Control.completed)) as never;
  }

  [Symbol.dispose](): void {
    this.core.close();
  }

  /** First queue of a kind on a space (and, for peer queues, from a space). */
  queue(kind: keyof typeof QueueKind, space: number, peer = -1): number {
    const index = this.core.queues.findIndex(
      (queue) => queue.kind === QueueKind[kind] && queue.space === space && queue.peer === peer,
    );
    if (index < 0) throw new Error(`no ${kind} queue on space ${space}`);
    return index;
  }

  word(queue: number, word: number): number {
    return Atomics.load(this.core.control, queue * Control.words + word);
  }

  exec(
    queue: number,
    name: string,
    flows: number[],
    params: number[],
    wait: Event = NEVER,
    run: number = -1,
  ): Event {
    const all = [...flows, ...params];
    const head = Opcode.exec | (flows.length << 8) | (all.length << 20);
    return this.put(queue, head, this.core.kernel(name), all, wait, run);
  }

  // biome-ignore lint/complexity/useMaxParams: the words of one ring record in their order.
  copy(
    queue: number,
    to: number,
    toAt: number,
    from: number,
    fromAt: number,
    bytes: number,
    wait: Event = NEVER,
  ): Event {
    return this.put(
      queue,
      Opcode.copy | (3 << 20),
      to | (from << 8),
      [toAt, fromAt, bytes],
      wait,
      -1,
    );
  }

  fill(queue: number, at: number, bytes: number, value: number): Event {
    return this.put(queue, Opcode.fill | (3 << 20), 0, [at, bytes, value], NEVER, -1);
  }

  private put(
    queue: number,
    head: number,
    kernel: number,
    args: number[],
    wait: Event,
    run: number,
  ): Event {
    const [words, doubles] = this.next(queue);
    const seq = this.issued[queue];
    words.set([head, (kernel & 0xffff) | ((wait.queue + 1) << 16), seq, run, wait.seq, 0]);
    doubles.set(args.slice(0, Record.inlineArguments), Record.argument);
    for (let i = Record.inlineArguments; i < args.length; i += Record.doubles) {
      this.next(queue)[1].set(args.slice(i, i + Record.doubles));
    }
    return { queue, seq };
  }

  private next(queue: number): [Int32Array, Float64Array] {
    const index = this.issued[queue];
    this.issued[queue] = (index + 1) | 0;
    return this.record(queue, this.issued[queue]);
  }

  private record(queue: number, seq: number): [Int32Array, Float64Array] {
    const ring = this.core.rings[queue];
    const at = ring.byteOffset + ((seq - 1) & this.mask) * Record.bytes;
    return [
      new Int32Array(ring.buffer, at, Record.words),
      new Float64Array(ring.buffer, at, Record.doubles),
    ];
  }

  publish(): void {
    for (let q = 0; q < this.core.queues.length; q++) {
      Atomics.store(this.core.control, q * Control.words + Control.published, this.issued[q]);
      if (this.word(q, Control.sleeping) !== 0) this.core.wake(q);
    }
  }

  done(event: Event): boolean {
    return ((this.word(event.queue, Control.completed) - event.seq) | 0) >= 0;
  }

  arm(event: Event): void {
    const at = event.queue * Control.words;
    Atomics.store(this.core.control, at + Control.doorbellAt, event.seq);
    Atomics.store(this.core.control, at + Control.doorbellArmed, 1);
  }

  disarm(event: Event): void {
    Atomics.store(this.core.control, event.queue * Control.words + Control.doorbellArmed, 0);
  }

  /** Publishes and blocks until the event has happened; returns its status. */
  finish(event: Event): number {
    this.publish();
    const limit = performance.now() + 20_000;
    while (!this.done(event)) {
      if (performance.now() > limit) {
        throw new Error(`queue ${event.queue} does not complete ${event.seq}`);
      }
      this.arm(event);
      this.core.waitForDoorbell(1e6);
      // A queue that completed before it was armed stays armed, and every later wait would return at once.
      this.disarm(event);
    }
    return this.record(event.queue, event.seq)[0][Record.status];
  }

  times(event: Event): [start: number, end: number] {
    const pairs = this.core.times[event.queue];
    const at = ((event.seq - 1) & this.mask) * Times.doubles;
    return [pairs[at + Times.start], pairs[at + Times.end]];
  }

  /** float64 of host space. */
  host(offset: number, count: number): Float64Array {
    return new Float64Array(this.core.hostView(offset, count * 8));
  }

  setShared(word: keyof typeof Shared, value: number, plus = 0): void {
    Atomics.store(this.core.shared, Shared[word] + plus, value);
  }
}
