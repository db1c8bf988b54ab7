// The end of a rank's process after SIGTERM or SIGINT: within a second, whatever the program does.
//
// A launcher that sees a rank die ends the others with SIGTERM, and with SIGKILL a second later. In between the program
// can still learn the rank that failed. A program that inserts in a plain loop keeps Node from calling its handlers.
// So the message layer's own thread ends the process when the time is over (native/mpi/deadline.h).
//
// SIGINT is different if the program listens to it: such a program chooses its own end, if its listener is called in
// time.
import { constants } from 'node:os';

/** Between SIGTERM and the end of this process. */
const GRACE_MS = 700;
/** The same if the event loop does not turn. */
const LAST_MS = 850;

/** Exit code of a process that a signal ended, as shells count it. */
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

  /** From here on the program handles signals itself. */
  leave(): void {
    for (const signal of [constants.signals.SIGTERM, constants.signals.SIGINT])
      this.deadline.leaveSignal(signal);
    process.off('SIGTERM', this.onTerminate);
    process.off('SIGINT', this.onInterrupt);
  }
}
