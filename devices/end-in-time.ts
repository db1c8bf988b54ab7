// The end of a rank's process after SIGTERM or SIGINT: within a second, whatever the program is doing.
//
// A launcher that sees a rank die ends the others with SIGTERM, and with SIGKILL a second later. In between the program
// can still be told whose fault it was. A program that inserts in a plain loop keeps Node's handlers from being called;
// so the message layer's own thread ends the process when the time is over (native/mpi/deadline.h).
//
// SIGINT is different where the program listens to it: such a program ends when it likes, if its listener is called in
// time.
import { constants } from 'node:os';

/** Between SIGTERM and the end of this process. */
const GRACE_MS = 700;
/** The same where the event loop does not turn. */
const LAST_MS = 850;

/** A process that was ended by a signal, as shells count it. */
const EXIT_BASE = 128;

/** The message layer's part (native/mpi-contract.ts). */
interface NativeDeadline {
  watchSignal(signal: number, milliseconds: number): void;
  heardSignal(signal: number): void;
  leaveSignal(signal: number): void;
}

export class EndInTime {
  private readonly deadline: NativeDeadline;
  private readonly onTerminate = (): void => {
    setTimeout(() => process.exit(EXIT_BASE + constants.signals.SIGTERM), GRACE_MS).unref();
  };
  private readonly onInterrupt = (): void => {
    if (process.listenerCount('SIGINT') === 1) process.exit(EXIT_BASE + constants.signals.SIGINT);
    this.deadline.heardSignal(constants.signals.SIGINT);
  };

  constructor(deadline: NativeDeadline) {
    this.deadline = deadline;
    process.on('SIGTERM', this.onTerminate);
    process.on('SIGINT', this.onInterrupt);
    for (const signal of [constants.signals.SIGTERM, constants.signals.SIGINT])
      deadline.watchSignal(signal, LAST_MS);
  }

  /** Signals are the program's own business again. */
  leave(): void {
    for (const signal of [constants.signals.SIGTERM, constants.signals.SIGINT])
      this.deadline.leaveSignal(signal);
    process.off('SIGTERM', this.onTerminate);
    process.off('SIGINT', this.onInterrupt);
  }
}
