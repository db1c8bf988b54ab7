// A progress bar on one terminal line. It draws on stderr, only on a terminal, at most ten times a second, and
// leaves nothing behind.

/** The part of a terminal stream that the bar needs. */
export interface ProgressStream {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  write(text: string): unknown;
}

/** Shows progress. */
export interface Progress {
  /** `done` of `total` steps of the named phase. Cheap enough to call for every step. */
  update(phase: string, done: number, total: number): void;
  /** Clears the line. Call it before writing anything else. */
  clear(): void;
}

/** Settings; tests bring their own clock. */
interface ProgressOptions {
  readonly stream: ProgressStream;
  /** False turns it off for every stream. */
  readonly enabled: boolean;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Milliseconds. */
  readonly now?: () => number;
}

const intervalMs = 100;
const clearLine = '\r\u001b[2K';

/** The text of one line, at most `width` characters: `factorise  [=====>    ]  50 %  400/800`. */
export function progressLine(phase: string, done: number, total: number, width: number): string {
  const part = total > 0 ? Math.min(1, done / total) : 0;
  const tail = ` ${String(Math.floor(part * 100)).padStart(3)} %  ${done}/${total}`;
  const room = Math.min(40, width - phase.length - tail.length - 4);
  if (room < 5) return `${phase}${tail}`.slice(0, Math.max(0, width));
  const filled = Math.round(part * room);
  const head = filled < room ? '>' : '';
  const bar = '='.repeat(Math.max(0, filled - head.length)) + (filled > 0 ? head : '');
  return `${phase}  [${bar.padEnd(room)}]${tail}`;
}

/** A bar on the stream, or one that does nothing if the stream is not a terminal. */
export function createProgress(options: ProgressOptions): Progress {
  const { stream, enabled, env = process.env, now = () => performance.now() } = options;
  if (!enabled || stream.isTTY !== true || env['TERM'] === 'dumb' || (env['CI'] ?? '') !== '') {
    return { update: () => {}, clear: () => {} };
  }
  const colour = (env['NO_COLOR'] ?? '') === '';
  let last = Number.NEGATIVE_INFINITY;
  let isDrawn = false;
  return {
    update(phase, done, total) {
      const time = now();
      if (time - last < intervalMs) return;
      last = time;
      isDrawn = true;
      const line = progressLine(phase, done, total, (stream.columns || 80) - 1);
      stream.write(clearLine + (colour ? `\u001b[36m${line}\u001b[39m` : line));
    },
    clear() {
      if (isDrawn) stream.write(clearLine);
      isDrawn = false;
    },
  };
}
