// Task classes with CUDA kernels of their own, end to end: source, device code from a file, user libraries. Every
// failure is an error that names the class. On the stub driver, or on real GPUs (test/support/cuda.ts).
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CudaKernel, Runtime, read, readWrite, task, write } from '../../index.js';
import { cudaGpus } from '../support/cuda.js';
import { nothingLeft, soon } from '../support/machines.js';
import { cuda, needing } from '../support/needs.js';

const folder = mkdtempSync(path.join(tmpdir(), 'headrace-cuda-classes-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
process.env['HEADRACE_CACHE'] = path.join(folder, 'cache');

const SCALE = `extern "C" __global__ void scale(double* to, float factor, int count, long long offset) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = to[i] * factor + offset;
}
`;

const flows = { to: readWrite('f64') } as const;
const params = { count: 'i32', factor: 'f64', offset: 'i32' } as const;
type Kernel = CudaKernel<typeof flows, typeof params>;
const kernel: Kernel = {
  source: SCALE,
  function: 'scale',
  arguments: [
    'to',
    { parameter: 'factor', as: 'f32' },
    'count',
    { parameter: 'offset', as: 'i64' },
  ],
  grid: { parameter: 'count', per: 64 },
  block: 64,
};
const scaleWith = (cuda: Kernel) => task({ name: 'scale', flows, params, cuda });

async function open(gpus = 1): Promise<Runtime> {
  return await Runtime.create({
    driver: 'cuda',
    gpus,
    gpuMemory: '4MiB',
    hostMemory: '16MiB',
    workers: 1,
    checked: true,
  });
}

describe('task classes with CUDA kernels', needing(cuda), () => {
  let runtime: Runtime;
  beforeAll(async () => {
    runtime = await open(Math.min(2, cudaGpus));
    return () => runtime.close();
  });

  it('take parameters by value only: one that is a datum is refused before anything is inserted', async () => {
    const scale = scaleWith(kernel);
    const to = runtime.data(new Float64Array(4).fill(2));
    const factor = runtime.data(Float64Array.of(3), { name: 'factor' });
    await runtime.run((graph) => {
      const steered = { to, count: 4, factor, offset: 0 };
      expect(() => graph.insert(scale, steered)).toThrow(
        expect.objectContaining({
          code: 'ERR_ARGUMENT_TYPE',
          message: expect.stringContaining("parameter 'factor' cannot be a datum on "),
        }),
      );
      graph.insert(scale, { ...steered, factor: 4 });
    });
    expect([...(await to.read())]).toEqual([8, 8, 8, 8]);
    to.close();
    factor.close();
  });

  it('run from source on every GPU, ordered with everything else; zero elements launch nothing', async () => {
    const scale = scaleWith(kernel);
    runtime.prepare(scale);
    const tile = runtime.data(
      Float64Array.from({ length: 1000 }, (_, i) => i),
      { name: 'tile' },
    );
    const report = await soon(
      runtime,
      runtime.run((graph) => {
        for (let round = 0; round < 10; round++) {
          const device = round % runtime.gpus.length;
          graph.insert(scale, { to: tile, count: 1000, factor: 0.5, offset: 3 }, { device });
          graph.insert(scale, { to: tile, count: 0, factor: 7, offset: 7 }, { device });
        }
      }),
    );
    expect(report.tasks).toBe(20);
    const expected = Float64Array.from({ length: 1000 }, (_, i) => {
      let value = i;
      for (let round = 0; round < 10; round++) value = value * 0.5 + 3;
      return value;
    });
    expect(await tile.read()).toEqual(expected);
    await nothingLeft(runtime, [tile]);
  });

  it('two classes of one name with different code stay apart', async () => {
    const whole = scaleWith(kernel);
    const half = scaleWith({ ...kernel, grid: 1, block: 32 });
    const tile = runtime.data(new Float64Array(64).fill(1));
    await soon(
      runtime,
      runtime.run((graph) => {
        graph.insert(half, { to: tile, count: 64, factor: 2, offset: 0 });
        graph.insert(whole, { to: tile, count: 64, factor: 10, offset: 0 });
        graph.insert(half, { to: tile, count: 64, factor: 2, offset: 0 });
      }),
    );
    // The stub's model of the kernel knows no blocks.
    const [first, last] = [(await tile.read())[0], (await tile.read())[63]];
    expect([first, last]).toEqual(process.env['HEADRACE_CUDA_LIBRARY'] ? [40, 40] : [40, 10]);
    await nothingLeft(runtime, [tile]);
  });

  it('compiled code is kept on disk by content: two launches of one source are one file', () => {
    const kept = readdirSync(path.join(folder, 'cache')).filter((f) => f.endsWith('.kernels'));
    expect(kept).toHaveLength(1);
  });

  it("a source that does not compile is ERR_KERNEL_SOURCE with the compiler's log and the user's lines", () => {
    const broken = scaleWith({ ...kernel, source: '\n\n#error made to fail\n' });
    expect(() => runtime.prepare(broken)).toThrow(
      expect.objectContaining({
        code: 'ERR_KERNEL_SOURCE',
        message: expect.stringMatching(/scale\.cu\(3\): .*error/),
      }),
    );
  });

  it('a declaration that differs from the kernel is ERR_KERNEL_SOURCE naming the parameter', () => {
    const wrong = scaleWith({
      ...kernel,
      arguments: ['to', 'factor', 'count', { parameter: 'offset', as: 'i64' }],
    });
    expect(() => runtime.prepare(wrong)).toThrow(
      expect.objectContaining({
        code: 'ERR_KERNEL_SOURCE',
        message: expect.stringMatching(/parameter 2 has 4 bytes, its declared type has 8/),
      }),
    );
    const short = scaleWith({ ...kernel, arguments: ['to', { parameter: 'factor', as: 'f32' }] });
    expect(() => runtime.prepare(short)).toThrow(/has more parameters than the 2/);
  });

  it('PTX from a file is used as it is', async () => {
    const file = path.join(folder, 'nothing.ptx');
    writeFileSync(
      file,
      '.version 6.3\n.target sm_75\n.address_size 64\n.visible .entry nothing(\n)\n{\n ret;\n}\n',
    );
    const nothing = task({
      name: 'nothing',
      flows: {},
      cuda: { file, function: 'nothing', arguments: [], grid: 1, block: 1 },
    });
    const report = await soon(
      runtime,
      runtime.run((graph) => void graph.insert(nothing, {})),
    );
    expect(report.tasks).toBe(1);
  });

  it('a shared object with a kernel that enqueues its own work is loaded and ordered', async () => {
    const source = path.join(folder, 'own.c');
    const library = path.join(folder, 'own.so');
    writeFileSync(
      source,
      `#include <dlfcn.h>
#include <stdlib.h>
#include "headrace/kernel.h"
static int (*set)(uint64_t, unsigned char, size_t, void*);
static int32_t bytes(const headrace_task* task) {
  if (task->flow_count != 1 || task->param_count != 1) return HEADRACE_BAD_ARGUMENTS;
  return set((uint64_t)task->flows[0], (unsigned char)task->params[0], (size_t)task->lengths[0] * 8,
             task->stream) == 0 ? 0 : HEADRACE_DRIVER_ERROR;
}
int32_t headrace_register(headrace_registry* registry) {
  const char* name = getenv("HEADRACE_CUDA_LIBRARY");
  void* driver = dlopen(name ? name : "libcuda.so.1", RTLD_NOW);
  if (driver) *(void**)&set = dlsym(driver, "cuMemsetD8Async");
  if (!set) return 1;
  return registry->add(registry, "own_bytes", HEADRACE_KERNEL_CUDA, bytes);
}
`,
    );
    execFileSync('cc', [
      ...['-shared', '-fPIC', '-Wall', '-Werror', '-I', 'native/include'],
      ...[source, '-o', library, '-ldl'],
    ]);
    expect(runtime.loadKernels(library)).toEqual(['own_bytes']);
    const own = task({
      name: 'own',
      flows: { to: write('f64') },
      params: { value: 'i32' },
      gpuKernel: 'own_bytes',
    });
    const copy = task({
      name: 'copy',
      flows: { to: write('f64'), from: read('f64') },
      params: { bytes: 'i32' },
      kernel: 'copy_bytes',
    });
    const [a, b] = [runtime.data('f64', 64), runtime.data('f64', 64)];
    await soon(
      runtime,
      runtime.run((graph) => {
        graph.insert(own, { to: a, value: 0x40 });
        graph.insert(copy, { to: b, from: a, bytes: 512 });
        graph.insert(own, { to: a, value: 0 });
      }),
    );
    expect(new Uint8Array((await b.read()).buffer)).toEqual(new Uint8Array(512).fill(0x40));
    expect(await a.read()).toEqual(new Float64Array(64));
    const plan = await runtime.plan(
      (graph) => void graph.insert(own, { to: a, value: 0x41 }, { device: 0 }),
      { graph: 'always' },
    );
    await plan.run({ times: 2 });
    expect(plan.report.graph).toBe('captured');
    expect(new Uint8Array((await a.read()).buffer)).toEqual(new Uint8Array(512).fill(0x41));
    plan.close();
    await nothingLeft(runtime, [a, b]);
  });
});

describe('a class with a CUDA kernel without a CUDA GPU', () => {
  it('runs its other body, and without one names the missing part', async () => {
    const both = task({
      name: 'both',
      flows,
      params,
      cuda: kernel,
      body: ({ to, factor }) => {
        to[0] *= factor;
      },
    });
    await using emulated = await Runtime.create({ gpus: 1, gpuMemory: '1MiB', workers: 1 });
    const tile = emulated.data(new Float64Array(4).fill(3));
    await emulated.run((graph) => {
      graph.insert(both, { to: tile, count: 4, factor: 2, offset: 0 });
      expect(() =>
        graph.insert(scaleWith(kernel), { to: tile, count: 4, factor: 2, offset: 0 }),
      ).toThrow(
        expect.objectContaining({
          code: 'ERR_UNKNOWN_KERNEL',
          message: expect.stringContaining("task class 'scale' has a CUDA kernel only"),
        }),
      );
    });
    expect((await tile.read())[0]).toBe(6);
  });
});
