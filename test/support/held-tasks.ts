// Tasks that keep an executor busy until the test opens them: a native kernel waits for a file.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Flow, type Runtime, readWrite, type TaskClass, task } from '../../index.js';
import { compileKernels, folderOfProcess } from './kernel-library.js';

let folder: string | undefined;
let gates = 0;

/** The kernel ends when the file with the number of its gate is there. */
const source = (of: string): string => `
#include <headrace/kernel.h>
#include <stdio.h>
#include <unistd.h>
static int32_t hold(const headrace_task* task) {
  char file[4096];
  snprintf(file, sizeof file, "%s/%d", "${of}", (int)task->params[0]);
  while (access(file, F_OK) != 0) usleep(200);
  return 0;
}
int32_t headrace_register(headrace_registry* registry) {
  return registry->add(registry, "hold", HEADRACE_KERNEL_HOST, hold);
}
`;

/** The folder of the gates and of the library, compiled once per test process. */
function built(): string {
  if (folder === undefined) {
    const made = folderOfProcess('held');
    const file = path.join(made, 'hold.c');
    writeFileSync(file, source(made));
    compileKernels(file, path.join(made, 'hold.so'), ['-O1']);
    folder = made;
  }
  return folder;
}

/** Keeps an executor busy with a datum that it leaves as it is, until its gate opens. */
export const hold: TaskClass<{ readonly of: Flow<'f64', 'readWrite'> }, { readonly gate: 'i32' }> =
  task({
    name: 'hold',
    flows: { of: readWrite('f64') },
    params: { gate: 'i32' },
    kernel: 'hold',
  });

/** Gives the test a closed gate for `hold`, and opens it at the end, also if the test fails. */
export async function withGate<T>(
  runtime: Runtime,
  test: (gate: number, open: () => void) => Promise<T>,
): Promise<T> {
  const at = built();
  runtime.loadKernels(path.join(at, 'hold.so'));
  const gate = gates++;
  const open = (): void => writeFileSync(path.join(at, String(gate)), '');
  try {
    return await test(gate, open);
  } finally {
    open();
  }
}
