// The kernel `copy_block` of simulated machines (native/kernels/block.h): parts of data need it on every machine.
import type { CompiledTime } from './kernel-times.js';

/** Name of the kernel. */
export const COPY_BLOCK = 'copy_block';

/** Bytes per second that a device copies in its own memory. */
const BANDWIDTH = 1e11;

/** Seconds of a copy: by its bytes, which are read and written. */
export const blockTime: CompiledTime = (args, first) =>
  (2 * args[first] * args[first + 1] * args[first + 2]) / BANDWIDTH;

interface BlockCall {
  readonly memory: Uint8Array;
  readonly flows: readonly number[];
  readonly params: readonly number[];
}

/** Copies columns of `rows` elements of `each` bytes. */
export function copyBlock({ memory, flows, params }: BlockCall): number {
  const [each, rows, columns, toLead, toFirst, fromLead, fromFirst] = params;
  for (let j = 0; j < columns; j++) {
    const from = flows[1] + (fromFirst + j * fromLead) * each;
    memory.copyWithin(flows[0] + (toFirst + j * toLead) * each, from, from + rows * each);
  }
  return 0;
}
