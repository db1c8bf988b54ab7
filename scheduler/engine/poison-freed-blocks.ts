// Checked runs: freed memory is overwritten with 0xA5, so that a stale read is seen.
import { findQueue } from '../../devices/backend.js';
import type { EngineState } from './state.js';

export function poisonFreedBlocks({ backend, spaces, submission, transfers }: EngineState): void {
  for (const space of spaces) {
    const s = space.index;
    const kind = s === 0 ? 'worker' : 'd2h';
    const queue = findQueue(backend.queues, (q) => q.space === s && q.kind === kind);
    if (queue < 0) continue;
    space.onDrop = (_d, offset, bytes) => {
      if (submission.room(queue) < 2) return false;
      transfers.poison(s, queue, offset, bytes);
      return true;
    };
  }
}
