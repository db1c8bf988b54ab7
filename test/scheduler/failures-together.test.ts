// Of several failures that the engine sees together, it reports the first in program order.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { type RuntimeOptions, readWrite, task } from '../../index.js';
import { Control } from '../../native/contract.js';
import { compileKernels, folderOfProcess } from '../support/kernel-library.js';
import { onMachine, soon } from '../support/machines.js';

const folder = folderOfProcess('failures');

/** The tasks fail when this file is there. */
const go = path.join(folder, 'go');

/** Two tasks on two GPUs that both have begun before either fails, so that neither is cancelled by the other. */
const SOURCE = `
#include <headrace/kernel.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>
static atomic_int begun;
static int32_t fail_together(const headrace_task* task) {
  atomic_fetch_add(&begun, 1);
  while (atomic_load(&begun) < 2 || access("${go}", F_OK) != 0) sched_yield();
  return (int32_t)task->params[0];
}
int32_t headrace_register(headrace_registry* registry) {
  return registry->add(registry, "fail_together", HEADRACE_KERNEL_HOST, fail_together);
}
`;

function library(): string {
  const source = path.join(folder, 'kernels.c');
  writeFileSync(source, SOURCE);
  return compileKernels(source, path.join(folder, 'kernels.so'), ['-O1']);
}

const failTogether = task({
  name: 'failTogether',
  flows: { of: readWrite('f64') },
  params: { code: 'i32' },
  kernel: 'fail_together',
});

it('the first of two failures in program order is named, though the other is looked at first', async () => {
  const options: RuntimeOptions = {
    workers: 1,
    gpus: 2,
    driver: 'emulated',
    hostMemory: '16MiB',
    gpuMemory: '1MiB',
    checked: true,
  };
  await onMachine(options, async (runtime) => {
    runtime.loadKernels(library());
    const { control } = runtime.engine.backend as unknown as { control: Int32Array };
    const queues = control.length / Control.words;
    const failures = () =>
      Array.from({ length: queues }, (_, q) =>
        Atomics.load(control, q * Control.words + Control.failures),
      ).reduce((sum, count) => sum + count, 0);
    // A failure counts before its record completes.
    const areOver = () =>
      Array.from({ length: queues }, (_, q) => q * Control.words).every(
        (q) =>
          Atomics.load(control, q + Control.completed) ===
          Atomics.load(control, q + Control.published),
      );
    const data = [0, 1].map(() => runtime.data(new Float64Array(8)));
    const run = runtime.run(async (graph) => {
      // GPU 0 is looked at first.
      graph.insert(failTogether, { of: data[0] as never, code: 11 }, { device: 1 });
      graph.insert(failTogether, { of: data[1] as never, code: 12 }, { device: 0 });
      await new Promise((resolve) => setImmediate(resolve));
      // The engine gets no turn before both have failed.
      writeFileSync(go, '');
      const limit = performance.now() + 10_000;
      while ((failures() < 2 || !areOver()) && performance.now() < limit);
      expect(failures()).toBe(2);
    });
    const error = await soon(
      runtime,
      Promise.resolve(run).then(
        () => undefined,
        (e) => e,
      ),
    );
    expect(error).toMatchObject({ code: 'ERR_TASK_FAILED', details: { kernelCode: 11 } });
  });
});
