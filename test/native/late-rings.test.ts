// A ring of the doorbell that Node delivers when its core is closed and collected reaches nobody: neither the memory of
// the old core nor the core that has got it since.
import { connect, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { collect } from '../support/collect.js';
import { Machine } from './machine.js';

/** Closes a core while a ring of it is outstanding. */
function leaveRing(): void {
  const machine = new Machine();
  machine.core.onDoorbell(() => {});
  const event = machine.exec(0, 'empty', [], []);
  machine.arm(event);
  machine.setShared('engineAsleep', 2);
  machine.publish();
  machine.core.close();
}

/** Calls `work` where an event of a socket is handled: finalizers and `setImmediate` come before the next rings. */
function inSocketEvent(work: () => void): Promise<void> {
  return new Promise((resolve) => {
    const server = createServer((socket) => {
      work();
      socket.destroy();
      server.close();
      resolve();
    });
    server.listen(0, '127.0.0.1', () => {
      connect((server.address() as { port: number }).port, '127.0.0.1').on('error', () => {});
    });
  });
}

test('a ring of a core that is gone reaches nobody', async () => {
  let calls = 0;
  const later: Machine[] = [];
  for (let round = 0; round < 20; round++) {
    await inSocketEvent(() => {
      for (let i = 0; i < 4; i++) leaveRing();
      collect();
      setImmediate(() => {
        for (let i = 0; i < 4; i++) {
          const machine = new Machine();
          machine.core.onDoorbell(() => calls++);
          later.push(machine);
        }
      });
    });
    // Two turns of the event loop: the rings come between them.
    for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
  expect(later).toHaveLength(80);
  expect(calls).toBe(0);
  for (const machine of later) machine.core.close();
});
