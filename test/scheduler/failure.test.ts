// Failures and aborts: the run rejects with task, stage and cause, its memory is freed, other data stay readable, and
// the runtime stays usable. On every machine.
import { describe, expect, it } from 'vitest';
import {
  type Datum,
  HeadraceError,
  type Run,
  type Runtime,
  read,
  readWrite,
  type TaskHandle,
  task,
  write,
} from '../../index.js';
import { hold, withGate } from '../support/held-tasks.js';
import {
  HOSTS,
  MACHINES,
  nothingLeft,
  nothingPinned,
  onMachine,
  soon,
} from '../support/machines.js';
import { add, copy, delay, fail, fill, look, script, spin } from '../support/tasks.js';

const COUNT = 64;

async function rejection(runtime: Runtime, run: PromiseLike<unknown>): Promise<HeadraceError> {
  try {
    await soon(runtime, run);
  } catch (error) {
    if (error instanceof HeadraceError) return error;
    throw error;
  }
  throw new Error('the run did not reject');
}

/** The runtime runs a graph as if nothing had happened. */
async function stillWorks(runtime: Runtime): Promise<void> {
  const datum = runtime.data('f64', COUNT, { name: 'afterwards' });
  const one = runtime.data(new Float64Array(COUNT).fill(1), { name: 'one' });
  const report = await soon(
    runtime,
    runtime.run((graph) => {
      graph.insert(fill, { to: datum, count: COUNT, value: 1 });
      for (let i = 0; i < 20; i++) graph.insert(add, { to: datum, from: one, count: COUNT });
    }),
  );
  expect(report.tasks).toBe(21);
  expect(await datum.read()).toEqual(new Float64Array(COUNT).fill(21));
  datum.close();
  one.close();
}

/** The next turn of the event loop. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe.each(MACHINES)('on $name', ({ options, gpus }) => {
  it('a kernel that returns a code fails the run with task, stage, device and code', async () => {
    await onMachine(options, async (runtime) => {
      const good = runtime.data(new Float64Array(COUNT).fill(5), { name: 'good' });
      const bad = runtime.data(new Float64Array(COUNT), { name: 'bad' });
      const run = runtime.run((graph) => {
        graph.insert(look, { at: good, microseconds: 10 });
        graph.insert(fail, { of: bad, code: 17 });
        for (let i = 0; i < 50; i++) graph.insert(delay, { of: bad, microseconds: 10 });
      });
      const error = await rejection(runtime, run);
      expect(error.code).toBe('ERR_TASK_FAILED');
      expect(error.message).toMatch(/^task fail #\d+ failed: its kernel returned 17$/);
      expect(error.details).toMatchObject({ stage: 'exec', kernelCode: 17 });
      expect(error.details.device).toMatch(gpus > 0 ? /GPU/ : /host/);
      await nothingPinned(runtime);
      expect(await good.read()).toEqual(new Float64Array(COUNT).fill(5));
      await expect(bad.read()).rejects.toMatchObject({
        code: 'ERR_DATUM_POISONED',
        details: { datum: 'bad' },
      });
      await stillWorks(runtime);
      await nothingLeft(runtime, [good, bad]);
    });
  });

  it('a body that throws fails the run with its error as cause', async () => {
    await onMachine(options, async (runtime) => {
      const cause = new TypeError('no such thing');
      const bad = runtime.data(new Float64Array(COUNT), { name: 'bad' });
      const good = runtime.data(new Float64Array(COUNT).fill(5), { name: 'good' });
      const throwing = script('throwing', () => {
        throw cause;
      });
      let ranLater = 0;
      const later = script('later', () => void ranLater++);
      const run = runtime.run((graph) => {
        graph.insert(delay, { of: bad, microseconds: 50 });
        graph.insert(throwing, { of: bad });
        for (let i = 0; i < 10; i++) graph.insert(later, { of: bad });
        graph.insert(look, { at: good, microseconds: 10 });
      });
      const error = await rejection(runtime, run);
      expect(error.code).toBe('ERR_TASK_FAILED');
      expect(error.message).toMatch(/^task throwing #\d+ failed: no such thing$/);
      expect(error.details).toMatchObject({ stage: 'exec', cause });
      expect(error.cause).toBe(cause);
      expect(ranLater).toBe(0);
      await expect(bad.read()).rejects.toMatchObject({ code: 'ERR_DATUM_POISONED' });
      expect(await good.read()).toEqual(new Float64Array(COUNT).fill(5));
      await stillWorks(runtime);
      await nothingLeft(runtime, [bad, good]);
    });
  });

  it('an asynchronous body that rejects fails the run; so does one that throws nothing', async () => {
    await onMachine(options, async (runtime) => {
      const datum = runtime.data(new Float64Array(COUNT), { name: 'datum' });
      for (const [thrown, text] of [
        [new Error('later'), /failed: later$/],
        [undefined, /failed: /],
        ['a string', /failed: a string$/],
      ] as const) {
        const rejecting = script('rejecting', async () => {
          await turn();
          throw thrown;
        });
        const error = await rejection(
          runtime,
          runtime.run((graph) => void graph.insert(rejecting, { of: datum })),
        );
        expect(error.code).toBe('ERR_TASK_FAILED');
        expect(error.message).toMatch(text);
        await datum.set(new Float64Array(COUNT));
      }
      await stillWorks(runtime);
      await nothingLeft(runtime, [datum]);
    });
  });

  it('a HeadraceError thrown by a body keeps its code', async () => {
    await onMachine(options, async (runtime) => {
      const datum = runtime.data(new Float64Array(COUNT));
      const throwing = script('throwing', () => {
        throw new HeadraceError('ERR_MINE', 'my own', { limit: 3 });
      });
      const error = await rejection(
        runtime,
        runtime.run((graph) => void graph.insert(throwing, { of: datum })),
      );
      expect(error).toMatchObject({ code: 'ERR_MINE', details: { limit: 3, stage: 'exec' } });
      await nothingLeft(runtime, [datum]);
    });
  });

  it('kernels that do not take the arguments report it', async () => {
    await onMachine(options, async (runtime) => {
      const datum = runtime.data(new Float64Array(COUNT), { name: 'datum' });
      const wrong = task({ name: 'wrong', flows: { of: readWrite('f64') }, kernel: 'fill_f64' });
      const error = await rejection(
        runtime,
        runtime.run((graph) => void graph.insert(wrong, { of: datum })),
      );
      expect(error.code).toBe('ERR_BAD_ARGUMENTS');
      expect(error.message).toMatch(/wrong #\d+ does not take 1 flows and 0 parameters/);
      const beyond = runtime.run(
        (graph) => void graph.insert(fill, { to: datum, count: 1e9, value: 1 }),
      );
      await rejection(runtime, beyond);
      await stillWorks(runtime);
      await nothingLeft(runtime, [datum]);
    });
  });

  it('the first of several failures is reported, and each run reports only its own', async () => {
    await onMachine(options, async (runtime) => {
      const data = Array.from({ length: 6 }, (_, i) =>
        runtime.data(new Float64Array(COUNT), { name: `d${i}` }),
      );
      const failing = runtime.run((graph) => {
        for (const [i, of] of data.slice(0, 4).entries()) graph.insert(fail, { of, code: 100 + i });
      });
      const fine = runtime.run((graph) => {
        for (let i = 0; i < 30; i++)
          graph.insert(delay, { of: data[4 + (i % 2)], microseconds: 20 });
      });
      const error = await rejection(runtime, failing);
      expect(error.details.kernelCode).toBeGreaterThanOrEqual(100);
      expect((await soon(runtime, fine)).tasks).toBe(30);
      for (const datum of data.slice(4))
        expect(await datum.read()).toEqual(new Float64Array(COUNT));
      await nothingLeft(runtime, data);
    });
  });

  it('abort by signal: queued tasks are dropped, running ones end, memory comes back, data keep whole values', async () => {
    await onMachine(options, async (runtime) => {
      const tiles = Array.from({ length: 6 }, (_, i) =>
        runtime.data(new Float64Array(COUNT), { name: `tile ${i}` }),
      );
      const one = runtime.data(new Float64Array(COUNT).fill(1), { name: 'one' });
      for (let round = 0; round < 5; round++) {
        const controller = new AbortController();
        const reason = new Error(`reason ${round}`);
        // In the middle of the run, however fast the machine is.
        const stop = script('stop', async () => {
          await new Promise((go) => setImmediate(go));
          controller.abort(reason);
        });
        const run = runtime.run(
          (graph) => {
            for (let i = 0; i < 3000; i++) {
              if (i === round * 600) graph.insert(stop, { of: tiles[i % 6] });
              graph.insert(delay, { of: tiles[i % 6], microseconds: 20 });
              graph.insert(add, { to: tiles[i % 6], from: one, count: COUNT });
            }
          },
          { signal: controller.signal },
        );
        const error = await rejection(runtime, run);
        expect(error).toMatchObject({ name: 'AbortError', code: 'ERR_ABORTED' });
        expect(error.cause).toBe(reason);
        expect(error.message).toContain(`reason ${round}`);
        expect(run.progress.completed).toBe(run.progress.inserted);
        await nothingPinned(runtime);
        // Cancelled updates change nothing: all elements of a tile tell the same number of additions. But the number is
        // not the one of the program, so it is no value until the program says so.
        // The tasks behind the one that stops are dropped for sure.
        const behind = tiles[(round * 600) % 6];
        await expect(behind?.read()).rejects.toMatchObject({ code: 'ERR_DATUM_POISONED' });
        for (const tile of tiles) {
          await tile.restore();
          const values = await tile.read();
          expect(values).toEqual(new Float64Array(COUNT).fill(values[0]));
          expect(Number.isInteger(values[0])).toBe(true);
        }
      }
      await stillWorks(runtime);
      await nothingLeft(runtime, [...tiles, one]);
    });
  });

  it('abort drops queued commands that have not begun', async () => {
    await onMachine(options, async (runtime) => {
      const tile = runtime.data(new Float64Array(COUNT), { name: 'tile' });
      const one = runtime.data(new Float64Array(COUNT).fill(1), { name: 'one' });
      await withGate(runtime, async (gate, open) => {
        let first: TaskHandle | undefined;
        const run = runtime.run((graph) => {
          first = graph.insert(hold, { of: tile, gate });
          for (let i = 0; i < 6; i++) graph.insert(add, { to: tile, from: one, count: COUNT });
        });
        // The additions are queued behind a task that runs until the run is cancelled.
        const begins = async (): Promise<void> => {
          while (run.explain(first as TaskHandle).stage !== 'exec') await turn();
        };
        await soon(runtime, begins());
        run.cancel();
        open();
        await rejection(runtime, run);
      });
      await expect(tile.read()).rejects.toMatchObject({ code: 'ERR_DATUM_POISONED' });
      await tile.restore();
      expect((await tile.read())[0]).toBe(0);
      await nothingLeft(runtime, [tile, one]);
    });
  });

  it('abort while tasks wait for memory and for transfers', async () => {
    await onMachine(
      { ...options, gpuMemory: 3 * 512, window: 64, runAhead: 4 },
      async (runtime) => {
        const tiles = Array.from({ length: 10 }, () => runtime.data(new Float64Array(COUNT)));
        for (let round = 0; round < 8; round++) {
          const run = runtime.run(async (graph) => {
            // Until it is cancelled: `insert` and `space` throw then.
            for (let i = 0; ; i++) {
              graph.insert(add, {
                to: tiles[i % 10],
                from: tiles[(i * 3 + 1) % 10 === i % 10 ? (i + 1) % 10 : (i * 3 + 1) % 10],
                count: COUNT,
              });
              if (i % 20 === 0) await graph.space();
            }
          });
          setTimeout(() => run.cancel(), round * 2);
          const error = await rejection(runtime, run);
          expect(error).toMatchObject({ name: 'AbortError', message: 'the run was cancelled' });
          await nothingPinned(runtime);
          for (const tile of tiles) await tile.restore();
        }
        for (const tile of tiles) await tile.read();
        await stillWorks(runtime);
        await nothingLeft(runtime, tiles);
      },
    );
  });

  it('a datum written only by cancelled tasks cannot be read, until it is written again', async () => {
    await onMachine(options, async (runtime) => {
      const datum = runtime.data('f64', COUNT, { name: 'never' });
      const blocker = runtime.data(new Float64Array(COUNT));
      const run = runtime.run((graph) => {
        graph.insert(fail, { of: blocker, code: 1 });
        graph.insert(copy, { to: datum, from: blocker, bytes: COUNT * 8 });
      });
      await rejection(runtime, run);
      await expect(datum.read()).rejects.toMatchObject({ code: 'ERR_DATUM_POISONED' });
      // A task that reads it fails its run, naming the datum; one that writes all of it cures it.
      const reader = runtime.run(
        (graph) => void graph.insert(delay, { of: datum, microseconds: 1 }),
      );
      const error = await rejection(runtime, reader);
      expect(error).toMatchObject({ code: 'ERR_DATUM_POISONED', details: { datum: 'never' } });
      await soon(
        runtime,
        runtime.run((graph) => void graph.insert(fill, { to: datum, count: COUNT, value: 9 })),
      );
      expect(await datum.read()).toEqual(new Float64Array(COUNT).fill(9));
      await nothingLeft(runtime, [datum, blocker]);
    });
  });

  it('cancel before anything ran, twice, and after the end', async () => {
    await onMachine(options, async (runtime) => {
      const datum = runtime.data(new Float64Array(COUNT).fill(3), { name: 'datum' });
      const aborted = runtime.run(
        (graph) => void graph.insert(delay, { of: datum, microseconds: 1 }),
        {
          signal: AbortSignal.abort('never mind'),
        },
      );
      expect(await rejection(runtime, aborted)).toMatchObject({
        name: 'AbortError',
        message: expect.stringContaining('never mind'),
      });
      aborted.cancel();
      aborted.cancel('again');
      const done = runtime.run((graph) => void graph.insert(delay, { of: datum, microseconds: 1 }));
      await soon(runtime, done);
      done.cancel();
      expect((await soon(runtime, done)).tasks).toBe(1);
      expect(await datum.read()).toEqual(new Float64Array(COUNT).fill(3));
      await nothingLeft(runtime, [datum]);
    });
  });

  it('a program that throws fails its run and drops its tasks', async () => {
    await onMachine(options, async (runtime) => {
      const datum = runtime.data(new Float64Array(COUNT), { name: 'datum' });
      const mine = new Error('my program');
      const insertAndThrow = runtime.run((graph) => {
        graph.insert(delay, { of: datum, microseconds: 1 });
        throw mine;
      });
      await expect(soon(runtime, insertAndThrow)).rejects.toBe(mine);
      const asynchronous = runtime.run(async (graph) => {
        graph.insert(delay, { of: datum, microseconds: 1 });
        await Promise.resolve();
        throw mine;
      });
      await expect(soon(runtime, asynchronous)).rejects.toBe(mine);
      await stillWorks(runtime);
      await nothingLeft(runtime, [datum]);
    });
  });
});

describe.each(HOSTS)('errors met while inserting on $name', ({ options }) => {
  it('insert throws the error of a run that failed meanwhile', async () => {
    await onMachine(options, async (runtime) => {
      const datum = runtime.data(new Float64Array(COUNT));
      let thrown: unknown;
      const run = runtime.run(async (graph) => {
        graph.insert(fail, { of: datum, code: 3 });
        for (;;) {
          await graph.space();
          try {
            graph.insert(spin, { microseconds: 1 });
          } catch (error) {
            thrown = error;
            throw error;
          }
        }
      });
      const error = await rejection(runtime, run);
      expect(error.details.kernelCode).toBe(3);
      if (thrown !== undefined) expect(thrown).toBe(error);
      await nothingLeft(runtime, [datum]);
    });
  });

  it('a failed run reports through its event and leaves no unhandled rejection behind', async () => {
    await onMachine(options, async (runtime) => {
      const datum: Datum<'f64'> = runtime.data(new Float64Array(COUNT));
      const unhandled: unknown[] = [];
      const listener = (reason: unknown): void => void unhandled.push(reason);
      process.on('unhandledRejection', listener);
      const run: Run = runtime.run((graph) => void graph.insert(fail, { of: datum, code: 3 }));
      const errors: Error[] = [];
      await new Promise<void>((resolve) => {
        run.events.on('error', (error) => {
          errors.push(error);
          resolve();
        });
      });
      // Rejections that nobody handles are told at the end of the turn in which they happen.
      await turn();
      await turn();
      process.off('unhandledRejection', listener);
      expect(errors).toHaveLength(1);
      expect(unhandled).toEqual([]);
      await nothingLeft(runtime, [datum]);
    });
  });

  it('reads queued behind a failure reject, and earlier reads do not', async () => {
    await onMachine(options, async (runtime) => {
      const datum = runtime.data(new Float64Array(COUNT).fill(2), { name: 'datum' });
      const half = task({
        name: 'half',
        flows: { to: write('f64'), from: read('f64') },
        params: { code: 'i32' },
        kernel: 'fail',
      });
      const source = runtime.data(new Float64Array(COUNT));
      let before: Promise<Float64Array> | undefined;
      let after: Promise<Float64Array> | undefined;
      const run = runtime.run((graph) => {
        before = datum.read();
        graph.insert(half, { to: datum, from: source, code: 4 });
        after = datum.read();
        after.catch(() => {});
      });
      await rejection(runtime, run);
      expect(await before).toEqual(new Float64Array(COUNT).fill(2));
      await expect(after).rejects.toMatchObject({ code: 'ERR_DATUM_POISONED' });
      await nothingLeft(runtime, [datum, source]);
    });
  });
});
