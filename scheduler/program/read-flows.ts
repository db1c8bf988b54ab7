// Checked runs: a JavaScript body must leave the data of its read flows as they are.
// Invariant: a body that has written one fails its task, and the datum has its old value again.
import { HeadraceError } from '../../devices/errors.js';
import { AccessMode } from '../../trace/format.js';
import { promiseOf } from '../engine/thenable.js';
import type { AnyElementArray } from './element-type.js';
import type { TaskClass } from './task-class.js';

type Arguments = Record<string, unknown>;
type Body = (args: Arguments, context: unknown) => unknown;

/** The bytes of an array, in place. */
const bytesOf = ({ buffer, byteOffset, byteLength }: AnyElementArray): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** The body of a class, with the check. The body itself if nothing is to be checked. */
export function withReadFlowsChecked(cls: TaskClass, body: Body): Body {
  const flows = cls.flowNames.filter((_, i) => cls.modes[i] === AccessMode.read);
  if (flows.length === 0) return body;
  return (args, context) => {
    const arrays = flows.map((flow) => args[flow] as AnyElementArray);
    const before = arrays.map((array) => bytesOf(array).slice());
    const check = (): void => {
      const at = arrays.findIndex((array, i) => Buffer.compare(bytesOf(array), before[i]) !== 0);
      if (at < 0) return;
      const element = restore(arrays[at], before[at]);
      throw new HeadraceError(
        'ERR_READ_FLOW_WRITTEN',
        `the body of task class '${cls.name}' has written element ${element} of flow '${flows[at]}', which it only reads`,
        {
          remedy: `declare the flow as ${readWriteOf(cls, flows[at])}`,
        },
      );
    };
    const later = promiseOf(body(args, context));
    if (later !== undefined) return later.then(check);
    check();
    return undefined;
  };
}

/** The declaration that lets a body write the flow; members of lists belong to one. */
function readWriteOf({ elements, flowNames, declared }: TaskClass, flow: string): string {
  const one = `readWrite('${elements[flowNames.indexOf(flow)]}')`;
  return declared === undefined || declared.flowNames.includes(flow) ? one : `list(${one})`;
}

/** Gives an array its old bytes again. Returns the first element that had changed. */
function restore(array: AnyElementArray, before: Uint8Array): number {
  const now = bytesOf(array);
  const first = now.findIndex((byte, i) => byte !== before[i]);
  now.set(before);
  return Math.floor(first / array.BYTES_PER_ELEMENT);
}
