// The progress bar: the outputs on which it appears, its rate, and its complete removal.
import { describe, expect, it } from 'vitest';
import { createProgress, progressLine } from '../../cli/progress.js';

function bar(settings: { isTTY?: boolean; enabled?: boolean; env?: Record<string, string> } = {}) {
  const written: string[] = [];
  let time = 0;
  const progress = createProgress({
    stream: { isTTY: settings.isTTY ?? true, columns: 60, write: (text) => written.push(text) },
    enabled: settings.enabled ?? true,
    env: settings.env ?? { TERM: 'xterm' },
    now: () => time,
  });
  return { progress, written, wait: (ms: number) => (time += ms) };
}

describe('progress', () => {
  it.each([
    ['not a terminal', { isTTY: false }],
    ['turned off', { enabled: false }],
    ['a dumb terminal', { env: { TERM: 'dumb' } }],
    ['CI', { env: { TERM: 'xterm', CI: '1' } }],
  ])('writes nothing on %s', (_, settings) => {
    const { progress, written } = bar(settings);
    progress.update('factorise', 1, 2);
    progress.clear();
    expect(written).toEqual([]);
  });

  it('draws at most ten times a second', () => {
    const { progress, written, wait } = bar();
    for (let step = 0; step < 1000; step++) {
      progress.update('factorise', step, 1000);
      wait(1);
    }
    expect(written).toHaveLength(10);
  });

  it('clears its line once, and only when it drew', () => {
    const { progress, written } = bar();
    progress.clear();
    expect(written).toEqual([]);
    progress.update('check', 1, 2);
    progress.clear();
    progress.clear();
    expect(written.slice(1)).toEqual(['\r\u001b[2K']);
  });

  it('uses no colours with NO_COLOR', () => {
    const plain = bar({ env: { NO_COLOR: '1' } });
    plain.progress.update('check', 1, 2);
    expect(plain.written[0]).not.toContain('\u001b[3');
    const coloured = bar();
    coloured.progress.update('check', 1, 2);
    expect(coloured.written[0]).toContain('\u001b[36m');
  });

  it('fits every width and shows the share done', () => {
    expect(progressLine('factorise', 400, 800, 60)).toMatch(
      /^factorise {2}\[=+> +\] {2}50 % {2}400\/800$/,
    );
    expect(progressLine('factorise', 800, 800, 60)).toMatch(/\[=+\] 100 % {2}800\/800$/);
    expect(progressLine('factorise', 0, 0, 60)).toContain('0 %');
    for (let width = 0; width < 100; width++) {
      expect(progressLine('factorise', 3, 7, width).length).toBeLessThanOrEqual(width);
    }
  });
});
