// Stage 3, comm-in: data that other ranks produce.
//
// A receive is a task of its own on the network device (it writes the datum, so ordering against local readers
// and writers is the graph's), which is why a consumer finds its remote inputs already local here. The stage
// exists so that a consumer whose receive is still under way waits for the named reason `receive` while it holds
// no more than alloc granted it; without a network there is nothing to wait for.
import type { StageContext } from './context.js';
import { Outcome } from './stage.js';

export function commIn(_x: StageContext, _row: number): number {
  return Outcome.advance;
}
