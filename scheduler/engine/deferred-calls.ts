// Calls that insert tasks and can wait: closes of data, in a pass or in a full window. Their memory stays a while longer.
// Invariant: while a call waits, the engine is not quiet. It is made when a row is free, outside passes and bodies: from the event loop,
// or in an insertion that waits for room.
import type { EngineState } from './state.js';

export class DeferredCalls {
  private readonly state: EngineState;
  /** Limit for live tasks. */
  private readonly limit: number;
  private readonly calls: (() => void)[] = [];

  constructor(state: EngineState, limit: number) {
    this.state = state;
    this.limit = limit;
  }

  /** Calls that wait for a row. */
  get waiting(): number {
    return this.calls.length;
  }

  /** The call comes again when there is a row. It defers itself again if others have taken all of them. */
  defer(call: () => void): void {
    this.calls.push(call);
    this.state.wake();
  }

  /** Makes those for which there is room. Returns whether it made any. */
  make(): boolean {
    const { calls, state } = this;
    const count = calls.length;
    let n = 0;
    try {
      for (; n < count && state.tasks.live < this.limit; n++) calls.shift()?.();
    } catch (error) {
      // It must not keep the others.
      state.wake();
      throw error;
    }
    return n > 0;
  }
}
