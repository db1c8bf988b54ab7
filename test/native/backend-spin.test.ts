// The engine's thread spins for armed events of real queues.
import { expect, test } from 'vitest';
import { HOST, NO_QUEUE } from '../../devices/handles.js';
import { NativeBackend } from '../../devices/native/backend.js';
import { queueId, taskId } from '../support/handles.js';
import { Machine } from './machine.js';

const WORKER = queueId(0);

test('spin ends with an armed event, not with others, and leaves nothing armed', () => {
  using machine = new Machine();
  const backend = new NativeBackend(machine.core);
  const kernel = backend.kernel('spin', HOST);
  const run = (microseconds: number): number =>
    backend.exec(WORKER, kernel, taskId(1), 1, 0, 1, Float64Array.of(microseconds), NO_QUEUE, 0);
  const first = run(10);
  const second = run(2000);
  backend.arm(WORKER, second);
  backend.publish();
  expect(backend.spin(60e6)).toBe(true);
  backend.poll();
  expect(backend.completed[WORKER]).toBe(second);
  // Nothing is armed any more: what is complete does not end the next spin.
  expect(backend.spin(100)).toBe(false);
  backend.arm(WORKER, first);
  expect(backend.spin(60e6)).toBe(true);
});
