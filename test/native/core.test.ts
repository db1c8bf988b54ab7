// One core from JavaScript: records in, completions out, the doorbell, memory views, and the state after close.
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Control, QueueKind, SpaceKind, Status } from '../../native/contract.js';
import { NativeError } from '../../native/index.js';
import { type Event, Machine } from './machine.js';

test('spaces and queues are as requested', () => {
  using machine = new Machine({ workers: 2, gpus: 2, computeStreams: 2 });
  const { spaces, queues } = machine.core;
  expect(spaces.map((space) => space.kind)).toEqual([
    SpaceKind.host,
    SpaceKind.emulated,
    SpaceKind.emulated,
  ]);
  expect(spaces.every((space) => space.bytes === 2 ** 20)).toBe(true);
  expect(new Set(spaces.map((space) => space.uuid)).size).toBe(3);
  const { worker, compute, h2d, d2h, peer } = QueueKind;
  expect(queues.map((queue) => [queue.kind, queue.space, queue.peer])).toEqual([
    [worker, 0, -1],
    [worker, 0, -1],
    ...[compute, compute, h2d, d2h].map((kind) => [kind, 1, -1]),
    [peer, 1, 2],
    ...[compute, compute, h2d, d2h].map((kind) => [kind, 2, -1]),
    [peer, 2, 1],
  ]);
  expect(machine.core.peerAccess(1, 2)).toBe(true);
  expect(machine.core.peerAccess(1, 0)).toBe(false);
});

test('rings and control blocks start at cache lines', () => {
  using machine = new Machine({ workers: 3 });
  const { rings, control, shared } = machine.core;
  for (const view of [...rings, control, shared])
    expect(view.buffer).toBeInstanceOf(SharedArrayBuffer);
  // Same misalignment of all buffers or not: the native side has the addresses and put them right.
  expect(rings[0]).toHaveLength(64 * 16);
});

test('a kernel runs on host memory; more than four arguments go on in the next record', () => {
  using machine = new Machine();
  expect(machine.finish(machine.exec(0, 'fill_f64', [64], [4, 1.5]))).toBe(Status.ok);
  expect(
    machine.finish(machine.exec(0, 'add_f64', [0, 64], [4, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
  ).toBe(0);
  expect([...machine.host(0, 5)]).toEqual([3, 3, 3, 3, 0]);
});

test('sequence numbers wrap as int32', () => {
  using machine = new Machine({ firstSequence: 2 ** 31 - 20, gpus: 1 });
  for (const queue of [0, machine.queue('compute', 1)]) {
    let event: Event = machine.exec(queue, 'fill_f64', [0], [1, 0]);
    machine.exec(queue, 'fill_f64', [8], [1, 1]);
    for (let i = 0; i < 200; i++) {
      event = machine.exec(queue, 'add_f64', [0, 8], [1, 1, 0, 0, 0]);
      if (i % 20 === 0) machine.finish(event);
    }
    machine.finish(event);
    expect(event.seq).toBeLessThan(0);
    expect(machine.word(queue, Control.failures)).toBe(0);
    if (queue === 0) expect(machine.host(0, 1)[0]).toBe(200);
  }
});

test('data go from the host through two GPUs and back, in event order', () => {
  using machine = new Machine({ gpus: 2 });
  machine.host(0, 100).fill(7);
  const there = machine.copy(machine.queue('h2d', 1), 1, 4096, 0, 0, 800);
  const across = machine.copy(machine.queue('peer', 2, 1), 2, 0, 1, 4096, 800, there);
  const more = machine.exec(machine.queue('compute', 2), 'add_f64', [0, 0], [100, 1], across);
  const back = machine.copy(machine.queue('d2h', 2), 0, 8000, 2, 0, 800, more);
  const last = machine.exec(0, 'add_f64', [8000, 0], [100, 1], back);
  expect(machine.finish(last)).toBe(Status.ok);
  expect([...new Set(machine.host(8000, 100))]).toEqual([21]);
});

test('a failure cancels the run and tells its code', () => {
  using machine = new Machine({ workers: 2 });
  const bad = machine.exec(0, 'fail', [], [3], undefined, 1);
  const next = machine.exec(1, 'fill_f64', [0], [1, 9], bad, 1);
  const other = machine.exec(1, 'fill_f64', [8], [1, 9], bad, 2);
  expect(machine.finish(bad)).toBe(3);
  expect(machine.finish(next)).toBe(Status.cancelled);
  expect(machine.finish(other)).toBe(Status.ok);
  expect([...machine.host(0, 2)]).toEqual([0, 9]);
  expect(machine.word(1, Control.failures)).toBe(1);
});

test('a driver that refuses gives the reason', () => {
  using machine = new Machine({ gpus: 1 });
  const queue = machine.queue('compute', 1);
  expect(machine.core.lastError(queue)).toBe('');
  expect(machine.finish(machine.copy(queue, 0, 0, 0, 64, 8))).toBe(Status.driver);
  expect(machine.core.lastError(queue)).toMatch(/own GPU/);
});

test('times lie between issue and observed completion', () => {
  using machine = new Machine();
  machine.setShared('timing', 1);
  const before = machine.core.now();
  const event = machine.exec(0, 'spin', [], [500]);
  machine.finish(event);
  const [start, end] = machine.times(event);
  expect(start).toBeGreaterThan(before);
  expect(end - start).toBeGreaterThanOrEqual(499_000);
  expect(end).toBeLessThan(machine.core.now());
});

describe('doorbell', () => {
  test('rings into the event loop, once, and keeps the loop alive while held', async () => {
    using machine = new Machine();
    let calls = 0;
    const rang = new Promise<void>((resolve) => {
      machine.core.onDoorbell(() => {
        calls++;
        machine.setShared('engineAsleep', 0);
        resolve();
      });
    });
    machine.core.hold(true);
    // Long enough that a thread that loses its core for a moment still sees it under way.
    const event = machine.exec(0, 'spin', [], [100_000]);
    machine.arm(event);
    machine.setShared('engineAsleep', 2);
    machine.publish();
    expect(machine.done(event)).toBe(false);
    await rang;
    expect(machine.done(event)).toBe(true);
    machine.core.hold(false);
    // A second ring would come in its own time: nothing but time shows that none does.
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(calls).toBe(1);
  });

  test('blocks no longer than asked when nothing rings', () => {
    using machine = new Machine();
    const start = machine.core.now();
    expect(machine.core.waitForDoorbell(3000)).toBe(false);
    const waited = machine.core.now() - start;
    expect(waited).toBeGreaterThan(2.9e6);
    expect(waited).toBeLessThan(1e9);
  });

  test('does not block for a number that is already reached', () => {
    using machine = new Machine();
    const event = machine.exec(0, 'empty', [], []);
    machine.finish(event);
    machine.arm(event);
    expect(machine.core.waitForDoorbell(10e6)).toBe(true);
  });
});

describe('host views', () => {
  test('may overlap, and are the same memory', () => {
    using machine = new Machine();
    const whole = new Uint8Array(machine.core.hostView(0, 4096));
    const again = new Uint8Array(machine.core.hostView(0, 4096));
    const part = new Uint8Array(machine.core.hostView(100, 8));
    whole[103] = 42;
    expect([again[103], part[3]]).toEqual([42, 42]);
    machine.finish(machine.fill(0, 100, 2, 0xa5));
    expect([...part.subarray(0, 4)]).toEqual([0xa5, 0xa5, 0, 42]);
  });

  test('are bounded, and empty after close', () => {
    const machine = new Machine();
    expect(() => machine.core.hostView(2 ** 20 - 4, 8)).toThrow(NativeError);
    expect(() => machine.core.hostView(-8, 8)).toThrow(NativeError);
    expect(machine.core.hostView(2 ** 20, 0).byteLength).toBe(0);
    const view = new Float64Array(machine.core.hostView(0, 80)).fill(3);
    machine.core.close();
    // Not detached, which would slow down every typed array of the process; and not the old values.
    expect([...view]).toEqual(new Array(10).fill(0));
    expect(() => machine.core.hostView(0, 8)).toThrow(expect.objectContaining({ code: 'CLOSED' }));
  });

  test('many of them neither leak references nor disturb each other', () => {
    using machine = new Machine({ hostBytes: 2 ** 34 });
    for (let i = 0; i < 5000; i++) machine.core.hostView(i * 65536, 65536);
    machine.host(2 ** 33, 1)[0] = 5;
    expect(machine.host(2 ** 33, 1)[0]).toBe(5);
  });
});

test('close is idempotent and finishes published commands', () => {
  const machine = new Machine({ workers: 2, gpus: 1 });
  const slow = machine.exec(0, 'spin', [], [3000]);
  const after = machine.exec(machine.queue('compute', 1), 'empty', [], [], slow);
  machine.publish();
  machine.core.close();
  machine.core.close();
  expect(machine.done(after)).toBe(true);
  expect(machine.core.waitForDoorbell(1e6)).toBe(false);
  machine.core.wake(0);
  machine.core.hold(true);
  expect(() => machine.core.kernel('empty')).toThrow(NativeError);
});

test('GPU memory can be mapped by others, and has an address', () => {
  using machine = new Machine({ gpus: 1 });
  expect(machine.core.shareable(0)).toBeNull();
  const share = machine.core.shareable(1);
  expect(share).toMatchObject({ pid: process.pid, bytes: 2 ** 20 });
  machine.finish(machine.fill(machine.queue('compute', 1), 16, 4, 0x5a));
  const file = openSync(`/proc/${share?.pid}/fd/${share?.fd}`, 'r');
  const bytes = Buffer.alloc(6);
  readSync(file, bytes, 0, 6, 15);
  closeSync(file);
  expect([...bytes]).toEqual([0, 0x5a, 0x5a, 0x5a, 0x5a, 0]);
  expect(machine.core.address(0)).toBeGreaterThan(0n);
  expect(() => machine.core.address(9)).toThrow(NativeError);
});

describe('kernel libraries', () => {
  let folder = '';
  const include = fileURLToPath(new URL('../../native/include', import.meta.url));
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'headrace-kernels-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function build(name: string, source: string): string {
    const file = join(folder, `${name}.c`);
    const library = join(folder, `${name}.so`);
    writeFileSync(file, `#include "headrace/kernel.h"\n${source}`);
    execFileSync('cc', [
      '-shared',
      '-fPIC',
      '-Wall',
      '-Werror',
      `-I${include}`,
      '-o',
      library,
      file,
    ]);
    return library;
  }

  test('are plain C and replace earlier kernels of the same name', () => {
    using machine = new Machine({ gpus: 1 });
    const library = (value: number) =>
      build(
        `set${value}`,
        `static int32_t set(const headrace_task* task) {
           if (task->flow_count != 1) return HEADRACE_BAD_ARGUMENTS;
           *(double*)task->flows[0] = ${value} + task->gpu;
           return 0;
         }
         int32_t headrace_register(headrace_registry* registry) {
           if (registry->abi != HEADRACE_KERNEL_ABI) return 1;
           return registry->add(registry, "set", HEADRACE_KERNEL_HOST, set);
         }`,
      );
    expect(machine.core.loadKernels(library(10))).toEqual(['set']);
    const old = machine.core.kernel('set');
    expect(machine.finish(machine.exec(0, 'set', [8], [1]))).toBe(Status.ok);
    expect(machine.host(8, 1)[0]).toBe(9); // gpu is -1 on a worker
    machine.core.loadKernels(library(20));
    expect(machine.core.kernel('set')).not.toBe(old);
    expect(machine.core.kernel('set', 1)).toBe(machine.core.kernel('set', 0));
    const there = machine.exec(machine.queue('compute', 1), 'set', [0], [1]);
    machine.finish(machine.copy(machine.queue('d2h', 1), 0, 8, 1, 0, 8, there));
    expect(machine.host(8, 1)[0]).toBe(20);
    expect(machine.finish(machine.exec(0, 'set', [], []))).toBe(Status.badArguments);
    // Without the length of its datum a record is refused before the kernel can read it.
    expect(machine.finish(machine.exec(0, 'set', [8], []))).toBe(Status.badArguments);
    // It may name a list with as many lengths as it has data.
    const number = (...lengths: number[]) =>
      machine.core.numberLengths(Float64Array.from(lengths)) << 8;
    const named = (run: number) => machine.finish(machine.exec(0, 'set', [8], [], undefined, run));
    expect(named(1 | number(1))).toBe(Status.ok);
    expect(named(2 | number(1, 1))).toBe(Status.badArguments);
    expect(named(3 | (4095 << 8))).toBe(Status.badArguments);
    expect(named(4 | (4096 << 8))).toBe(Status.badArguments);
  });

  test('of ABI 1 run as before, without lengths', () => {
    using machine = new Machine({ gpus: 1 });
    const library = build(
      'old',
      `#undef headrace_register
       #define ABI 1
       static int32_t old(const headrace_task* task) {
         if (task->flow_count != 1 || task->param_count != 2) return HEADRACE_BAD_ARGUMENTS;
         *(double*)task->flows[0] = task->params[1];
         return 0;
       }
       int32_t headrace_register(headrace_registry* registry) {
         if (registry->abi != ABI) return 1;
         return registry->add(registry, "old", HEADRACE_KERNEL_HOST, old);
       }`,
    );
    // A runtime of ABI 1 looks for the name that only this library has.
    const names = (file: string) => readFileSync(file, 'latin1').match(/headrace_register\w*/g);
    expect(names(library)).toContain('headrace_register');
    const now = build(
      'now',
      'int32_t headrace_register(headrace_registry* r) { return r ? 0 : 1; }',
    );
    expect(new Set(names(now))).toEqual(new Set(['headrace_register_2']));
    expect(machine.core.loadKernels(library)).toEqual(['old']);
    expect(machine.core.takesLengths(machine.core.kernel('old'))).toBe(false);
    expect(machine.finish(machine.exec(0, 'old', [8], [1, 7]))).toBe(Status.ok);
    expect(machine.host(8, 1)[0]).toBe(7);
  });

  test('that cannot be used give the reason', () => {
    using machine = new Machine();
    const attempt = (path: string) => () => machine.core.loadKernels(path);
    const fails = (text: RegExp) =>
      expect.objectContaining({ code: 'KERNEL_LIBRARY', message: expect.stringMatching(text) });
    expect(attempt(join(folder, 'none.so'))).toThrow(fails(/none\.so/));
    expect(attempt(build('other', 'int something;'))).toThrow(fails(/headrace_register/));
    const angry = build(
      'angry',
      'int32_t headrace_register(headrace_registry* r) { return r ? 7 : 0; }',
    );
    expect(attempt(angry)).toThrow(fails(/returned 7/));
    expect(machine.core.kernel('no such kernel')).toBe(-1);
  });
});
