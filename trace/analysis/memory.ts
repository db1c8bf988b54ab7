// Highest use of each memory space, from the samples in the trace.
import { CounterKind } from '../format.js';
import { spaceName, type Trace } from '../trace.js';

/** Bytes. All zero when the trace has no samples of the space. */
export interface MemoryUse {
  readonly space: string;
  readonly rank: number;
  readonly capacity: number;
  readonly samples: number;
  readonly highWater: number;
  readonly pinned: number;
  readonly dirty: number;
}

/** One entry per memory space with samples, and every device. */
export function memoryUse(trace: Trace): MemoryUse[] {
  const { counters } = trace;
  const peaks = trace.spaces.map(() => ({ samples: 0, highWater: 0, pinned: 0, dirty: 0 }));
  for (let row = 0; row < counters.count; row++) {
    if (counters.kind[row] !== CounterKind.memory) continue;
    const peak = peaks[counters.space[row]];
    if (!peak) continue;
    peak.samples++;
    peak.highWater = Math.max(peak.highWater, counters.values[6 * row]);
    peak.pinned = Math.max(peak.pinned, counters.values[6 * row + 1]);
    peak.dirty = Math.max(peak.dirty, counters.values[6 * row + 2]);
  }
  const uses: MemoryUse[] = [];
  trace.spaces.forEach((space, index) => {
    if (space.index === 0 && peaks[index].samples === 0) return;
    uses.push({
      space: spaceName(trace, index),
      rank: space.rank,
      capacity: space.bytes,
      ...peaks[index],
    });
  });
  return uses;
}
