// Kernels of a library get the number of elements of each datum: on workers, on emulated GPUs and in plans.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import {
  type Datum,
  type ElementType,
  type Graph,
  Runtime,
  read,
  task,
  write,
} from '../../index.js';

const folder = mkdtempSync(path.join(tmpdir(), 'headrace-lengths-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** to[i] = length of datum i, for all data; the parameter comes behind them. */
const SOURCE = `#include "headrace/kernel.h"
static int32_t lengths(const headrace_task* task) {
  if (task->param_count != 1) return HEADRACE_BAD_ARGUMENTS;
  double* to = (double*)task->flows[0];
  for (int32_t i = 0; i < task->flow_count; ++i) to[i] = task->lengths[i];
  to[task->flow_count] = task->params[0];
  return 0;
}
int32_t headrace_register(headrace_registry* registry) {
  return registry->add(registry, "lengths", HEADRACE_KERNEL_HOST, lengths);
}
`;

function library(): string {
  const [source, built] = ['lengths.c', 'lengths.so'].map((name) => path.join(folder, name));
  writeFileSync(source as string, SOURCE);
  const options = ['-Wall', '-Werror', '-shared', '-fPIC', '-I', 'native/include'];
  execFileSync('cc', [...options, '-o', built as string, source as string]);
  return built as string;
}

const ELEMENTS = ['f64', 'f32', 'i32', 'u8'] as const;
const file = library();

/** A class with one result and `inputs` inputs of several element types. */
function classWith(inputs: number) {
  const flows: Record<string, ReturnType<typeof read<ElementType>>> = {};
  for (let i = 0; i < inputs; i++) flows[`in${i}`] = read(ELEMENTS[i % 4] as ElementType);
  return task({
    name: 'lengths',
    flows: { to: write('f64'), ...flows },
    params: { of: 'i32' },
    kernel: 'lengths',
  });
}

// 1: all in one record. 9: in three.
test.each([
  [1, 'host'],
  [9, 'host'],
  [1, 0],
  [9, 0],
] as const)('%i inputs on %s: inserted, played, and played from a file', async (inputs, device) => {
  await using runtime = await Runtime.create({ workers: 2, gpus: 1, gpuMemory: '1MiB' });
  runtime.loadKernels(file);
  const cls = classWith(inputs);
  const to = runtime.data('f64', inputs + 3, { name: 'to' });
  const data: Record<string, Datum> = {};
  const expected = [inputs + 3];
  for (let i = 0; i < inputs; i++) {
    data[`in${i}`] = runtime.data(
      new { f64: Float64Array, f32: Float32Array, i32: Int32Array, u8: Uint8Array }[
        ELEMENTS[i % 4] as 'f64'
      ](100 * i + 7),
      { name: `in${i}` },
    );
    expected.push(100 * i + 7);
  }
  const insert = (graph: Graph, of: number) =>
    void graph.insert(cls, { to, ...data, of } as never, { device });
  // Enough tasks that records lie across the end of the ring.
  await runtime.run((graph) => {
    for (let of = 0; of < 3000; of++) insert(graph, of);
  });
  expect([...(await to.read())].slice(0, -1)).toEqual([...expected, 2999]);
  const plan = await runtime.plan((graph) => insert(graph, 5));
  await to.set(new Float64Array(inputs + 3));
  await plan.run({ times: 3 });
  expect([...(await to.read())].slice(0, -1)).toEqual([...expected, 5]);
  const saved = path.join(folder, 'lengths.plan');
  await plan.save(saved);
  await to.set(new Float64Array(inputs + 3));
  const given = { data: [to, Object.values(data)], classes: cls };
  await (await runtime.loadPlan(saved, given)).run();
  expect([...(await to.read())].slice(0, -1)).toEqual([...expected, 5]);
});

test.each(['host', 0] as const)('many different lengths in one class on %s', async (device) => {
  await using runtime = await Runtime.create({ workers: 2, gpus: 1, gpuMemory: '1MiB' });
  runtime.loadKernels(file);
  const cls = classWith(2);
  const ins = Array.from({ length: 30 }, (_, i) => ({
    in0: runtime.data(new Float64Array(i + 1)),
    in1: runtime.data(new Float32Array(7 * i + 3)),
  }));
  const results = ins.map(() => runtime.data('f64', 4));
  await runtime.run((graph) => {
    // The first few lists of lengths get numbers. All others travel with their tasks, in turn with these.
    for (let of = 0; of < 1500; of++) {
      const i = (of * 7) % 30;
      graph.insert(cls, { to: results[i], ...ins[i], of } as never, { device });
    }
  });
  const values = await Promise.all(results.map((to) => to.read()));
  values.forEach(([to, in0, in1], i) => {
    expect([to, in0, in1]).toEqual([4, i + 1, 7 * i + 3]);
  });
});
