// Copies of several GPUs share the memory of the host: the speeds that were measured, and the events that move when copies begin and end.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { EventQueue } from '../../devices/simulated/machine/event-queue.js';
import { HostTraffic } from '../../devices/simulated/machine/host-traffic.js';
import { presets } from '../../devices/simulated/machine/presets.js';
import { World } from '../../devices/simulated/machine/world.js';
import { Runtime, readWrite, task } from '../../index.js';

/** One copy of 1 GB on each of some queues from and to the host of the preset; the times of their ends in seconds. */
function ends(copies: readonly { way: 'read' | 'write'; at: number }[]): number[] {
  const { h2d, hostCopies } = presets['h200-4'];
  if (hostCopies === undefined)
    throw new Error('the preset has no figure for the memory of the host');
  const world = new World(false);
  const times: number[] = [];
  const first = world.reserve(
    {
      happens: (queue) => {
        traffic.end(queue);
        times[queue] = world.time / 1e9;
      },
    },
    copies.length,
  );
  const traffic = new HostTraffic(world, first, copies.length);
  copies.forEach(({ way, at }, queue) => {
    traffic.share(queue, h2d.bandwidth / hostCopies[way]);
    world.at(at * 1e9, () => traffic.begin(queue, 1e18 / h2d.bandwidth));
  });
  while (world.step());
  return times;
}

const all = (gpus: number, ...ways: ('read' | 'write')[]) =>
  ways.flatMap((way) => Array.from({ length: gpus }, () => ({ way, at: 0 })));

describe('copies that share the memory of the host', () => {
  it('are as fast as measured on four GPUs: 55 GB/s in, 36 out, 23.9 each way in both directions', () => {
    for (const [copies, rate] of [
      [all(1, 'read', 'write'), 55],
      [all(4, 'read'), 55],
      [all(4, 'write'), 36],
      [all(4, 'read', 'write'), 23.9],
    ] as const)
      for (const end of ends(copies)) expect(1 / end).toBeCloseTo(rate, 0);
  });

  it('go on at another speed when one of them begins or ends', () => {
    // Four writes take 4 x 55 / 144 of the time of one alone. The fifth begins when half of the others is done.
    const alone = 1 / 55;
    const four = 4 * (55 / 144);
    const five = 5 * (55 / 144);
    const late = (alone * four) / 2;
    const times = ends([...all(4, 'write'), { way: 'write', at: late }]);
    const together = late + (alone / 2) * five;
    for (const end of times.slice(0, 4)) expect(end).toBeCloseTo(together, 9);
    // The other half of the fifth has the memory to itself.
    expect(times[4]).toBeCloseTo(together + alone / 2, 9);
  });

  it('take longer in a run of a program', async () => {
    const bytes = 1e6;
    const seconds = async (share: number): Promise<number> => {
      const link = { bandwidth: 1e9, latency: 1e-3 };
      const machine = {
        ...presets['h200-2'],
        engine: { command: 0, wake: 0, launch: 0 },
        h2d: link,
        d2h: link,
        hostCopies: { read: share, write: share },
        kernels: { '*': 0 },
      };
      const runtime = Runtime.over(new SimulatedBackend({ machine }), {});
      const use = task({ name: 'use', flows: { x: readWrite('f64') }, kernel: 'use' });
      const report = await runtime.run((graph) => {
        for (const device of [0, 1])
          graph.insert(use, { x: runtime.data(new Float64Array(bytes / 8)) }, { device });
      });
      await runtime.close();
      return report.seconds;
    };
    // A millisecond of latency, and one of transfer; or two, if both share 1 GB/s.
    expect(await seconds(2e9)).toBeCloseTo(2e-3, 5);
    expect(await seconds(1e9)).toBeCloseTo(3e-3, 5);
  });
});

it('an event that gets another time leaves the queue in the order of the new times', () => {
  const time = fc.integer({ min: 0, max: 20 });
  fc.assert(
    fc.property(fc.array(fc.tuple(time, fc.option(time)), { minLength: 1 }), (entries) => {
      const queue = new EventQueue();
      queue.reserve(entries.length);
      entries.forEach(([first], id) => {
        queue.push(id, first);
      });
      entries.forEach(([, moved], id) => {
        if (moved !== null) queue.move(id, moved);
      });
      const order = entries
        .map(([first, moved], id) => ({ id, at: moved ?? first }))
        .sort((a, b) => a.at - b.at || a.id - b.id);
      for (const { id } of order) expect(queue.pop()).toBe(id);
    }),
  );
});
