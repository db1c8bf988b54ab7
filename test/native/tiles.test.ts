// Tile kernels in tasks: parameter order, column-major layout, codes. native/test/tiles.cpp tests their arithmetic
// against triple loops for many shapes.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { Status } from '../../native/contract.js';
import { Machine } from './machine.js';

const close = (actual: Float64Array, expected: number[]) => {
  expect(actual).toHaveLength(expected.length);
  expected.forEach((value, i) => {
    expect(actual[i]).toBeCloseTo(value, 12);
  });
};

describe('tile kernels', () => {
  test('gemm: m, n, k, transA, transB, alpha, beta, lda, ldb, ldc', () => {
    using machine = new Machine();
    machine.host(0, 6).set([1, 4, 2, 5, 3, 6]); // A = [1 2 3; 4 5 6], column by column
    machine.host(64, 6).set([1, 0, 1, 0, 1, 1]); // B = [1 0; 0 1; 1 1]
    machine.host(128, 4).fill(10);
    const flows = [0, 64, 128];
    expect(machine.finish(machine.exec(0, 'gemm_f64', flows, [2, 2, 3, 0, 0, 2, 1, 2, 3, 2]))).toBe(
      0,
    );
    close(machine.host(128, 4), [18, 30, 20, 32]);
    // A^T (3 x 2) times A (2 x 3)
    expect(
      machine.finish(machine.exec(0, 'gemm_f64', [0, 0, 256], [3, 3, 2, 1, 0, 1, 0, 2, 2, 3])),
    ).toBe(0);
    close(machine.host(256, 9), [17, 22, 27, 22, 29, 36, 27, 36, 45]);
  });

  test('potrf, trsm and syrk factor a matrix of two tiles by two', () => {
    using machine = new Machine({ gpus: 1 });
    // A = L L^T with L = [2 0 0 0; 1 3 0 0; 4 5 6 0; 7 8 9 10]; tiles 2 x 2 at 0 (1,1), 32 (2,1), 64 (2,2).
    machine.host(0, 12).set([4, 2, 2, 10, 8, 14, 19, 31, 77, 122, 122, 294]);
    const gpu = machine.queue('compute', 1);
    const there = machine.copy(machine.queue('h2d', 1), 1, 0, 0, 0, 96);
    machine.exec(gpu, 'potrf_f64', [0], [2, 0, 2], there);
    machine.exec(gpu, 'trsm_f64', [0, 32], [2, 2, 1, 0, 1, 0, 1, 2, 2]);
    machine.exec(gpu, 'syrk_f64', [32, 64], [2, 2, 0, 0, -1, 1, 2, 2]);
    const last = machine.exec(gpu, 'potrf_f64', [64], [2, 0, 2]);
    machine.finish(machine.copy(machine.queue('d2h', 1), 0, 0, 1, 0, 96, last));
    const tiles = machine.host(0, 12);
    close(tiles.subarray(0, 2), [2, 1]);
    expect(tiles[3]).toBeCloseTo(3, 12);
    close(tiles.subarray(4, 8), [4, 7, 5, 8]);
    close(tiles.subarray(8, 10), [6, 9]);
    expect(tiles[11]).toBeCloseTo(10, 12);
  });

  test('potrf names the pivot that fails', () => {
    using machine = new Machine();
    machine.host(0, 9).set([1, 0, 0, 0, 1, 0, 0, 0, -1]);
    expect(machine.finish(machine.exec(0, 'potrf_f64', [0], [3, 0, 3]))).toBe(3);
  });

  test('arguments that make no sense touch nothing', () => {
    using machine = new Machine();
    machine.host(0, 9).fill(1);
    const bad = (name: string, flows: number[], params: number[]) =>
      machine.finish(machine.exec(0, name, flows, params));
    expect(bad('gemm_f64', [0, 0], [1, 1, 1, 0, 0, 1, 0, 1, 1, 1])).toBe(Status.badArguments);
    expect(bad('gemm_f64', [0, 0, 0], [1, 1, 1, 0, 2, 1, 0, 1, 1, 1])).toBe(Status.badArguments);
    expect(bad('gemm_f64', [0, 0, 0], [2, 1, 1, 0, 0, 1, 0, 1, 1, 2])).toBe(Status.badArguments);
    expect(bad('potrf_f64', [0], [-1, 0, 1])).toBe(Status.badArguments);
    expect(bad('potrf_f64', [2 ** 20 - 64], [3, 0, 3])).toBe(Status.outOfRange);
    expect([...machine.host(0, 9)]).toEqual(Array(9).fill(1));
  });
});

test('HEADRACE_BLAS=plain does without a library', () => {
  const script = fileURLToPath(new URL('../../native/test/direct.mjs', import.meta.url));
  const code = `import(${JSON.stringify(script)}).then(({ addon }) =>
    console.log(JSON.stringify(addon.probe().blas)))`;
  const env = { ...process.env, HEADRACE_BLAS: 'plain' };
  const output = execFileSync(process.execPath, ['-e', code], { env, encoding: 'utf8' });
  expect(JSON.parse(output)).toEqual({ found: false, library: '', reason: 'HEADRACE_BLAS=plain' });
});
