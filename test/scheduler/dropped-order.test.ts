// A dropped task, whose run was cancelled or failed, passes its place in the order on: its successors follow its
// predecessors. Each program has a writer or reader of a healthy run that is not over, then a dropped task of another
// run, and then a third task.
import { describe, expect, it } from 'vitest';
import {
  type Datum,
  type Run,
  type Runtime,
  type RuntimeOptions,
  read,
  type TaskHandle,
  task,
  write,
} from '../../index.js';
import {
  HOSTS,
  MACHINES,
  nothingLeft,
  onMachine as onAnyMachine,
  soon,
} from '../support/machines.js';
import { copy, delay, fail, fill, look, script, spin } from '../support/tasks.js';

const COUNT = 64;

/** A promise that the test resolves. */
function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  gates.push(open);
  return { opened, open };
}

const gates: (() => void)[] = [];

/** A test on a machine; bodies that still wait when it fails go on, so that the machine can be closed. */
async function onMachine(
  options: RuntimeOptions,
  test: (runtime: Runtime) => Promise<void>,
): Promise<void> {
  await onAnyMachine(options, async (runtime) => {
    try {
      await test(runtime);
    } finally {
      for (const open of gates.splice(0)) open();
    }
  });
}

/** Lets the engine do everything that it can do now. */
async function turns(n = 20): Promise<void> {
  for (let i = 0; i < n; i++) await new Promise((go) => setImmediate(go));
}

async function codeOf(promise: PromiseLike<unknown>): Promise<string> {
  return Promise.resolve(promise).then(
    () => '',
    (error: { code?: string }) => error.code ?? String(error),
  );
}

type Body = (values: Float64Array) => void | Promise<void>;
const reads = (name: string, body: (values: Readonly<Float64Array>) => void | Promise<void>) =>
  task({ name, flows: { of: read('f64') }, body: ({ of }) => body(of) });
const writes = (name: string, body: Body) =>
  task({ name, flows: { to: write('f64') }, body: ({ to }) => body(to) });
const acts = (name: string, body: () => void | Promise<void>) =>
  task({ name, flows: {}, body: () => body() });

/** A run of one task on `x` that is cancelled before its task could begin. */
function dropped(runtime: Runtime, x: Datum<'f64'>): Run {
  const run = runtime.run((graph) => void graph.insert(fill, { to: x, count: COUNT, value: -1 }));
  run.done.catch(() => {});
  run.cancel();
  return run;
}

describe.each(HOSTS)('on $name', ({ options }) => {
  it('two values that are set with a dropped writer between them are set in their order', async () => {
    await onMachine(options, async (runtime) => {
      const x = runtime.data(new Float64Array(COUNT), { name: 'x' });
      const { opened, open } = gate();
      const seen: number[] = [];
      const slow = reads('slow', async (of) => {
        await opened;
        seen.push(of[0] as number);
      });
      const healthy = runtime.run((graph) => void graph.insert(slow, { of: x }));
      await turns();
      const one = x.set(new Float64Array(COUNT).fill(1));
      await expect(dropped(runtime, x)).rejects.toMatchObject({ code: 'ERR_ABORTED' });
      const two = x.set(new Float64Array(COUNT).fill(2));
      await turns();
      open();
      await soon(runtime, Promise.all([healthy, one, two]));
      expect(seen).toEqual([0]);
      expect(await x.read()).toEqual(new Float64Array(COUNT).fill(2));
      await nothingLeft(runtime, [x]);
    });
  });

  it('a writer behind a dropped one waits for the bodies that read or write the older value', async () => {
    await onMachine(options, async (runtime) => {
      const x = runtime.data(new Float64Array(COUNT), { name: 'x' });
      const y = runtime.data(new Float64Array(COUNT), { name: 'y' });
      const { opened, open } = gate();
      const log: string[] = [];
      const reader = reads('reader', async (of) => {
        await opened;
        log.push(`reader saw ${of[0]}`);
      });
      const writer = script('writer', async (of) => {
        of[0] = 5;
        await opened;
        of[1] = 6;
        log.push('writer ended');
      });
      const healthy = runtime.run((graph) => {
        graph.insert(reader, { of: x });
        graph.insert(writer, { of: y });
      });
      await turns();
      dropped(runtime, x);
      dropped(runtime, y);
      const later = runtime.run((graph) => {
        const over = writes('over', (to) => {
          to.fill(9);
          log.push('overwritten');
        });
        graph.insert(over, { to: x });
        graph.insert(over, { to: y });
      });
      await turns();
      expect(log).toEqual([]);
      open();
      await soon(runtime, Promise.all([healthy, later]));
      expect(log.slice(0, 2).sort()).toEqual(['reader saw 0', 'writer ended']);
      expect(await x.read()).toEqual(new Float64Array(COUNT).fill(9));
      expect(await y.read()).toEqual(new Float64Array(COUNT).fill(9));
      await nothingLeft(runtime, [x, y]);
    });
  });

  it('a read behind a dropped writer is answered after the tasks before that writer are over', async () => {
    await onMachine(options, async (runtime) => {
      const x = runtime.data(new Float64Array(COUNT), { name: 'x' });
      const { opened, open } = gate();
      let isOver = false;
      const writer = script('writer', async (of) => {
        of.fill(1, 0, COUNT / 2);
        await opened;
        of.fill(1);
        isOver = true;
      });
      const healthy = runtime.run((graph) => void graph.insert(writer, { of: x }));
      await turns();
      const before = x.read();
      dropped(runtime, x);
      let answer: string | undefined;
      const after = codeOf(x.read()).then((code) => {
        expect(isOver).toBe(true);
        answer = code;
      });
      await turns();
      expect(answer).toBeUndefined();
      open();
      await soon(runtime, healthy);
      expect(await soon(runtime, before)).toEqual(new Float64Array(COUNT).fill(1));
      await soon(runtime, after);
      expect(answer).toBe('ERR_DATUM_POISONED');
      await nothingLeft(runtime, [x]);
    });
  });

  it('a datum that is closed behind a dropped task keeps its memory while a healthy body uses it', async () => {
    await onMachine(options, async (runtime) => {
      const x = runtime.data(new Float64Array(COUNT).fill(3), { name: 'x' });
      const { opened, open } = gate();
      const first = acts('first', () => opened);
      const user = script('user', async (of) => {
        expect(of[0]).toBe(3);
        of.fill(4);
        await new Promise((go) => setImmediate(go));
        of.fill(5);
      });
      // The user is not even begun: nothing is pinned yet.
      const healthy = runtime.run((graph) => {
        const handle = graph.insert(first, {});
        graph.insert(user, { of: x }, { after: [handle] });
      });
      await turns();
      dropped(runtime, x);
      x.close();
      await turns();
      const y = runtime.data(new Float64Array(COUNT).fill(7), { name: 'y' });
      expect(y.row).not.toBe(x.row);
      open();
      await soon(runtime, healthy);
      expect(await y.read()).toEqual(new Float64Array(COUNT).fill(7));
      await nothingLeft(runtime, [y]);
    });
  });

  it.each(['before', 'after'])(
    'a task inserted %s the drop follows the predecessors of the dropped task',
    async (when) => {
      await onMachine(options, async (runtime) => {
        const { opened, open } = gate();
        const log: string[] = [];
        const slow = acts('slow', async () => {
          await opened;
          log.push('slow');
        });
        const never = acts('never', () => void log.push('never'));
        const last = acts('last', () => void log.push('last'));
        let handle: TaskHandle | undefined;
        const healthy = runtime.run((graph) => {
          handle = graph.insert(slow, {});
        });
        await turns();
        // Two dropped tasks, one behind the other.
        const cancelled = runtime.run((graph) => {
          const one = graph.insert(never, {}, { after: [handle as TaskHandle] });
          handle = graph.insert(never, {}, { after: [one] });
        });
        cancelled.done.catch(() => {});
        if (when === 'after') cancelled.cancel();
        const later = runtime.run((graph) => {
          graph.insert(last, {}, { after: [handle as TaskHandle] });
        });
        if (when === 'before') cancelled.cancel();
        expect(await codeOf(soon(runtime, cancelled))).toBe('ERR_ABORTED');
        await turns();
        expect(log).toEqual([]);
        open();
        await soon(runtime, Promise.all([healthy, later]));
        expect(log).toEqual(['slow', 'last']);
      });
    },
  );

  it('many dropped readers, some of which begin a list anew, hold back a writer', async () => {
    await onMachine(options, async (runtime) => {
      const x = runtime.data(new Float64Array(COUNT), { name: 'x' });
      const { opened, open } = gate();
      const log: string[] = [];
      const slow = acts('slow', async () => {
        await opened;
        log.push('slow');
      });
      let handle: TaskHandle | undefined;
      const healthy = runtime.run((graph) => {
        handle = graph.insert(slow, {});
      });
      const cancelled = runtime.run((graph) => {
        const look = reads('look', () => void log.push('never'));
        for (let i = 0; i < 300; i++)
          graph.insert(look, { of: x }, { after: [handle as TaskHandle] });
      });
      cancelled.done.catch(() => {});
      await turns();
      cancelled.cancel();
      const later = runtime.run((graph) => {
        const over = writes('over', (to) => {
          to.fill(1);
          log.push('over');
        });
        graph.insert(over, { to: x });
      });
      await turns();
      expect(log).toEqual([]);
      open();
      await soon(runtime, Promise.all([healthy, later]));
      expect(log).toEqual(['slow', 'over']);
      await nothingLeft(runtime, [x]);
    });
  });
});

describe.each(MACHINES)('on $name', ({ options, gpus }) => {
  it.each(['before', 'after'])(
    'a task inserted %s the drop follows native tasks that were issued',
    async (when) => {
      await onMachine({ ...options, workers: 2 }, async (runtime) => {
        const x = runtime.data(new Float64Array(COUNT), { name: 'x' });
        const device = gpus > 0 ? 0 : ('host' as const);
        const healthy = runtime.run((graph) => {
          for (let i = 0; i < 10; i++)
            graph.insert(delay, { of: x, microseconds: 4000 }, { device });
        });
        // Inserted and issued, or ready, but cancelled before its turn: then it is not even known to the queue.
        let handle: TaskHandle | undefined;
        const cancelled = runtime.run((graph) => {
          const peek = reads('peek', () => {});
          handle = graph.insert(peek, { of: x });
        });
        cancelled.done.catch(() => {});
        let completed = -1;
        const last = acts('last', () => {
          completed = healthy.progress.completed;
        });
        if (when === 'after') {
          await turns(2);
          cancelled.cancel();
          await turns(2);
        }
        const later = runtime.run(
          (graph) => void graph.insert(last, {}, { after: [handle as TaskHandle] }),
        );
        if (when === 'before') cancelled.cancel();
        await soon(runtime, Promise.all([later, healthy]));
        expect(completed).toBe(10);
        await nothingLeft(runtime, [x]);
      });
    },
  );

  it('successors of a task that fails before it is issued follow the predecessors of that task', async () => {
    await onMachine({ ...options, workers: 2 }, async (runtime) => {
      const x = runtime.data(new Float64Array(COUNT), { name: 'x' });
      const bad = runtime.data('f64', COUNT, { name: 'bad' });
      const device = gpus > 0 ? 0 : ('host' as const);
      await codeOf(dropped(runtime, bad));
      const healthy = runtime.run((graph) => {
        for (let i = 0; i < 10; i++) graph.insert(delay, { of: x, microseconds: 4000 }, { device });
      });
      let handle: TaskHandle | undefined;
      const failing = runtime.run((graph) => {
        const both = task({
          name: 'both',
          flows: { x: read('f64'), bad: read('f64') },
          kernel: 'spin',
          params: { microseconds: 'f64' },
        });
        handle = graph.insert(both, { x, bad, microseconds: 1 });
      });
      expect(await codeOf(soon(runtime, failing))).toBe('ERR_DATUM_POISONED');
      let completed = -1;
      const last = acts('last', () => {
        completed = healthy.progress.completed;
      });
      await soon(
        runtime,
        runtime.run((graph) => void graph.insert(last, {}, { after: [handle as TaskHandle] })),
      );
      expect(completed).toBe(10);
      await soon(runtime, healthy);
      await nothingLeft(runtime, [x, bad]);
    });
  });

  it('explain gives the wait of a dropped task', async () => {
    await onMachine(options, async (runtime) => {
      const { opened, open } = gate();
      const x = runtime.data(new Float64Array(COUNT), { name: 'x' });
      const slow = script('slow', () => opened);
      const healthy = runtime.run((graph) => void graph.insert(slow, { of: x }));
      await turns();
      const cancelled = runtime.run((graph) => void graph.insert(look, { at: x, microseconds: 1 }));
      cancelled.done.catch(() => {});
      cancelled.cancel();
      expect(runtime.explain()).toMatch(
        /look #\d+: dropped for .*, keeps its place behind a predecessor/,
      );
      open();
      await soon(runtime, healthy);
      await soon(
        runtime,
        runtime.run((graph) => void graph.insert(spin, { microseconds: 1 })),
      );
      expect(runtime.explain()).not.toMatch(/look #/);
      await nothingLeft(runtime, [x]);
    });
  });
});

describe.each(MACHINES)('values after a cancelled writer on $name', ({ options, gpus }) => {
  const device = gpus > 0 ? 0 : ('host' as const);
  const filled = (value: number) => new Float64Array(COUNT).fill(value);

  it('a value that is set behind a cancelled writer is the value, whichever is seen to end first', async () => {
    await onMachine({ ...options, workers: 2 }, async (runtime) => {
      const busy = runtime.data(filled(0), { name: 'busy' });
      for (let round = 0; round < 20; round++) {
        const x = runtime.data(filled(0), { name: 'x' });
        // The writer is issued, but does not begin before it is cancelled; on a GPU, `set` does not wait for it.
        const run = runtime.run((graph) => {
          graph.insert(delay, { of: busy, microseconds: 2000 }, { device });
          graph.insert(fill, { to: x, count: COUNT, value: 1 }, { device });
        });
        run.done.catch(() => {});
        await turns(round % 3);
        run.cancel();
        const set = x.set(filled(2));
        const other = runtime.run((graph) => void graph.insert(look, { at: x, microseconds: 1 }));
        await soon(runtime, Promise.all([set, other]));
        await codeOf(run);
        await soon(runtime, runtime.engine.quiet());
        expect(await x.read()).toEqual(filled(2));
        await busy.restore();
        x.close();
      }
      await nothingLeft(runtime, [busy]);
    });
  });

  it('a run that overwrites a datum without a value may read it at once', async () => {
    await onMachine(options, async (runtime) => {
      const x = runtime.data(filled(0), { name: 'x' });
      await codeOf(dropped(runtime, x));
      expect(await codeOf(x.read())).toBe('ERR_DATUM_POISONED');
      // All are issued before the first one is over.
      const run = runtime.run((graph) => {
        graph.insert(fill, { to: x, count: COUNT, value: 3 }, { device });
        for (let i = 0; i < 5; i++) graph.insert(delay, { of: x, microseconds: 10 }, { device });
      });
      expect((await soon(runtime, run)).tasks).toBe(6);
      expect(await x.read()).toEqual(filled(3));
      await nothingLeft(runtime, [x]);
    });
  });

  it('tasks that were inserted before a dropped writer read the value from before it', async () => {
    await onMachine(options, async (runtime) => {
      const x = runtime.data(filled(4), { name: 'x' });
      const y = runtime.data('f64', COUNT, { name: 'y' });
      const { opened, open } = gate();
      const first = acts('first', () => opened);
      const healthy = runtime.run((graph) => {
        const handle = graph.insert(first, {});
        graph.insert(copy, { to: y, from: x, bytes: COUNT * 8 }, { device, after: [handle] });
      });
      await turns();
      await codeOf(dropped(runtime, x));
      open();
      await soon(runtime, healthy);
      expect(await y.read()).toEqual(filled(4));
      expect(await codeOf(x.read())).toBe('ERR_DATUM_POISONED');
      await nothingLeft(runtime, [x, y]);
    });
  });

  it('a later run does not resolve with a value that a cancelled run should have replaced, unless it is restored', async () => {
    await onMachine(options, async (runtime) => {
      const x = runtime.data(filled(5), { name: 'x' });
      const y = runtime.data(filled(0), { name: 'y' });
      const { opened, open } = gate();
      const holds = acts('holds', () => opened);
      const run = runtime.run((graph) => {
        const handle = graph.insert(holds, {});
        graph.insert(delay, { of: x, microseconds: 1 }, { device, after: [handle] });
      });
      await turns();
      run.cancel();
      const later = runtime.run((graph) => {
        graph.insert(copy, { to: y, from: x, bytes: COUNT * 8 }, { device });
      });
      await turns();
      expect(later.progress.completed).toBe(0);
      open();
      expect(await codeOf(soon(runtime, later))).toBe('ERR_DATUM_POISONED');
      expect(await codeOf(soon(runtime, run))).toBe('ERR_ABORTED');
      await expect(x.read()).rejects.toThrow(/restore\(\)/);
      const before = x.read().catch((error: { code: string }) => error.code);
      const restored = x.restore();
      const after = x.read();
      expect(await before).toBe('ERR_DATUM_POISONED');
      await restored;
      expect(await after).toEqual(filled(5));
      await x.restore();
      expect(await x.read()).toEqual(filled(5));
      await nothingLeft(runtime, [x, y]);
    });
  });

  it('a value that a task failed to replace cannot be restored', async () => {
    await onMachine(options, async (runtime) => {
      const x = runtime.data(filled(6), { name: 'x' });
      const never = runtime.data('f64', COUNT, { name: 'never' });
      const fails = runtime.run((graph) => void graph.insert(fail, { of: x, code: 1 }));
      expect(await codeOf(soon(runtime, fails))).toBe('ERR_TASK_FAILED');
      await codeOf(dropped(runtime, x));
      expect(await codeOf(x.restore())).toBe('ERR_DATUM_POISONED');
      expect(await codeOf(never.restore())).toBe('ERR_NEVER_WRITTEN');
      await codeOf(dropped(runtime, never));
      expect(await codeOf(never.restore())).toBe('ERR_DATUM_POISONED');
      await x.set(filled(7));
      expect(await x.read()).toEqual(filled(7));
      await nothingLeft(runtime, [x, never]);
      await expect(x.restore()).rejects.toMatchObject({ code: 'ERR_DATUM_CLOSED' });
    });
  });
});
