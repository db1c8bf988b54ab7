// A script worker, on its own thread: it takes the records of its queue one by one and runs their bodies.
//
// Invariants: bodies run one after the other, in the order of the queue; an asynchronous body ends before the next one begins.
// While there is work the thread does not return to its event loop, but for a turn now and then and while a body awaits
// something. Whatever a body throws ends its record, and nothing else.
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { ScriptCall, ScriptNext, Status } from '../../native/contract.js';
import { loadNative } from '../../native/index.js';
import type { ScriptClass } from '../backend.js';
import { encodeThrown } from '../thrown-bytes.js';
import type { HostSpace } from './host-views.js';
import { native } from './native-errors.js';
import type { ScriptWorkerData } from './script-workers.js';

/** Most arguments of a record, and most lengths of a list. */
const MOST_ARGUMENTS = 8192;

/** The host space, in a worker. Views of a buffer that is forgotten have no elements. */
export interface ForgettingSpace extends HostSpace {
  forget(view: ArrayBuffer): void;
}

/**
 * Runs the body of a class: `flows` offsets of data, the parameters, and the lengths of the data, `count` numbers in all. The
 * promise of an asynchronous body, else undefined.
 */
export type RunBody = (
  args: Float64Array,
  flows: number,
  count: number,
) => PromiseLike<unknown> | undefined;

/** Serves the queue of a worker until the runtime closes. `load` makes the runner of a class. */
export async function serveScripts(
  data: ScriptWorkerData,
  load: (cls: ScriptClass, space: ForgettingSpace) => Promise<RunBody>,
): Promise<void> {
  const args = new Float64Array(MOST_ARGUMENTS);
  const call = new Int32Array(ScriptCall.words);
  let wake = (): void => {};
  const server = native(() =>
    loadNative().serveScripts(data.core, data.queue, args, call, () => wake()),
  );
  tellLastWords((bytes) => server.ends(bytes));
  const classes: ScriptClass[] = [];
  const runners: (RunBody | undefined)[] = [];
  let status: number = Status.ok;
  for (;;) {
    const kernel = server.next(status);
    status = Status.ok;
    if (kernel >= 0) {
      try {
        let run = runners[kernel];
        if (run === undefined) {
          run = await load(classOf(kernel, classes, data.classes), server);
          runners[kernel] = run;
        }
        const later = run(args, call[ScriptCall.flows], call[ScriptCall.arguments]);
        if (later !== undefined) await later;
      } catch (cause) {
        server.throws(encodeThrown(cause));
        status = Status.threw;
      }
    } else if (kernel === ScriptNext.end) {
      return;
    } else if (kernel === ScriptNext.turn) {
      await new Promise((resolve) => setImmediate(resolve));
    } else {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      if (server.rest()) await woken;
    }
  }
}

/** The class of a number. The engine's thread sends a class before it writes the first record with its number. */
function classOf(number: number, classes: ScriptClass[], port: MessagePort): ScriptClass {
  while (classes.length <= number) {
    const received = receiveMessageOnPort(port) as { readonly message: ScriptClass } | undefined;
    if (received === undefined) throw new Error(`task class ${number} is not known`);
    classes.push(received.message);
  }
  return classes[number];
}

/** If the thread ends, the body that runs fails with the first reason. */
function tellLastWords(tell: (bytes: Uint8Array) => void): void {
  let told = false;
  const once = (reason: unknown): void => {
    if (!told) tell(encodeThrown(reason));
    told = true;
  };
  process.on('uncaughtExceptionMonitor', once);
  process.on('exit', (code) => once(new Error(`process.exit(${code}) was called`)));
}
