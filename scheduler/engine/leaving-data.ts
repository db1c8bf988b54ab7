// Gives back the rows of data: at once if their copies are unused, otherwise when the last transfer or task is over.

import { Fifo } from '../../devices/fifo.js';
import { type DatumId, HOST } from '../../devices/handles.js';
import type { EngineState } from './state.js';

export class LeavingData {
  private readonly state: EngineState;
  private readonly waiting: Fifo<DatumId> = new Fifo<DatumId>();

  constructor(state: EngineState) {
    this.state = state;
  }

  /** Frees all copies of a datum that no live task uses, as soon as no transfer uses them. */
  forget(d: DatumId): void {
    const { directory: dir, spaces } = this.state;
    for (let s = HOST; s < dir.spaces; s++) {
      if (dir.pins[d * dir.spaces + s] > 0) {
        this.waiting.push(d);
        return;
      }
    }
    for (let s = HOST; s < dir.spaces; s++) spaces[s].giveUp(d);
    this.remove(d);
  }

  /** Whether a datum waits for its last transfer or task. */
  get isAny(): boolean {
    return this.waiting.length > 0;
  }

  /** Gives back the row of a datum without copies. */
  remove(d: DatumId): void {
    this.state.observer?.datumRemoved(d);
    this.state.directory.remove(d);
  }

  /** Checks the waiting data again. */
  look(): void {
    for (let n = this.waiting.length; n > 0; n--) this.forget(this.waiting.shift());
  }
}
