// Stage 6, finalize: the task's end was observed. Its pins go, which makes its copies evictable again and touches
// their place in the least-recently-used order; then the engine releases what waited for completion and retires
// the row. Invariant: a task passes here exactly once, whatever its outcome, if it ever held pins.
import { guards } from '../devices/guards.js';
import type { StageContext } from './context.js';
import { Outcome } from './stage.js';

/** Gives back the pins that alloc took. */
export function releasePins(x: StageContext, row: number): void {
  const { tasks } = x;
  const space = x.spaces[tasks.device[row]];
  const first = tasks.flowStart[row];
  const end = first + x.classes[tasks.classOf[row]].modes.length;
  if (guards.taskPins) for (let i = first; i < end; i++) space.unpin(tasks.flowDatum[i]);
}

export function finalize(x: StageContext, row: number): number {
  releasePins(x, row);
  return Outcome.advance;
}
