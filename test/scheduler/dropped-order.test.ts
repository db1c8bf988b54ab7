// A task that is dropped, because its run was cancelled or failed, hands its place in the order on: whoever was ordered
// after it is ordered after what it had to follow. Each program has a writer or reader of a healthy run that is not over, a
// task of another run behind it that is dropped, and a third party behind that one.
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
import { delay, fill, look, script, spin } from '../support/tasks.js';

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

  it('a writer behind a dropped one waits for the bodies that read or write what is there', async () => {
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

  it('a read behind a dropped writer is answered when what was before the writer is over', async () => {
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
    'a task inserted %s the drop follows what the dropped task followed',
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

  it('what follows a task that fails before it is issued follows what that one followed', async () => {
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

  it('explain says of a dropped task what it waits for', async () => {
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
