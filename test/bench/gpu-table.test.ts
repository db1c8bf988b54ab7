// The comparison table of the GPU benchmarks, from entries made by hand.
import { describe, expect, test } from 'vitest';
import { compare, parseEntries, tableText } from '../../bench/gpu-table.js';
import type { BenchEntry } from '../../bench/harness.js';

const entry = (name: string, value: number, params: BenchEntry['params']): BenchEntry => ({
  name,
  value,
  unit: 'TF/s',
  params,
});

describe('the table of GPU figures', () => {
  const inCore = entry('gpu/cholesky', 50, { gpus: 1, n: 64, tile: 8, memory: '120GiB' });
  const outOfCore = entry('gpu/gemm', 30, { gpus: 1, n: 64, tile: 8, memory: '4096MiB' });
  const cusolver = entry('peer/cusolver/cholesky', 40, { gpus: 1, n: 64, tile: 64 });
  const onTwo = entry('peer/cusolvermg/cholesky', 70, { gpus: 2, n: 64, tile: 64 });
  const fromHost = entry('peer/cublasxt/gemm-host', 10, { gpus: 1, n: 64, tile: 8 });

  test('pairs a figure with the peer of its size, number of GPUs and place of the data', () => {
    const rows = compare([inCore, cusolver, onTwo, outOfCore, fromHost]);
    expect(rows).toEqual([
      { entry: inCore, peer: cusolver },
      { entry: outOfCore, peer: fromHost },
    ]);
    const text = tableText(rows);
    expect(text).toContain('ratio 1.250');
    expect(text).toContain('ratio 3.000');
  });

  test('pairs a plan with the tiles by hand of its way and tile', () => {
    const params = { gpus: 1, n: 64, tile: 8 };
    const played = entry('gpu/cholesky/graph', 30, { ...params, memory: '60GiB' });
    const other = entry('peer/tiles-graph/cholesky', 9, { ...params, tile: 16 });
    const streams = entry('peer/tiles-streams/cholesky', 8, params);
    const peer = entry('peer/tiles-graph/cholesky', 31, params);
    expect(compare([played, other, streams, peer])).toEqual([{ entry: played, peer }]);
  });

  test('a figure without its peer is marked', () => {
    const text = tableText(compare([inCore, onTwo]));
    expect(text).toContain('no peer in this run');
    expect(text).not.toContain('ratio');
  });

  test('a command that failed is named', () => {
    const text = `${JSON.stringify([inCore])}\nnoise\nfailed: gpu_solvers cholesky 64\n`;
    expect(parseEntries(text)).toEqual({
      entries: [inCore],
      failed: ['gpu_solvers cholesky 64'],
    });
  });
});
