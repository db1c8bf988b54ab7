// What the copies of GPUs share, and the kernels of a GPU: the speeds that were measured, and the events that move when something
// begins or ends.
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { EventQueue } from '../../devices/simulated/machine/event-queue.js';
import { queuesOf } from '../../devices/simulated/machine/machine.js';
import { presets } from '../../devices/simulated/machine/presets.js';
import {
  type Demand,
  SharedCapacity,
  Sharing,
} from '../../devices/simulated/machine/shared-capacity.js';
import { World } from '../../devices/simulated/machine/world.js';
import { Runtime, readWrite, task, write } from '../../index.js';

/** Something that takes `seconds` at full speed. */
interface Begun {
  readonly seconds: number;
  readonly demands: readonly Demand[];
  readonly at?: number;
}

/** Times at which they end, in seconds. */
function ends(begun: readonly Begun[]): number[] {
  const world = new World(false);
  const times: number[] = [];
  const happens = (queue: number): void => {
    capacity.end(queue);
    times[queue] = world.time / 1e9;
  };
  const first = world.reserve({ happens }, begun.length);
  const capacity = new SharedCapacity(world, first, begun.length, 8);
  begun.forEach(({ seconds, demands, at = 0 }, queue) => {
    world.at(at * 1e9, () => capacity.begin(queue, seconds * 1e9, demands));
  });
  while (world.step());
  return times;
}

const PRESET = presets['h200-4'];

/** A copy of 1 GB on each of some GPUs of the preset. */
function copies(gpus: number, ...ways: ('h2d' | 'd2h')[]): Begun[] {
  const queues = queuesOf(PRESET);
  const sharing = new Sharing(PRESET, queues, new World(false), 0);
  return queues.flatMap(({ kind, space }, q) =>
    space <= gpus && ways.some((way) => way === kind)
      ? [{ seconds: 1e9 / PRESET.h2d.bandwidth, demands: sharing.demandsOfCopies(q) }]
      : [],
  );
}

describe('copies that share the memory of the host and the links of GPUs', () => {
  it('are as fast as measured: 55 GB/s in one direction of a GPU and 50 in both, on four GPUs 55 in, 36 out, 23.9 each way', () => {
    for (const [begun, rate] of [
      [copies(1, 'h2d'), 55],
      [copies(1, 'd2h'), 55],
      [copies(1, 'h2d', 'd2h'), 50],
      [copies(4, 'h2d'), 55],
      [copies(4, 'd2h'), 36],
      [copies(4, 'h2d', 'd2h'), 23.9],
    ] as const)
      for (const end of ends(begun)) expect(1 / end).toBeCloseTo(rate, 0);
  });

  it('go on at another speed when one of them begins or ends', () => {
    // Four take the memory 1.6 times. The fifth begins when half of the others is done.
    const one = { seconds: 1, demands: [[0, 0.4]] as const };
    const late = 1.6 / 2;
    const times = ends([one, one, one, one, { ...one, at: late }]);
    const together = late + 0.5 * 2;
    for (const end of times.slice(0, 4)) expect(end).toBeCloseTo(together, 9);
    // The other half of the fifth has the memory to itself.
    expect(times[4]).toBeCloseTo(together + 0.5, 9);
  });

  it('are as slow as the scarcest thing that they use', () => {
    const times = ends([
      {
        seconds: 1,
        demands: [
          [0, 1],
          [1, 1],
        ],
      },
      { seconds: 1, demands: [[0, 1]] },
      { seconds: 1, demands: [[1, 2]] },
    ]);
    // Two thirds of the first are left when the second, at half of its speed, is over.
    expect(times[1]).toBeCloseTo(2, 9);
    expect(times[0]).toBeCloseTo(3, 9);
    expect(times[2]).toBeCloseTo(3, 9);
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

test.each([
  [1, 1, 80],
  [0.6, 0.6, 48],
  [0.5, 0.5, 40],
  [0, 1, 40],
])(
  'eight kernels of 5 ms on each of two streams, which keep %d and %d of a GPU busy alone, take %d ms',
  async (a, b, milliseconds) => {
    const kernel = (share: number) => ({ table: [[1, 5e-3]] as const, share });
    const machine = {
      ...PRESET,
      gpus: 1,
      computeStreams: 2,
      engine: { command: 0, wake: 0, launch: 0 },
      kernels: { a: kernel(a), b: kernel(b) },
    };
    const runtime = Runtime.over(new SimulatedBackend({ machine }), { computeStreams: 2 });
    const classOf = (name: string) => task({ name, flows: { x: write('f64') }, kernel: name });
    const report = await runtime.run((graph) => {
      for (const name of ['a', 'b']) {
        const cls = classOf(name);
        for (let i = 0; i < 8; i++) graph.insert(cls, { x: runtime.data(new Float64Array(1)) });
      }
    });
    await runtime.close();
    expect(report.seconds * 1e3).toBeCloseTo(milliseconds, 1);
  },
);

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
