// Machines for tests: the host with one and two workers, and one, two and four emulated GPUs, all with poisoned freed
// memory and checked invariants after every pass; and the checks of a runtime at the end of a test.
// HEADRACE_TEST_DRIVER=cuda with HEADRACE_TEST_GPUS=n replaces all of them by real GPUs (or the stub driver).
import { type Datum, Runtime, type RuntimeOptions } from '../../index.js';

/** A machine a test runs on. */
export interface Machine {
  readonly name: string;
  readonly gpus: number;
  readonly options: RuntimeOptions;
}

function machine(name: string, options: RuntimeOptions): Machine {
  const full: RuntimeOptions = {
    hostMemory: '256MiB',
    gpuMemory: '8MiB',
    checked: true,
    ...options,
  };
  return { name, gpus: options.gpus ?? 0, options: full };
}

/** Real GPUs to test on; 0: emulated ones. */
const realGpus =
  process.env['HEADRACE_TEST_DRIVER'] === 'cuda' ? Number(process.env['HEADRACE_TEST_GPUS']) : 0;

export const HOSTS: readonly Machine[] = [
  machine('host, 1 worker', { workers: 1 }),
  machine('host, 2 workers', { workers: 2 }),
];
export const GPUS: readonly Machine[] =
  realGpus > 0
    ? [1, 2, 4]
        .filter((gpus) => gpus <= realGpus)
        .map((gpus) => machine(`${gpus} CUDA`, { workers: 1, gpus, driver: 'cuda' }))
    : [
        machine('1 GPU', { workers: 1, gpus: 1 }),
        machine('2 GPUs', { workers: 1, gpus: 2 }),
        machine('4 GPUs', { workers: 2, gpus: 4 }),
      ];
/** Every machine an oracle runs on. */
export const MACHINES: readonly Machine[] = realGpus > 0 ? GPUS : [...HOSTS, ...GPUS];

/** Longest wait for something that must happen; milliseconds. */
const PATIENCE = 20_000;

/** The promise, or an error that says who waits for what when it takes too long. */
export async function soon<T>(
  runtime: Runtime,
  promise: PromiseLike<T>,
  ms: number = PATIENCE,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`still waiting after ${ms} ms:\n${runtime.explain()}`)),
      ms,
    );
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Opens a runtime, runs the test, and checks that nothing stays pinned; closes it in any case. */
export async function onMachine<T>(
  options: RuntimeOptions,
  test: (runtime: Runtime) => Promise<T>,
): Promise<T> {
  const runtime = await Runtime.create(options);
  try {
    const result = await test(runtime);
    await nothingPinned(runtime);
    return result;
  } finally {
    await soon(runtime, runtime.close());
  }
}

/** Waits until no command is under way, then throws when a copy is still pinned. */
export async function nothingPinned(runtime: Runtime): Promise<void> {
  await soon(runtime, runtime.engine.quiet());
  for (const device of runtime.memory()) {
    if (device.pinned !== 0)
      throw new Error(`${device.name}: ${device.pinned} bytes are pinned and nothing runs`);
  }
}

/** Closes the data and throws when memory of a device is still in use. They must be all there are. */
export async function nothingLeft(runtime: Runtime, data: Iterable<Datum>): Promise<void> {
  for (const datum of data) datum.close();
  await nothingPinned(runtime);
  for (const device of runtime.memory()) {
    if (device.used !== 0)
      throw new Error(`${device.name}: ${device.used} bytes are in use and no datum is open`);
  }
}
