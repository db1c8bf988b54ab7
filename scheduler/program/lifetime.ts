// Whether a runtime still takes calls of the program. Its parts share this record.
import { HeadraceError } from '../../devices/errors.js';

export class Lifetime {
  /** Set when the program closes the runtime. */
  isOver = false;

  /** @throws HeadraceError `ERR_RUNTIME_CLOSED` */
  check(): void {
    if (this.isOver) throw new HeadraceError('ERR_RUNTIME_CLOSED', 'the runtime is closed');
  }
}
