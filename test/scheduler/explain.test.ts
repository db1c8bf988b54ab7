// Questions at run time: the reason for which a task waits, and the holders of memory; the same table is in errors and
// warnings.
import { describe, expect, it } from 'vitest';
import {
  type Graph,
  HeadraceError,
  type Run,
  type Runtime,
  readWrite,
  type TaskExplanation,
  type TaskHandle,
  task,
} from '../../index.js';
import { hold, withGate } from '../support/held-tasks.js';
import { nothingLeft, onMachine, soon } from '../support/machines.js';
import { add, delay, fill, script } from '../support/tasks.js';

/** A task class whose body ends when it is told to, and a promise of its begin. */
function gate() {
  let open = (): void => {};
  let begun = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const begins = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const body = (): Promise<void> => {
    begun();
    return opened;
  };
  return { open, begins, cls: task({ name: 'gate', flows: { of: readWrite('f64') }, body }) };
}

/** Runs a program and asks while its first body holds everything up. */
async function whileHeld<T>(
  runtime: Runtime,
  insert: (graph: Graph, gateClass: ReturnType<typeof gate>['cls']) => T,
  ask: (run: Run, inserted: T) => void | Promise<void>,
): Promise<void> {
  const { open, begins, cls } = gate();
  let inserted: T | undefined;
  const run = runtime.run((graph) => {
    inserted = insert(graph, cls);
  });
  try {
    await begins;
    await ask(run, inserted as T);
  } finally {
    open();
    await soon(runtime, run);
  }
}

const one = { workers: 1 };

describe('run.explain', () => {
  it('names the predecessors of a task and where its data are', async () => {
    await onMachine(one, async (runtime) => {
      const a = runtime.data(new Float64Array(4), { name: 'a' });
      const b = runtime.data(new Float64Array(4), { name: 'b' });
      await whileHeld(
        runtime,
        (graph, cls) => [
          graph.insert(cls, { of: a }),
          graph.insert(add, { to: b, from: a, count: 4 }),
        ],
        (run, [first, second]) => {
          const waiting = run.explain(second);
          expect(waiting).toMatchObject({
            task: `add #${second}`,
            stage: 'pending',
            device: undefined,
            reason: 'waits for a predecessor',
            predecessors: [`gate #${first}`],
            data: [
              { datum: 'b', bytes: 32, mode: 'readWrite', copies: { host: 'owned' } },
              { datum: 'a', bytes: 32, mode: 'read', copies: { host: 'owned' } },
            ],
          });
          expect(waiting.seconds).toBeGreaterThanOrEqual(0);
          expect(waiting.seconds).toBeLessThan(3600);
          expect(waiting.text).toContain(`after gate #${first}`);
          const running = run.explain(first);
          expect(running).toMatchObject({ stage: 'exec', device: 'host', predecessors: [] });
          expect(running.reason).toBe('its JavaScript body has begun and has not ended');
          expect(run.explain()).toContain(`add #${second}: pending`);
        },
      );
      await nothingLeft(runtime, [a, b]);
    });
  });

  it('recognises finished tasks, and refuses values that are no task or belong to another run', async () => {
    await onMachine(one, async (runtime) => {
      const a = runtime.data(new Float64Array(4), { name: 'a' });
      let handle: TaskHandle | undefined;
      const run = runtime.run((graph) => {
        handle = graph.insert(fill, { to: a, count: 4, value: 1 });
      });
      await soon(runtime, run);
      expect(run.explain(handle as TaskHandle)).toMatchObject({ stage: 'done', data: [] });
      for (const wrong of [2 ** 40, 12.5, (handle as number) + 1000, Number.NaN]) {
        expect(() => run.explain(wrong as TaskHandle)).toThrow(
          expect.objectContaining({ code: 'ERR_UNKNOWN_TASK' }),
        );
      }
      await whileHeld(
        runtime,
        (graph, cls) => graph.insert(cls, { of: a }),
        (other, inserted) => {
          expect(other.explain(inserted).stage).toBe('exec');
          expect(() => run.explain(inserted)).toThrow(
            expect.objectContaining({ code: 'ERR_UNKNOWN_TASK' }),
          );
        },
      );
      await nothingLeft(runtime, [a]);
    });
  });

  it('gives the bytes for which a task waits on its device, and memory() names their holders', async () => {
    const bytes = 256 * 1024;
    const options = { workers: 1, gpus: 1, gpuMemory: 2 * bytes, checked: true };
    await onMachine(options, async (runtime) => {
      const data = ['x', 'y', 'z'].map((name) =>
        runtime.data(new Float64Array(bytes / 8), { name }),
      );
      const held: TaskExplanation[] = [];
      let memory: ReturnType<Runtime['memory']> = [];
      let handles: TaskHandle[] = [];
      await withGate(runtime, async (gate, open) => {
        const run = runtime.run((graph) => {
          // Three tasks of one datum each on a device for two; each holds its datum while it runs.
          handles = data.map((of) => graph.insert(hold, { of, gate }, { device: 0 }));
        });
        const look = async (): Promise<void> => {
          while (held.length === 0) {
            await new Promise((resolve) => setImmediate(resolve));
            const last = run.explain(handles[2]);
            if (last.stage === 'exec' || last.stage === 'done') return;
            if (!last.reason.startsWith('waits for 256 KiB')) continue;
            held.push(last);
            memory = runtime.memory();
          }
        };
        await soon(runtime, look());
        open();
        await soon(runtime, run);
      });
      expect(held).toHaveLength(1);
      expect(held[0]).toMatchObject({
        stage: 'alloc',
        device: 'emulated GPU 0',
        reason: 'waits for 256 KiB on emulated GPU 0, next to be served',
      });
      const gpu = memory[1];
      expect(gpu).toMatchObject({ name: 'emulated GPU 0', used: 2 * bytes, pinned: 2 * bytes });
      expect(gpu.waiting).toEqual([`hold #${handles[2]}`]);
      expect(gpu.copies.map(({ datum }) => datum).sort()).toEqual(['x', 'y']);
      for (const [i, copy] of gpu.copies.entries()) {
        expect(copy).toMatchObject({ bytes, state: 'owned' });
        expect(copy.pins).toBeGreaterThan(0);
        expect(copy.holder).toMatch(new RegExp(`^hold #${handles[copy.datum === 'x' ? 0 : 1]} `));
        expect(copy.seconds, String(i)).toBeGreaterThanOrEqual(0);
      }
      await nothingLeft(runtime, data);
    });
  });
});

describe('the same table', () => {
  it('ends an out-of-memory error, of data and of tasks', async () => {
    await onMachine({ ...one, hostMemory: 8 * 512 }, async (runtime) => {
      const data = Array.from({ length: 8 }, (_, i) =>
        runtime.data(new Float64Array(64), { name: `full ${i}` }),
      );
      const table = /host: 4\.00 KiB of 4\.00 KiB used[\s\S]*full 0 +512 B +owned +0 +- +-/;
      let error: unknown;
      try {
        runtime.data(new Float64Array(64), { name: 'one more' });
      } catch (caught) {
        error = caught;
      }
      expect(error).toBeInstanceOf(HeadraceError);
      expect((error as HeadraceError).message).toMatch(table);
      expect((error as HeadraceError).details.report).toMatch(table);
      const born = runtime.data('f64', 64, { name: 'born' });
      const run = runtime.run((graph) => {
        graph.insert(fill, { to: born, count: 64, value: 1 });
      });
      await expect(soon(runtime, run)).rejects.toThrow(table);
      await nothingLeft(runtime, [...data, born]);
    });
  });

  it('ends the error of an engine that is stuck', async () => {
    await onMachine(one, async (runtime) => {
      const a = runtime.data(new Float64Array(4), { name: 'a' });
      const { engine } = runtime;
      const run = runtime.run((graph) => {
        graph.insert(
          script('first', () => {}),
          { of: a },
        );
        const second = graph.insert(delay, { of: a, microseconds: 1 });
        // A defect: a predecessor is counted that does not exist.
        engine.tasks.pending[second & engine.tasks.mask]++;
      });
      const error = await soon(
        runtime,
        run.then(
          () => undefined,
          (reason: unknown) => reason as HeadraceError,
        ),
      );
      expect(error?.code).toBe('ERR_STALLED');
      expect(error?.message).toMatch(/delay #\d+: pending for [\s\S]*host: /);
      a.close();
    });
  });

  it('is in the warning of the watchdog', async () => {
    await onMachine({ ...one, watchdog: 0.05 }, async (runtime) => {
      const a = runtime.data(new Float64Array(4), { name: 'a' });
      const warnings: string[] = [];
      let heard = (): void => {};
      const warned = new Promise<void>((resolve) => {
        heard = resolve;
      });
      const listen = (warning: Error): void => {
        warnings.push(warning.message);
        heard();
      };
      process.on('warning', listen);
      try {
        await whileHeld(
          runtime,
          (graph, cls) => void graph.insert(cls, { of: a }),
          () => soon(runtime, warned),
        );
      } finally {
        process.off('warning', listen);
      }
      expect(warnings.join('\n')).toMatch(
        /nothing has completed for [\d.]+ ms:[\s\S]*gate #\d+: exec[\s\S]*a +32 B +owned +1 .*gate #\d+ \(exec\)/,
      );
      await nothingLeft(runtime, [a]);
    });
  });
});
