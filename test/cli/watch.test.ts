// `--watch`: its content, its rate, plain lines in a log, and a picture that stays in place on a terminal.
import { describe, expect, it } from 'vitest';
import { createWatch, watchLine, watchLines } from '../../cli/watch.js';
import type { RunStatus } from '../../index.js';

const MiB = 2 ** 20;
const use = { clean: 4 * MiB, dirty: 8 * MiB, highWater: 24 * MiB, busy: 0.75 };

function status(completed: number): RunStatus {
  return {
    inserted: 800,
    completed,
    inserting: false,
    seconds: 1.5,
    tasksPerSecond: 400.4,
    bytes: { h2d: MiB, d2h: 0, d2d: 0, ipc: 0, direct: 0, staged: 0, inline: 0 },
    bytesPerSecond: 3 * MiB,
    devices: [
      { ...use, name: 'host', kind: 'host', used: 0, pinned: 0, capacity: 64 * MiB },
      { ...use, name: 'gpu 0', kind: 'emulated', used: 12 * MiB, pinned: MiB, capacity: 24 * MiB },
    ],
    waiting: { memory: 3, predecessors: 120, queue: 2 },
  };
}

function watch(settings: { isTTY?: boolean; env?: Record<string, string> }) {
  const written: string[] = [];
  let time = 0;
  const watching = createWatch({
    stream: { isTTY: settings.isTTY, columns: 70, write: (text) => written.push(text) },
    env: settings.env ?? { TERM: 'xterm' },
    now: () => time,
  });
  return { watching, written, wait: (ms: number) => (time += ms) };
}

describe('the content of --watch', () => {
  it('progress, rates, memory per device and current waits, the most frequent first', () => {
    const lines = watchLines(status(400), 100);
    expect(lines[0]).toMatch(/^running {2}\[=+>? *\] {2}50 % {2}400\/800$/);
    expect(lines.slice(1)).toEqual([
      '1.50 s, 400 tasks/s, 3 MiB/s moved',
      'host   ....................  0 B of 64 MiB (0 B pinned, 8 MiB dirty), 0.8 busy',
      'gpu 0  ##########..........  12 MiB of 24 MiB (1 MiB pinned, 8 MiB dirty), 0.8 busy',
      'tasks: 120 for predecessors, 3 for memory, 2 queued or running',
    ]);
    for (const line of watchLines(status(400), 30)) expect(line.length).toBeLessThanOrEqual(30);
  });

  it('the same in one line, without empty devices', () => {
    expect(watchLine({ ...status(400), inserting: true })).toBe(
      '1.50 s: 400 of 800 tasks so far (50 %); 400 tasks/s, 3 MiB/s moved; gpu 0 12 MiB of 24 MiB; ' +
        'tasks: 120 for predecessors, 3 for memory, 2 queued or running',
    );
  });
});

describe('the place of its output', () => {
  it('a terminal: draws over its own lines, at most five times a second', () => {
    const { watching, written, wait } = watch({ isTTY: true });
    watching.show(status(1));
    watching.show(status(2));
    expect(written).toHaveLength(1);
    expect(written[0].split('\n')).toHaveLength(6);
    wait(200);
    watching.show(status(3));
    expect(written).toHaveLength(2);
    // Five lines up, each cleared before it is written.
    expect(written[1].startsWith('\u001b[5A\r\u001b[2K')).toBe(true);
    expect(written[1].split('\u001b[2K')).toHaveLength(6);
    watching.end();
    expect(written).toHaveLength(2);
  });

  it.each([
    ['a pipe', { isTTY: false }],
    ['a dumb terminal', { isTTY: true, env: { TERM: 'dumb' } }],
    ['CI', { isTTY: true, env: { TERM: 'xterm', CI: '1' } }],
  ])('%s: plain lines, one in two seconds, and the last one', (_, settings) => {
    const { watching, written, wait } = watch(settings);
    watching.show(status(1));
    wait(1999);
    watching.show(status(2));
    expect(written).toEqual([`${watchLine(status(1))}\n`]);
    wait(1);
    watching.show(status(3));
    watching.show(status(800));
    watching.end();
    expect(written.slice(1)).toEqual([`${watchLine(status(3))}\n`, `${watchLine(status(800))}\n`]);
    expect(written.join('')).not.toContain('\u001b');
  });
});
