import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type CudaKernel, cudaKernelSource } from '../../scheduler/program/cuda-kernel.js';
import { read, readWrite } from '../../scheduler/program/task-class.js';

const owner = {
  name: 'scale',
  flows: { from: read('f64'), to: readWrite('f64') },
  params: { n: 'i32', factor: 'f64', loud: 'bool' },
} as const;

const kernel: CudaKernel = {
  source: '__global__ void scale(double*, const double*, float, long long, int) {}',
  function: 'scale',
  arguments: [
    'to',
    'from',
    { parameter: 'factor', as: 'f32' },
    { parameter: 'n', as: 'i64' },
    'loud',
  ],
  grid: { parameter: 'n', per: 256 },
  block: 256,
};

type Change = { readonly [K in keyof CudaKernel]?: CudaKernel[K] | undefined };

const messageOf = (change: Change): string => {
  try {
    cudaKernelSource(owner, { ...kernel, ...change } as CudaKernel);
  } catch (error) {
    expect((error as { code: string }).code).toBe('ERR_TASK_CLASS');
    return (error as Error).message;
  }
  return 'accepted';
};

describe('declaration of a CUDA kernel', () => {
  it('turns names into positions and types', () => {
    expect(cudaKernelSource(owner, kernel)).toEqual({
      name: 'scale.cu',
      source: kernel.source,
      options: [],
      kernels: [
        {
          name: expect.stringMatching(/^scale \(cuda [0-9a-f]{8}\)$/),
          symbol: 'scale',
          signature: [
            { type: 'pointer', index: 1 },
            { type: 'pointer', index: 0 },
            { type: 'f32', index: 1 },
            { type: 'i64', index: 0 },
            { type: 'i32', index: 2 },
          ],
          grid: [{ param: 0, divisor: 256 }],
          block: [256],
          sharedBytes: 0,
        },
      ],
    });
  });

  it('names the part that does not fit the class', () => {
    expect(messageOf({ arguments: ['to', 'from', 'm'] })).toContain("no parameter 'm'");
    expect(messageOf({ arguments: ['to', 'n'] })).toContain("leave out flow 'from'");
    expect(messageOf({ grid: { parameter: 'rows' } })).toContain("no parameter 'rows'");
    expect(messageOf({ grid: { parameter: 'n', per: 0 } })).toContain('divides by 0');
    expect(messageOf({ grid: [1, 1, 1, 1] })).toContain('4 dimensions');
    expect(messageOf({ block: 0 })).toContain('block[0] is 0');
    expect(messageOf({ function: '' })).toContain('names no function');
    expect(messageOf({ source: undefined })).toContain('no code');
    expect(messageOf({ file: 'also.cu' })).toContain('no code, or two');
  });

  it('takes source and device code from files', () => {
    const folder = mkdtempSync(join(tmpdir(), 'headrace-kernel-'));
    try {
      const code = { ...kernel, source: undefined } as unknown as CudaKernel;
      writeFileSync(join(folder, 'a.cu'), 'text');
      writeFileSync(join(folder, 'b.ptx'), 'image');
      const source = cudaKernelSource(owner, { ...code, file: join(folder, 'a.cu') });
      expect(source).toMatchObject({ name: 'a.cu', source: 'text' });
      const image = cudaKernelSource(owner, { ...code, file: join(folder, 'b.ptx') });
      expect(Buffer.from(image.image ?? []).toString()).toBe('image');
      expect(messageOf({ source: undefined, file: join(folder, 'c.cu') })).toContain(
        'cannot be read',
      );
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('has a name of its own for every code, because the same class name may mean another kernel', () => {
    const name = (change: Change): string =>
      (
        cudaKernelSource(owner, { ...kernel, ...change } as CudaKernel).kernels[0] as {
          name: string;
        }
      ).name;
    expect(name({})).toBe(name({}));
    const others = [
      name({}),
      name({ source: `${kernel.source} ` }),
      name({ block: 128 }),
      name({ options: ['-G'] }),
    ];
    expect(new Set(others).size).toBe(4);
  });
});
