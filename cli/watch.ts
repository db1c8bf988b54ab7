// `--watch`: the state of a run, while it runs. On a terminal a few lines that are redrawn; elsewhere (a
// log, a pipe) one line every two seconds. On stderr, so that results stay apart.
import type { RunStatus } from '../scheduler/reports/status.js';
import { formatBytes, formatSeconds } from './format.js';
import { type ProgressStream, progressLine } from './progress.js';

/** Shows statuses as they arrive. */
interface Watch {
  /** Cheap enough for every event: draws only as often as it is useful. */
  show(status: RunStatus): void;
  /** Shows the last status that was not drawn, and leaves the lines on the screen. */
  end(): void;
}

/** Settings; tests bring their own clock. */
interface WatchOptions {
  readonly stream: ProgressStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Milliseconds. */
  readonly now?: () => number;
}

const terminalMs = 200;
const logMs = 2000;
const meterWidth = 20;

const words: Readonly<Record<string, string>> = {
  predecessors: 'for predecessors',
  turn: 'for their turn',
  queue: 'queued or running',
  body: 'in JavaScript',
  memory: 'for memory',
  copy: 'for copies',
  receive: 'for other ranks',
  slot: 'for room in a queue',
  send: 'for sends',
  credit: 'for credits',
};

function waits(status: RunStatus): string {
  const parts = Object.entries(status.waiting)
    .sort(([, a], [, b]) => b - a)
    .map(([key, count]) => `${count} ${words[key] ?? key}`);
  return parts.length === 0 ? 'no tasks in the window' : `tasks: ${parts.join(', ')}`;
}

const rates = (status: RunStatus): string =>
  `${Math.round(status.tasksPerSecond)} tasks/s, ${formatBytes(Math.round(status.bytesPerSecond))}/s moved`;

/** The status as lines of at most `width` characters. */
export function watchLines(status: RunStatus, width: number): string[] {
  const names = Math.max(...status.devices.map(({ name }) => name.length));
  const devices = status.devices.map((device) => {
    const full = Math.round((device.used / Math.max(1, device.capacity)) * meterWidth);
    const meter = '#'.repeat(full).padEnd(meterWidth, '.');
    return (
      `${device.name.padEnd(names)}  ${meter}  ${formatBytes(device.used)} of ${formatBytes(device.capacity)}` +
      ` (${formatBytes(device.pinned)} pinned, ${formatBytes(device.dirty)} dirty), ${device.busy.toFixed(1)} busy`
    );
  });
  return [
    progressLine(
      status.inserting ? 'inserting' : 'running',
      status.completed,
      status.inserted,
      width,
    ),
    `${formatSeconds(status.seconds)}, ${rates(status)}`,
    ...devices,
    waits(status),
  ].map((line) => line.slice(0, Math.max(0, width)));
}

/** The status in one line, for logs. */
export function watchLine(status: RunStatus): string {
  const percent = status.inserted > 0 ? (100 * status.completed) / status.inserted : 0;
  const devices = status.devices
    .filter(({ used }) => used > 0)
    .map(({ name, used, capacity }) => `${name} ${formatBytes(used)} of ${formatBytes(capacity)}`);
  const more = status.inserting ? ' so far' : '';
  return [
    `${formatSeconds(status.seconds)}: ${status.completed} of ${status.inserted} tasks${more} (${percent.toFixed(0)} %)`,
    rates(status),
    ...devices,
    waits(status),
  ].join('; ');
}

/** A watch on the stream. */
export function createWatch(options: WatchOptions): Watch {
  const { stream, env, now = () => performance.now() } = options;
  const redraws = stream.isTTY === true && env['TERM'] !== 'dumb' && (env['CI'] ?? '') === '';
  let last = Number.NEGATIVE_INFINITY;
  let drawn = 0;
  let pending: RunStatus | undefined;
  const draw = (status: RunStatus): void => {
    pending = undefined;
    last = now();
    if (!redraws) {
      stream.write(`${watchLine(status)}\n`);
      return;
    }
    const lines = watchLines(status, (stream.columns ?? 80) - 1);
    const up = drawn === 0 ? '' : `\u001b[${drawn}A`;
    stream.write(up + lines.map((line) => `\r\u001b[2K${line}\n`).join(''));
    drawn = lines.length;
  };
  return {
    show(status) {
      if (now() - last >= (redraws ? terminalMs : logMs)) draw(status);
      else pending = status;
    },
    end() {
      if (pending !== undefined) draw(pending);
    },
  };
}
