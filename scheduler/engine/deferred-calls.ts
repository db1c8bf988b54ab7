// Calls that found the window full and can wait: closes of data whose memory then stays a while longer.
// Invariant: while a call waits, the engine is not quiet; the call is made again when a row has become free, from the event loop,
// outside passes and bodies.
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
    let made = false;
    for (let n = this.calls.length; n > 0 && this.state.tasks.live < this.limit; n--) {
      this.calls.shift()?.();
      made = true;
    }
    return made;
  }
}
