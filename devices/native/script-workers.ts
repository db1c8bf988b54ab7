// The script workers of a machine, on the engine's thread: it starts a thread per queue of kind `script`, tells them the task
// classes, and puts a new thread in the place of one that has ended.
//
// Invariant: every queue with records is served, or will be: by a thread that starts or runs; by a new thread, as soon as the
// engine's thread sees that the last one has let go of the queue (its exit, or a look while the engine is blocked); or, if a
// thread could not start, by the core, which fails every body. A body takes a thread down once, so a new thread finds one
// body less.
import { getHeapStatistics } from 'node:v8';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { Control, type NativeCore, QueueKind, Serving } from '../../native/contract.js';
import { describeThrown } from '../../trace/thrown.js';
import type { ScriptClass, ScriptWorkers } from '../backend.js';
import { HeadraceError } from '../errors.js';
import type { QueueId } from '../handles.js';
import { decodeThrown, encodeThrown } from '../thrown-bytes.js';

/** The program that script workers run. */
export interface ScriptProgram {
  /** Its module. It calls `serveScripts`. */
  readonly module: URL;
  /** The runtime checks its bodies. */
  readonly checked: boolean;
}

/** What a script worker gets as its `workerData`, under `scriptWorker`. */
export interface ScriptWorkerData {
  /** Address of the core. */
  readonly core: bigint;
  readonly queue: number;
  /** The task classes, in the order of their numbers. */
  readonly classes: MessagePort;
  readonly checked: boolean;
}

interface Thread {
  readonly worker: Worker;
  readonly classes: MessagePort;
}

/** Numbers of classes have 16 bits. */
const MOST_CLASSES = 2 ** 16;

export class NativeScriptWorkers implements ScriptWorkers {
  private readonly core: NativeCore;
  private readonly program: ScriptProgram;
  private readonly queues: readonly number[];
  private readonly threads: (Thread | undefined)[] = [];
  private readonly classes: ScriptClass[] = [];
  /** The planner binds the classes of a program anew for every plan (devices/planning/backend.ts): they keep their numbers. */
  private readonly numbers: Map<string, number> = new Map();
  private isClosing = false;

  constructor(core: NativeCore, program: ScriptProgram) {
    this.core = core;
    this.program = program;
    this.queues = core.queues.flatMap(({ kind }, q) => (kind === QueueKind.script ? [q] : []));
  }

  /** @throws HeadraceError `ERR_TASK_CLASS` when there are too many classes */
  define(cls: ScriptClass): number {
    const { name, module, flows, signature } = cls;
    const key = JSON.stringify([name, module, flows, signature]);
    const known = this.numbers.get(key);
    if (known !== undefined) return known;
    if (this.classes.length >= MOST_CLASSES) {
      throw new HeadraceError(
        'ERR_TASK_CLASS',
        `task class '${cls.name}': a runtime knows at most ${MOST_CLASSES} classes with a module`,
        { limit: MOST_CLASSES, remedy: 'make a class once, and give its tasks parameters' },
      );
    }
    this.numbers.set(key, this.classes.length);
    this.classes.push(cls);
    for (const thread of this.threads) thread?.classes.postMessage(cls);
    if (this.threads.length === 0) for (let k = 0; k < this.queues.length; k++) this.start(k);
    return this.classes.length - 1;
  }

  thrown(queue: QueueId, seq: number): unknown {
    const bytes = this.core.thrown(queue, seq);
    return bytes === null ? undefined : decodeThrown(bytes);
  }

  /** Starts a new thread for every queue whose thread has let go of it. */
  look(): void {
    if (this.threads.length === 0 || this.isClosing) return;
    const { control } = this.core;
    this.queues.forEach((queue, k) => {
      const at = queue * Control.words + Control.serving;
      if (Atomics.compareExchange(control, at, Serving.ended, Serving.none) === Serving.ended)
        this.start(k);
    });
  }

  async close(): Promise<void> {
    this.isClosing = true;
    await Promise.all(this.threads.map((thread) => thread?.worker.terminate()));
  }

  private start(k: number): void {
    const { port1, port2 } = new MessageChannel();
    for (const cls of this.classes) port1.postMessage(cls);
    port1.unref();
    const scriptWorker: ScriptWorkerData = {
      core: this.core.scripts(),
      queue: this.queues[k],
      classes: port2,
      checked: this.program.checked,
    };
    let worker: Worker;
    try {
      // Like the program: the same loaders and preloads, and a heap as large as that of a process.
      worker = new Worker(this.program.module, {
        workerData: { scriptWorker },
        transferList: [port2],
        name: `headrace script worker ${k}`,
        resourceLimits: { maxOldGenerationSizeMb: getHeapStatistics().heap_size_limit / 2 ** 20 },
      });
    } catch (cause) {
      this.refuse(k, cause);
      return;
    }
    const thread = { worker, classes: port1 };
    this.threads[k] = thread;
    let reason: unknown;
    worker.on('error', (error) => {
      reason = error;
    });
    worker.once('exit', (code) => {
      port1.close();
      this.ended(k, thread, reason ?? new Error(`process.exit(${code}) was called`));
    });
    worker.unref();
  }

  private ended(k: number, thread: Thread, reason: unknown): void {
    if (this.isClosing) return;
    const { control } = this.core;
    const serving = Atomics.load(control, this.queues[k] * Control.words + Control.serving);
    if (this.threads[k] === thread && serving === Serving.none) {
      this.refuse(k, reason);
      return;
    }
    this.look();
    process.emitWarning(
      `script worker ${k} has ended, and a new one takes its place: ${describeThrown(reason)}`,
      { type: 'HeadraceWarning', code: 'HEADRACE_SCRIPT_WORKER' },
    );
  }

  private refuse(k: number, cause: unknown): void {
    const error = new HeadraceError(
      'ERR_SCRIPT_WORKER',
      `script worker ${k} cannot start: ${describeThrown(cause)}`,
      { cause, remedy: 'open a new runtime when the reason is removed' },
    );
    this.core.refuse(this.queues[k], encodeThrown(error));
  }
}
