// The loader reports the places that it searched and the reasons of the failure; errors are typed.
import { afterEach, expect, test, vi } from 'vitest';
import { loadNative, NativeError } from '../../native/index.js';

afterEach(() => {
  vi.unstubAllEnvs();
  vi.resetModules();
});

const open = {
  driver: 'emulated',
  gpus: 0,
  gpuBytes: 0,
  hostBytes: 4096,
  workers: 1,
  computeStreams: 1,
  ringRecords: 64,
  checked: false,
};

test('every place that was tried is reported with its reason', async () => {
  vi.stubEnv('HEADRACE_NATIVE', '/nowhere/headrace.node');
  vi.resetModules();
  const fresh = await import('../../native/index.js');
  const error = await Promise.resolve()
    .then(() => fresh.loadNative())
    .catch((caught: unknown) => caught);
  expect(error).toMatchObject({
    name: 'NativeError',
    code: 'NATIVE_UNAVAILABLE',
    attempts: [{ path: '/nowhere/headrace.node', reason: 'no such file' }],
  });
});

test('a file that is no addon is reported with the message of the loader', async () => {
  vi.stubEnv(
    'HEADRACE_NATIVE',
    new URL(import.meta.url).pathname.replace('loader.test.ts', 'programs'),
  );
  vi.resetModules();
  const fresh = await import('../../native/index.js');
  expect(() => fresh.loadNative()).toThrow(/cannot be loaded.*HEADRACE_NATIVE names.*programs: \S/);
});

test('the addon is loaded once', () => {
  expect(loadNative()).toBe(loadNative());
});

test('probe names the drivers and the BLAS library, or why there is none', () => {
  const { blas, drivers } = loadNative().probe();
  expect(blas.found ? blas.library : blas.reason).not.toBe('');
  expect(drivers.find((driver) => driver.name === 'emulated')).toMatchObject({ found: true });
});

test('built-in kernels are listed', () => {
  expect(loadNative().kernels()).toEqual(
    expect.arrayContaining(['empty', 'gemm_f64', 'potrf_f32', 'taskbench']),
  );
});

test.each([
  [{ ringRecords: 100 }, 'INVALID_OPTION', /power of two/],
  [{ workers: -1 }, 'INVALID_OPTION', /negative/],
  [{ driver: 'abacus', gpus: 1 }, 'INVALID_OPTION', /abacus/],
  [{ gpus: 1, computeStreams: 0 }, 'INVALID_OPTION', /compute stream/],
  [{ hostBytes: Number.NaN }, 'INVALID_OPTION', /hostBytes/],
  [{ hostBytes: 2 ** 52 }, 'OUT_OF_MEMORY', /address space/],
  [{ gpus: 1, gpuBytes: 2 ** 52 }, 'OUT_OF_MEMORY', /GPU 0/],
  [{ gpus: 65 }, 'INVALID_OPTION', /32/],
] as const)('open %o fails with %s', (change, code, text) => {
  const attempt = () => loadNative().open({ ...open, ...change });
  expect(attempt).toThrow(NativeError);
  expect(attempt).toThrow(expect.objectContaining({ code, message: expect.stringMatching(text) }));
});
