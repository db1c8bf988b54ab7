// Stage 5, stage-out: writes results back to the host in the background.
//
// Sends start from the space of the data, so they need no write-back. This stage writes back only on a device that is
// close to full. The next task that needs room then finds clean copies to drop, instead of waiting for a write-back. It
// writes back only copies that no known task uses: a task would change the others, and they would be written back again.
import { startWriteBack, victim } from '../devices/memory/eviction.js';
import { LruList } from '../devices/memory/lru.js';
import type { StageContext } from './context.js';
import { Outcome } from './stage.js';

/** Below this share of a device that is free or clean, dirty copies are written back in the background. */
const LOW_WATER = 0.1;
/** Write-backs are started until this share is free, clean or about to be. */
const HIGH_WATER = 0.2;

export function stageOut(x: StageContext, row: number): number {
  const s = x.tasks.device[row];
  if (s > 0) {
    const space = x.spaces[s];
    const capacity = space.zone.capacity;
    if (space.dirtyBytes > 0 && space.reachable + space.arrivingOut < capacity * LOW_WATER) {
      let wanted = capacity * HIGH_WATER - space.reachable - space.arrivingOut;
      const { forecast } = x.counters;
      x.ahead.look();
      while (wanted > 0) {
        const d = victim(space, LruList.dirty, forecast);
        if (d < 0 || forecast.nextUse(d, s) !== Number.POSITIVE_INFINITY) break;
        const released = startWriteBack(
          space,
          x.spaces,
          x.directory,
          x.transfers,
          x.counters,
          x.now,
        );
        if (released <= 0) break;
        wanted -= released;
      }
    }
  }
  return Outcome.advance;
}
