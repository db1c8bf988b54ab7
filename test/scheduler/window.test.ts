// Insertion against a window that is full, asynchronous bodies, progress and events.
import { describe, expect, it } from 'vitest';
import {
  type Graph,
  type HeadraceError,
  type RunProgress,
  type RunReport,
  read,
  readWrite,
  reduce,
  task,
} from '../../index.js';
import { HOSTS, MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { add, delay, fill, script, spin } from '../support/tasks.js';

const COUNT = 16;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe.each(MACHINES)('on $name', ({ options, gpus }) => {
  it('a plain loop inserts a thousand times the tasks of a window', async () => {
    await onMachine({ ...options, window: 4, runAhead: 2 }, async (runtime) => {
      const one = runtime.data(new Float64Array(COUNT).fill(1));
      const data = Array.from({ length: 3 }, () => runtime.data(new Float64Array(COUNT)));
      let most = 0;
      const run = runtime.run((graph) => {
        for (let i = 0; i < 4000; i++) {
          graph.insert(add, { to: data[i % 3], from: one, count: COUNT });
          most = Math.max(most, runtime.engine.tasks.live);
        }
      });
      expect((await soon(runtime, run)).tasks).toBe(4000);
      expect(most).toBeLessThanOrEqual(4);
      expect((await data[0].read())[0]).toBe(1334);
      await nothingLeft(runtime, [one, ...data]);
    });
  });

  it('space() waits for room where tasks that are over stand behind one that runs', async () => {
    await onMachine({ ...options, window: 16, workers: 2 }, async (runtime) => {
      const run = runtime.run(async (graph) => {
        graph.insert(spin, { microseconds: 200_000 }, { device: 'host' });
        for (let i = 1; i < 16; i++) graph.insert(spin, { microseconds: 1 }, { device: 'host' });
        await graph.space();
        // The row of the first task is the first that becomes free.
        expect(runtime.engine.tasks.live).toBeLessThan(16);
      });
      expect((await soon(runtime, run)).tasks).toBe(16);
    });
  });

  it('tasks with hundreds of data fill the rings of their queues, and go on when there is room', async () => {
    await onMachine({ ...options, window: 4096, runAhead: 16, checked: false }, async (runtime) => {
      const flows = 700;
      const names = Array.from({ length: flows }, (_, i) => `f${i}`);
      const wide = task({
        name: 'wide',
        flows: Object.fromEntries(names.map((name) => [name, read('f64')])),
        params: { microseconds: 'f64' },
        kernel: 'spin',
      });
      const data = Array.from({ length: 3 * flows }, () => runtime.data(new Float64Array(8)));
      const report = await soon(
        runtime,
        runtime.run((graph) => {
          for (let i = 0; i < 40; i++) {
            const args = Object.fromEntries(
              names.map((name, k) => [name, data[(i % 3) * flows + k]]),
            );
            // The first ones take long enough for the others to pile up behind them.
            const device = gpus > 0 ? 0 : ('host' as const);
            graph.insert(wide, { ...args, microseconds: i < 2 ? 20_000 : 20 } as never, { device });
          }
        }),
      );
      expect(report.tasks).toBe(40);
      // Whoever had to wait, waited for room in a ring.
      expect(report.waits['slot']).toBeGreaterThan(0);
      await nothingLeft(runtime, data);
    });
  });

  it('tasks start while the program awaits something, also while it awaits their own results', async () => {
    await onMachine(options, async (runtime) => {
      const x = runtime.data(new Float64Array(1));
      const run = runtime.run(async (graph) => {
        for (let i = 0; i < 3; i++) {
          await new Promise<void>((resolve) => {
            graph.insert(
              script('tell', () => resolve()),
              { of: x },
            );
          });
        }
      });
      expect((await soon(runtime, run)).tasks).toBe(3);
      await nothingLeft(runtime, [x]);
    });
  });

  it('a loop inserts JavaScript bodies beyond the window, also from inside a body', async () => {
    await onMachine({ ...options, window: 8 }, async (runtime) => {
      const datum = runtime.data(new Float64Array(COUNT));
      const count = script('count', (values) => void values[0]++);
      let graph: Graph;
      const unfold = task({
        name: 'unfold',
        flows: {},
        params: { n: 'i32' },
        body: ({ n }) => {
          for (let i = 0; i < n; i++) graph.insert(count, { of: datum });
        },
      });
      await soon(
        runtime,
        runtime.run((g) => {
          graph = g;
          for (let i = 0; i < 100; i++) graph.insert(count, { of: datum });
          graph.insert(unfold, { n: 6 });
        }),
      );
      expect((await datum.read())[0]).toBe(106);
      await nothingLeft(runtime, [datum]);
    });
  });

  it('asynchronous bodies hold their data until they settle, and overlap with each other', async () => {
    await onMachine(options, async (runtime) => {
      const data = Array.from({ length: 8 }, (_, i) =>
        runtime.data(new Float64Array(COUNT).fill(i)),
      );
      const after = runtime.data('f64', COUNT);
      let running = 0;
      let most = 0;
      let meet = (): void => {};
      const met = new Promise<void>((resolve) => {
        meet = resolve;
      });
      const slow = script('slow', async (values) => {
        most = Math.max(most, ++running);
        if (running > 1) meet();
        values[0] += 100;
        await met;
        // Time for the tasks behind it, which must not come yet.
        await pause(5);
        // Still the same memory, and nobody else has changed it.
        expect(values[0]).toBeGreaterThanOrEqual(100);
        values[0] *= 2;
        running--;
      });
      await soon(
        runtime,
        runtime.run((graph) => {
          for (const of of data) graph.insert(slow, { of });
          for (const from of data)
            graph.insert(add, { to: from, from: data[0] === from ? data[1] : data[0], count: 0 });
          graph.insert(fill, { to: after, count: COUNT, value: 1 });
        }),
      );
      expect(most).toBeGreaterThan(1);
      for (const [i, datum] of data.entries()) expect((await datum.read())[0]).toBe((100 + i) * 2);
      await nothingLeft(runtime, [...data, after]);
    });
  });

  it('a body may await other tasks of the same run', async () => {
    await onMachine(options, async (runtime) => {
      const datum = runtime.data(new Float64Array(COUNT));
      const other = runtime.data(new Float64Array(COUNT).fill(7));
      const seen: number[] = [];
      let graph: Graph;
      const outer = task({
        name: 'outer',
        flows: { of: readWrite('f64') },
        body: async ({ of }) => {
          graph.insert(add, { to: other, from: other2, count: COUNT });
          seen.push((await other.read())[0]);
          of[0] = seen[0];
        },
      });
      const other2 = runtime.data(new Float64Array(COUNT).fill(1));
      await soon(
        runtime,
        runtime.run((g) => {
          graph = g;
          graph.insert(outer, { of: datum });
        }),
      );
      expect(seen).toEqual([8]);
      expect((await datum.read())[0]).toBe(8);
      await nothingLeft(runtime, [datum, other, other2]);
    });
  });
});

describe.each(HOSTS)('on $name', ({ options }) => {
  it('a loop fills the window and its overflow with asynchronous bodies; then its error advises to await space', async () => {
    await onMachine({ ...options, window: 16, overflow: 64 }, async (runtime) => {
      // No timer fires while a loop inserts, so that no body ends within it.
      const slow = task({ name: 'slow', flows: {}, body: () => pause(1) });
      const loop = (count: number): PromiseLike<RunReport> =>
        runtime.run((graph) => {
          for (let i = 0; i < count; i++) graph.insert(slow, {});
        });
      expect((await soon(runtime, loop(80))).tasks).toBe(80);
      await expect(soon(runtime, loop(100))).rejects.toMatchObject({
        code: 'ERR_WINDOW_FULL',
        message: expect.stringMatching(
          /the program cannot insert a task of class 'slow': .* window of 16 tasks and its overflow of 64 are full, \d+ asynchronous bodies have not ended/,
        ),
        details: {
          limit: 80,
          remedy: 'await graph.space() between insertions, or raise the option `overflow`',
        },
      });
      const polite = runtime.run(async (graph) => {
        for (let i = 0; i < 300; i++) {
          graph.insert(slow, {});
          await graph.space();
        }
      });
      expect((await soon(runtime, polite)).tasks).toBe(300);
    });
  });

  it.each(['parts', 'partial results'])(
    'a body that closes a datum with %s when the window is nearly full closes all of it, or nothing',
    async (kind) => {
      const one = task({
        name: 'one',
        flows: { to: reduce('f64', 'sum') },
        body: ({ to }) => void to[0]++,
      });
      const outcomes: string[] = [];
      const waits = new Set<number>();
      for (let left = 0; left < 7; left++)
        await onMachine({ ...options, window: 4, overflow: 12 }, async (runtime) => {
          const datum = runtime.data(new Float64Array(4));
          const other = runtime.data(new Float64Array(1));
          const fills = Array.from({ length: 4 }, (_, i) => i);
          await soon(
            runtime,
            runtime.run((graph) => {
              if (kind === 'parts')
                for (const i of fills)
                  graph.insert(fill, { to: datum.part(i, 1), count: 1, value: 1 });
              else for (const _ of fills) graph.insert(one, { to: datum });
            }),
          );
          let outcome = 'closed';
          const idle = script('idle', () => {});
          await soon(
            runtime,
            runtime.run((graph) => {
              const close = script('close', () => {
                const { tasks, room } = runtime.engine;
                while (tasks.live < room.limit - left) graph.insert(idle, { of: other });
                try {
                  datum.close();
                  const { waiting } = runtime.engine.deferred;
                  waits.add(waiting);
                  const told =
                    waiting === 1 ? '1 closed datum keeps' : `${waiting} closed data keep`;
                  if (waiting > 0) expect(runtime.engine.explain()).toContain(told);
                } catch (error) {
                  outcome = (error as HeadraceError).code;
                }
              });
              graph.insert(close, { of: other });
            }),
          );
          outcomes.push(outcome);
          if (outcome !== 'closed')
            expect([...(await datum.read())]).toEqual(
              kind === 'parts' ? [1, 1, 1, 1] : [4, 0, 0, 0],
            );
          // Closes that had no row get one before the engine is quiet.
          await nothingLeft(runtime, [datum, other]);
        });
      expect(outcomes).toEqual(['ERR_WINDOW_FULL', ...new Array(6).fill('closed')]);
      expect(waits.size).toBeGreaterThan(1);
    },
  );

  it('more bodies than may be under way at once all get their turn', async () => {
    await onMachine(options, async (runtime) => {
      let ran = 0;
      const slow = task({
        name: 'slow',
        flows: {},
        body: async () => {
          // Others start meanwhile; nothing depends on how many.
          await pause(1);
          ran++;
        },
      });
      const report = await soon(
        runtime,
        runtime.run((graph) => {
          for (let i = 0; i < 500; i++) graph.insert(slow, {}, { priority: (i % 5) - 2 });
        }),
      );
      expect([ran, report.tasks]).toEqual([500, 500]);
    });
  });

  it('progress goes from inserting to everything completed, and events tell once how it ended', async () => {
    await onMachine(options, async (runtime) => {
      const events: string[] = [];
      const seen: RunProgress[] = [];
      const datum = runtime.data(new Float64Array(COUNT));
      const run = runtime.run(
        async (graph) => {
          for (let i = 0; i < 300; i++) {
            graph.insert(delay, { of: datum, microseconds: 500 });
            // Progress is told by a timer: the loop lets it come.
            if (i % 50 === 0) await pause(1);
          }
        },
        { name: 'named' },
      );
      expect(run.progress.inserting).toBe(true);
      run.events.on('progress', (progress) => seen.push(progress));
      run.events.on('end', (report) => events.push(`end of ${report.tasks}`));
      run.events.on('error', () => events.push('error'));
      const report = await soon(runtime, run);
      expect(events).toEqual(['end of 300']);
      expect(run.progress).toEqual({ inserted: 300, completed: 300, inserting: false });
      expect(seen.length).toBeGreaterThanOrEqual(2);
      // One at once, then at most one in 50 ms of a clock of whole milliseconds, and one at the end.
      expect(seen.length).toBeLessThanOrEqual(report.seconds / 0.049 + 2);
      for (let i = 1; i < seen.length; i++) {
        expect(seen[i].completed).toBeGreaterThanOrEqual(seen[i - 1].completed);
        expect(seen[i].completed).toBeLessThanOrEqual(seen[i].inserted);
      }
      expect(seen.at(-1)).toMatchObject(run.progress);
      // 300 tasks of half a millisecond one after the other.
      expect(report.seconds).toBeGreaterThan(0.15);
      expect(report.devices[0].busySeconds).toBeGreaterThan(0.14);
      expect(report.devices[0].busySeconds).toBeLessThan(report.seconds * 1.2 + 0.05);
      await nothingLeft(runtime, [datum]);
    });
  });

  it('priorities order tasks that are ready at the same time', async () => {
    await onMachine({ ...options, workers: 1 }, async (runtime) => {
      const order: number[] = [];
      const gate = runtime.data(new Float64Array(COUNT));
      const log = task({
        name: 'log',
        flows: { gate: read('f64') },
        params: { id: 'i32' },
        body: ({ id }) => void order.push(id),
      });
      let open = (): void => {};
      const opened = new Promise<void>((resolve) => {
        open = resolve;
      });
      const hold = script('hold', () => opened);
      await soon(
        runtime,
        runtime.run((graph) => {
          // All become ready when the gate opens; the first 64 start at once, the rest is ordered.
          graph.insert(hold, { of: gate });
          for (let i = 0; i < 300; i++) {
            graph.insert(log, { gate, id: i }, { priority: i >= 200 ? 5 : i >= 100 ? 0 : -5 });
          }
          open();
        }),
      );
      expect(order).toHaveLength(300);
      const later = order.slice(64);
      const ranks = later.map((id) => (id >= 200 ? 0 : id >= 100 ? 1 : 2));
      expect(ranks).toEqual([...ranks].sort((a, b) => a - b));
      await nothingLeft(runtime, [gate]);
    });
  });

  it('ten thousand tasks without data on one executor, with a trace of their waits', async () => {
    await onMachine({ ...options, checked: false, window: 256, runAhead: 8 }, async (runtime) => {
      const report = await soon(
        runtime,
        runtime.run((graph) => {
          for (let i = 0; i < 10_000; i++) graph.insert(spin, { microseconds: 0 });
        }),
      );
      expect(report.tasks).toBe(10_000);
      expect(Object.keys(report.waits).sort()).toEqual([
        'copy',
        'credit',
        'memory',
        'receive',
        'slot',
      ]);
    });
  });
});
