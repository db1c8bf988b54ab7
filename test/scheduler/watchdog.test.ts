// The watchdog reports every wait without progress, also a wait that blocks the engine's thread.
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { type Graph, type RuntimeOptions, read, task } from '../../index.js';
import { nothingLeft, onMachine, soon } from '../support/machines.js';
import { add, delay, script } from '../support/tasks.js';

const written: string[] = [];
vi.mock('node:fs', async (original) => ({
  ...(await original<typeof import('node:fs')>()),
  writeSync: (fd: number, text: string) => {
    written.push(`${fd}: ${text}`);
    return text.length;
  },
}));

const one: RuntimeOptions = { workers: 1, hostMemory: '64MiB', watchdog: 0.05, window: 4 };

/** The next warning of the watchdog. */
function warning(): Promise<string> {
  return new Promise((resolve) => {
    const listen = (warning: Error): void => {
      if (warning.name !== 'HeadraceWatchdog') return;
      process.off('warning', listen);
      resolve(warning.message);
    };
    process.on('warning', listen);
  });
}

beforeEach(() => {
  written.length = 0;
});

describe('the watchdog', () => {
  it('writes to stderr itself while an insertion blocks the thread', async () => {
    await onMachine(one, async (runtime) => {
      const data = runtime.data(new Float64Array(4));
      await soon(
        runtime,
        runtime.run((graph) => {
          for (let i = 0; i < 6; i++) graph.insert(delay, { of: data, microseconds: 200_000 });
        }),
      );
      expect(written.join('')).toMatch(
        /^2: HeadraceWatchdog: nothing has completed for [\d.]+ ms:\n {2}delay #\d+: exec [\s\S]*the window of 4 tasks is full: 4 of [\s\S]*the thread is blocked in graph\.insert of class 'delay': waits for room in the window\n/,
      );
      await nothingLeft(runtime, [data]);
    });
  });

  it('is silent while tasks end, however long it takes in all', async () => {
    await onMachine({ ...one, watchdog: 0.5 }, async (runtime) => {
      const data = runtime.data(new Float64Array(4));
      await soon(
        runtime,
        runtime.run((graph) => {
          for (let i = 0; i < 60; i++) graph.insert(delay, { of: data, microseconds: 10_000 });
        }),
      );
      expect(written).toEqual([]);
      await nothingLeft(runtime, [data]);
    });
  });

  it('reports callers that await space() in vain', async () => {
    await onMachine(one, async (runtime) => {
      const data = runtime.data(new Float64Array(4));
      const other = runtime.data(new Float64Array(4));
      let open = (): void => {};
      const hold = script('hold', () => new Promise<void>((resolve) => (open = resolve)));
      let graph: Graph;
      const unfold = task({
        name: 'unfold',
        flows: {},
        body: async () => {
          for (let i = 0; i < 5; i++) graph.insert(add, { to: other, from: data, count: 4 });
          await graph.space();
        },
      });
      const said = warning();
      const run = runtime.run((g) => {
        graph = g;
        graph.insert(hold, { of: data });
        graph.insert(unfold, {});
      });
      const text = await soon(runtime, said);
      expect(text).toMatch(/hold #1: exec for .*, its JavaScript body has begun and has not ended/);
      expect(text).toMatch(/add #\d+: pending for/);
      expect(text).toContain('graph.space() is awaited in 1 place');
      open();
      await soon(runtime, run);
      await nothingLeft(runtime, [data, other]);
    });
  });

  it('reports that bodies wait for others to end', async () => {
    await onMachine({ ...one, window: 256 }, async (runtime) => {
      const gate = runtime.data(new Float64Array(4));
      const opens: (() => void)[] = [];
      let isOpen = false;
      const wait = task({
        name: 'wait',
        flows: { gate: read('f64') },
        body: () => (isOpen ? undefined : new Promise<void>((resolve) => void opens.push(resolve))),
      });
      const said = warning();
      const run = runtime.run((graph) => {
        for (let i = 0; i < 70; i++) graph.insert(wait, { gate });
      });
      await soon(runtime, said);
      expect(run.explain()).toContain('... 70 tasks in all');
      const last = run.explain(70 as never);
      expect(last.reason).toBe(
        'ready: waits until one of the JavaScript bodies under way has ended',
      );
      isOpen = true;
      for (const open of opens) open();
      await soon(runtime, run);
      await nothingLeft(runtime, [gate]);
    });
  });

  it('is silent after the runtime was closed, also if no turn has followed the last task', async () => {
    const patience = 0.3;
    for (let i = 0; i < 5; i++) {
      await onMachine({ ...one, watchdog: patience }, async (runtime) => {
        const data = runtime.data(new Float64Array(4));
        const { done } = runtime.run((graph) => {
          graph.insert(delay, { of: data, microseconds: 5000 });
        });
        for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
        // The task ends meanwhile, and a pass outside of the engine's turns sees it.
        const until = performance.now() + 10;
        while (performance.now() < until);
        runtime.engine.pump();
        await done;
      });
    }
    // What is said from here on is about a runtime that is closed.
    const said: string[] = [];
    const listen = ({ name, message }: Error): void => {
      if (name === 'HeadraceWatchdog') said.push(message);
    };
    process.on('warning', listen);
    // Nothing but time shows that nothing is said.
    await new Promise((resolve) => setTimeout(resolve, 3000 * patience));
    process.off('warning', listen);
    expect(said).toEqual([]);
  });

  it('can be switched off', async () => {
    await onMachine({ ...one, watchdog: 0 }, async (runtime) => {
      const data = runtime.data(new Float64Array(4));
      await soon(
        runtime,
        runtime.run((graph) => {
          for (let i = 0; i < 6; i++) graph.insert(delay, { of: data, microseconds: 50_000 });
        }),
      );
      expect(written).toEqual([]);
      await nothingLeft(runtime, [data]);
    });
    await expect(onMachine({ watchdog: -1 }, async () => {})).rejects.toMatchObject({
      code: 'ERR_OPTION',
    });
  });
});
