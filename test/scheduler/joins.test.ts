// Tasks that bodies spawn: the tasks behind their parent see what they write.
import { afterEach, describe, expect, it, test } from 'vitest';
import '../support/removable-guards.js';
import { guardNames, setGuard } from '../../devices/simulated/cases/set-guard.js';
import { Random } from '../../devices/simulated/machine/random.js';
import {
  type BodyContext,
  type Datum,
  type Flow,
  type Runtime,
  type RuntimeOptions,
  read,
  readWrite,
  reduce,
  type TaskClass,
  task,
  write,
} from '../../index.js';
import { nothingLeft, onMachine, soon } from '../support/machines.js';

const add = task({
  name: 'add',
  flows: { to: readWrite('f64'), from: read('f64') },
  params: { count: 'i32', factor: 'f64' },
  kernel: 'add_f64',
});
const scale = task({
  name: 'scale',
  flows: { x: readWrite('f64') },
  params: { by: 'f64', plus: 'f64' },
  body: ({ x, by, plus }) => void (x[0] = x[0] * by + plus),
});
const one = task({
  name: 'one',
  flows: { x: write('f64') },
  body: ({ x }) => void x.fill(1),
});
const fails = task({
  name: 'fails',
  flows: { x: readWrite('f64') },
  body: () => {
    throw new Error('as asked for');
  },
});
const MACHINES: readonly RuntimeOptions[] = [
  { workers: 1 },
  { workers: 2, gpus: 2, gpuMemory: '1MiB', checked: true },
  { workers: 1, gpus: 1, gpuMemory: '4KiB', window: 8 },
];

/** A tree of tasks on one datum: each scales it, and then its children come, one after the other. */
interface Node {
  readonly by: number;
  readonly plus: number;
  readonly children: readonly Node[];
  /** Kernels between the children: x += factor. */
  readonly kernels: readonly number[];
  readonly isAsync: boolean;
}

function randomTree(r: Random, depth: number): Node {
  const children = depth === 0 ? 0 : r.below(4);
  return {
    by: r.between(1, 3),
    plus: r.between(0, 5),
    children: Array.from({ length: children }, () => randomTree(r, depth - 1)),
    kernels: Array.from({ length: children }, () => r.between(1, 9)),
    isAsync: r.chance(0.3),
  };
}

/** What the tree makes of a value, by plain recursion. */
function plain({ by, plus, children, kernels }: Node, x: number): number {
  let value = (x * by + plus) % 1009;
  children.forEach((child, i) => {
    value = plain(child, value) + kernels[i];
  });
  return value;
}

/** Classes whose bodies spawn the children of a node; parameter `node` names it. */
class Tree {
  readonly nodes: Node[] = [];
  private readonly one: Datum<'f64'>;
  private readonly made: Record<string, TaskClass> = {};

  constructor(one: Datum<'f64'>) {
    this.one = one;
    const flows = { x: readWrite('f64'), one: read('f64') };
    const params = { node: 'i32' } as const;
    const here = (x: Float64Array, node: number): Node => {
      const { by, plus } = this.nodes[node];
      x[0] = (x[0] * by + plus) % 1009;
      return this.nodes[node];
    };
    this.made['plain'] = task({
      name: 'plain',
      flows,
      params,
      body: ({ x, node }, { data, spawn }) => this.grow(here(x, node), data.x, spawn),
    }) as unknown as TaskClass;
    this.made['async'] = task({
      name: 'async',
      flows,
      params,
      body: async ({ x, node }, { data, spawn }) => {
        const of = here(x, node);
        const { x: datum } = data;
        await new Promise((resolve) => setImmediate(resolve));
        this.grow(of, datum, spawn);
      },
    }) as unknown as TaskClass;
  }

  /** The class and the arguments of a node's task. */
  of(node: Node, x: Datum): [TaskClass, never] {
    this.nodes.push(node);
    const args = { x, one: this.one, node: this.nodes.length - 1 };
    return [this.made[node.isAsync ? 'async' : 'plain'], args as never];
  }

  private grow(node: Node, x: Datum<'f64'>, spawn: BodyContext['spawn']): void {
    node.children.forEach((child, i) => {
      spawn(...this.of(child, x));
      spawn(add, { to: x, from: this.one, count: 1, factor: node.kernels[i] });
    });
  }
}

describe('what bodies spawn', () => {
  it.each(MACHINES)('comes before the tasks behind the parent, in order: %j', async (options) => {
    for (let seed = 1; seed <= 8; seed++) {
      const r = new Random(seed);
      await onMachine(options, async (runtime) => {
        const one = runtime.data(Float64Array.of(1));
        const tree = new Tree(one);
        const data = Array.from({ length: 3 }, (_, i) => runtime.data(Float64Array.of(i)));
        const expected = [0, 1, 2];
        const runs = [];
        for (let n = 0; n < 2; n++) {
          const steps = Array.from({ length: r.between(1, 6) }, () => ({
            at: r.below(3),
            node: randomTree(r, 3),
          }));
          runs.push(
            runtime.run(async (graph) => {
              for (const { at, node } of steps) {
                expected[at] = plain(node, expected[at]) * 2 + 1;
                graph.insert(...tree.of(node, data[at]));
                graph.insert(scale, { x: data[at], by: 2, plus: 1 });
                if (r.chance(0.3)) await graph.space();
              }
            }),
          );
        }
        await soon(runtime, Promise.all(runs));
        const values = await Promise.all(data.map((each) => each.read()));
        expect(
          values.map(([value]) => value),
          `seed ${seed}`,
        ).toEqual(expected);
      });
    }
  });

  it('may use temporaries of the body, which end with its task', async () => {
    await onMachine({ workers: 1, gpus: 1, gpuMemory: '64KiB' }, async (runtime) => {
      const made: Datum[] = [];
      const sum = task({
        name: 'sum',
        flows: { to: write('f64'), a: read('f64'), b: read('f64') },
        body: ({ to, a, b }) => void (to[0] = a[0] + b[0]),
      });
      const count: TaskClass<{ readonly to: Flow<'f64', 'write'> }, { readonly n: 'i32' }> = task({
        name: 'count',
        flows: { to: write('f64') },
        params: { n: 'i32' },
        body: ({ to, n }, { data, spawn, temporary }): void => {
          to[0] = 1;
          if (n <= 1) return;
          const [a, b] = [temporary('f64', 1), temporary('f64', 1)];
          spawn(count, { to: a, n: n >> 1 });
          spawn(count, { to: b, n: n - (n >> 1) });
          spawn(sum, { to: data.to, a, b });
          made.push(a, b);
        },
      });
      const x = runtime.data('f64', 1);
      const y = runtime.data(Float64Array.of(0));
      await runtime.run((graph) => {
        graph.insert(count, { to: x, n: 100 });
        graph.insert(add, { to: y, from: x, count: 1, factor: 1 });
      });
      expect((await y.read())[0]).toBe(100);
      expect(made).toHaveLength(198);
      expect(made.every(({ closed }) => closed)).toBe(true);
      await nothingLeft(runtime, [x, y]);
    });
  });

  it('changes the datum itself through reducing flows', async () => {
    await onMachine({ workers: 2 }, async (runtime) => {
      const put = task({
        name: 'put',
        flows: { total: reduce('f64', 'sum') },
        params: { n: 'f64' },
        body: ({ total, n }, { data, spawn }): void => {
          total[0] += n;
          if (n > 1) spawn(put as never, { total: data.total, n: n - 1 } as never);
        },
      });
      const total = runtime.data(Float64Array.of(0));
      await runtime.run((graph) => {
        for (let i = 0; i < 20; i++) graph.insert(put, { total, n: 4 });
      });
      expect((await total.read())[0]).toBe(200);
    });
  });

  it('belongs to the time before a play that waits, like its parent', async () => {
    await onMachine({ workers: 1 }, async (runtime) => {
      const x = runtime.data(Float64Array.of(1));
      const one = runtime.data(Float64Array.of(1));
      const plan = await runtime.plan(
        (graph) => void graph.insert(add, { to: x, from: one, count: 1, factor: 10 }),
      );
      let go: () => void = () => {};
      const gate = new Promise<void>((resolve) => {
        go = resolve;
      });
      const parent = task({
        name: 'parent',
        flows: { x: readWrite('f64') },
        // No async function: that it is asynchronous is known when it has returned a promise.
        body: (_, { data, spawn }) => {
          const { x } = data;
          return gate.then(() => void spawn(scale, { x, by: 2, plus: 0 }));
        },
      });
      const run = runtime.run((graph) => void graph.insert(parent, { x }));
      await new Promise(setImmediate);
      const play = plan.run();
      await new Promise(setImmediate);
      go();
      await soon(runtime, Promise.all([run, play]));
      expect((await x.read())[0]).toBe(12);
      await plan.close();
    });
  });

  it('has handles: tasks of the same body, and any task, may follow it', async () => {
    await onMachine({ workers: 1 }, async (runtime) => {
      const order: string[] = [];
      const note = (name: string): TaskClass =>
        task({ name, flows: {}, body: () => void order.push(name) }) as unknown as TaskClass;
      const parent = task({
        name: 'parent',
        flows: {},
        body: (_, { spawn, graph }) => {
          const last = spawn(note('a'), {}, { priority: -1 });
          spawn(note('b'), {}, { after: [last], priority: 9 });
          graph.insert(note('c'), {}, { after: [last] });
          order.push('parent');
        },
      });
      await runtime.run((graph) => {
        graph.insert(note('d'), {}, { after: [graph.insert(parent, {})] });
      });
      expect(order.slice(0, 2)).toEqual(['parent', 'a']);
      expect(order.indexOf('d')).toBeGreaterThan(order.indexOf('b'));
      expect(order).toHaveLength(5);
    });
  });
});

describe('what bodies must not spawn', () => {
  /** The message of what a body spawns; it has datum `own` (read) and `mine` (readWrite). */
  async function refusal(
    spawns: (
      runtime: Runtime,
      context: BodyContext,
      data: { own: Datum<'f64'>; other: Datum<'f64'>; before: number },
    ) => void,
  ): Promise<string> {
    return await onMachine({ workers: 1 }, async (runtime) => {
      const [own, mine, other] = ['own', 'mine', 'other'].map((name) =>
        runtime.data(Float64Array.of(1), { name }),
      );
      let said = '';
      let behind = 0;
      const parent = task({
        name: 'parent',
        flows: { own: read('f64'), mine: readWrite('f64') },
        body: (_, context) => {
          try {
            spawns(runtime, context as never, { own, other, before: behind });
          } catch (error) {
            said = `${(error as { code: string }).code}: ${(error as Error).message}`;
          }
        },
      });
      await runtime.run((graph) => {
        graph.insert(parent, { own, mine });
        behind = graph.insert(add, { to: other, from: mine, count: 1, factor: 1 });
      });
      return said;
    });
  }

  it.each([
    [
      'a task that writes what its parent reads',
      (_: Runtime, { spawn }: BodyContext, { own }: { own: Datum<'f64'> }) =>
        void spawn(scale, { x: own, by: 1, plus: 1 }),
      /^ERR_SPAWN_ORDER: a task of class 'scale' that the body of task parent #\d+ spawns writes datum 'own', which its parent only reads/,
    ],
    [
      'a task that would wait for a task behind its parent',
      (_: Runtime, { spawn }: BodyContext, { other }: { other: Datum<'f64'> }) =>
        void spawn(scale, { x: other, by: 1, plus: 1 }),
      /^ERR_SPAWN_ORDER: .* uses datum 'other', which is not among the data of its parent, and would wait for the end of its parent/,
    ],
    [
      'a task that follows a task behind its parent',
      (_: Runtime, { spawn }: BodyContext, { before }: { before: number }) =>
        void spawn(task({ name: 'n', flows: {}, body: () => {} }), {}, {
          after: [before],
        } as never),
      /^ERR_SPAWN_ORDER: .* follows task #\d+, which is another's/,
    ],
  ])('%s', async (_, spawns, message) => {
    expect(await refusal(spawns as never)).toMatch(message);
  });

  it('nothing after the end of the body', async () => {
    await onMachine({ workers: 1 }, async (runtime) => {
      let late: BodyContext | undefined;
      const x = runtime.data(Float64Array.of(1));
      const leaves = task({
        name: 'leaves',
        flows: { x: readWrite('f64') },
        body: (_, context) => void (late = context as never),
      });
      await runtime.run((graph) => void graph.insert(leaves, { x }));
      const { spawn } = late as unknown as BodyContext;
      expect(() => spawn(scale, { x, by: 1, plus: 0 })).toThrow(
        expect.objectContaining({ code: 'ERR_RUN_OVER' }),
      );
      expect(() => late?.graph).toThrow(/a body of class 'leaves' uses its context after its end/);
    });
  });
});

describe('failures', () => {
  it.each(['child', 'grandchild', 'body'])(
    'of a %s fail the run, and later runs are not disturbed',
    async (who) => {
      await onMachine({ workers: 1, gpus: 1, gpuMemory: '64KiB' }, async (runtime) => {
        const x = runtime.data(Float64Array.of(1), { name: 'x' });
        const one = runtime.data(Float64Array.of(1));
        const inner = task({
          name: 'inner',
          flows: { x: readWrite('f64') },
          body: (_, { data, spawn }) => void spawn(fails, { x: data.x }),
        });
        const outer = task({
          name: 'outer',
          flows: { x: readWrite('f64'), one: read('f64') },
          body: (_, { data, spawn }) => {
            spawn(add, { to: data.x, from: data.one, count: 1, factor: 1 });
            if (who === 'grandchild') spawn(inner, { x: data.x });
            else if (who === 'child') spawn(fails, { x: data.x });
            if (who === 'body') throw new Error('as asked for');
          },
        });
        const run = runtime.run((graph) => {
          graph.insert(outer, { x, one });
          graph.insert(scale, { x, by: 2, plus: 0 });
        });
        const name = who === 'body' ? 'outer' : 'fails';
        await expect(soon(runtime, run.done)).rejects.toThrow(new RegExp(`${name} #\\d+`));
        await expect(x.read()).rejects.toMatchObject({ code: 'ERR_DATUM_POISONED' });
        await x.set(Float64Array.of(3));
        await runtime.run((graph) => void graph.insert(scale, { x, by: 2, plus: 1 }));
        expect((await x.read())[0]).toBe(7);
      });
    },
  );

  it('explain says what a parent and its spawned tasks wait for', async () => {
    await onMachine({ workers: 1 }, async (runtime) => {
      const x = runtime.data(Float64Array.of(1));
      let go: () => void = () => {};
      const gate = new Promise<void>((resolve) => {
        go = resolve;
      });
      const slow = task({ name: 'slow', flows: { x: readWrite('f64') }, body: () => gate });
      let held = '';
      const parent = task({
        name: 'parent',
        flows: { x: readWrite('f64') },
        body: (_, { data, spawn }) => {
          const child = spawn(slow, { x: data.x });
          held = run.explain(child).reason;
        },
      });
      let handle = 0 as never;
      const run = runtime.run((graph) => {
        handle = graph.insert(parent, { x }) as never;
        graph.insert(scale, { x, by: 1, plus: 1 });
      });
      while (run.explain(handle).stage !== 'finalize') await new Promise(setImmediate);
      expect(held).toBe('waits for the end of the body that has spawned it');
      expect(run.explain(handle).reason).toBe(
        'its body has ended; waits for 1 task that it has spawned',
      );
      go();
      await run;
    });
  });
});

/**
 * The value (or the code of the error) of a datum whose family has failed: the body has changed it from 1 to 2, and a spawned task on
 * a temporary fails. `others` are spawned on the datum before it.
 */
async function afterFailedFamily(
  runtime: Runtime,
  others: readonly (typeof scale | typeof one)[],
): Promise<number | string> {
  const x = runtime.data(Float64Array.of(1));
  const parent = task({
    name: 'parent',
    flows: { x: readWrite('f64') },
    body: ({ x }, { data, spawn, temporary }) => {
      x[0] = 2;
      const scratch = temporary('f64', 1);
      spawn(one, { x: scratch });
      for (const cls of others) {
        if (cls === one) spawn(one, { x: data.x });
        else spawn(scale, { x: data.x, by: 3, plus: 0 });
      }
      spawn(fails, { x: scratch });
    },
  });
  const { done } = runtime.run((graph) => {
    graph.insert(parent, { x });
  });
  await expect(done).rejects.toMatchObject({ code: 'ERR_TASK_FAILED' });
  return await x.read().then(
    ([value]) => value,
    ({ code }) => code,
  );
}

describe('a family that fails', () => {
  it.each([
    ['its parent', []],
    ['a spawned task that changes it', [scale]],
    ['a spawned task that overwrites it', [one]],
  ])('leaves no value, also where only %s has written the datum', async (_, others) => {
    for (const machine of MACHINES)
      await onMachine(machine, async (runtime) => {
        expect(await afterFailedFamily(runtime, others)).toBe('ERR_DATUM_POISONED');
      });
  });
});

it('a full window gets room when the body of a failed run ends and what it has spawned is dropped', async () => {
  await onMachine({ workers: 1, window: 4 }, async (runtime) => {
    const [x, y, z] = [1, 2, 3].map((value) => runtime.data(Float64Array.of(value)));
    let open = (): void => {};
    const gate = new Promise<void>((resolve) => (open = resolve));
    const parent = task({
      name: 'parent',
      flows: { x: readWrite('f64') },
      body: async (_, { data, spawn }) => {
        for (let i = 0; i < 8; i++) spawn(scale, { x: data.x, by: 1, plus: 1 });
        await gate;
      },
    });
    const failed = runtime.run((graph) => {
      graph.insert(parent, { x });
      graph.insert(fails, { x: y });
    });
    const late = runtime.run(async (graph) => {
      await gate;
      // The body has ended, and no pass has seen it.
      for (let i = 0; i < 8; i++) await null;
      graph.insert(scale, { x: z, by: 2, plus: 0 });
    });
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
    open();
    await expect(failed.done).rejects.toMatchObject({ code: 'ERR_TASK_FAILED' });
    await soon(runtime, late.done);
    expect((await z.read())[0]).toBe(6);
    await nothingLeft(runtime, [x, y, z]);
  });
});

/** What a read gets of a datum that a family has overwritten, if the writer behind the family was dropped. */
function behindDroppedWriter(): Promise<number | string> {
  return onMachine({ workers: 1 }, async (runtime) => {
    const [x, y] = [1, 2].map((value) => runtime.data(Float64Array.of(value)));
    let begins = (): void => {};
    const hasBegun = new Promise<void>((resolve) => (begins = resolve));
    const late = task({
      name: 'late',
      flows: { x: readWrite('f64') },
      body: async () => {
        begins();
        for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
      },
    });
    const parent = task({
      name: 'parent',
      flows: { x: readWrite('f64') },
      body: (_, { data, spawn }) => {
        spawn(one, { x: data.x });
        spawn(late, { x: data.x });
      },
    });
    const failsLater = task({
      name: 'failsLater',
      flows: { y: readWrite('f64') },
      body: async () => {
        await hasBegun;
        throw new Error('as asked for');
      },
    });
    const { done } = runtime.run((graph) => {
      graph.insert(parent, { x });
      graph.insert(scale, { x, by: 2, plus: 0 });
      graph.insert(failsLater, { y });
    });
    await expect(soon(runtime, done)).rejects.toMatchObject({ code: 'ERR_TASK_FAILED' });
    return await x.read().then(
      ([value]) => value,
      ({ code }) => code,
    );
  });
}

it('a datum has no value if the writer behind a family that has overwritten it was dropped', async () => {
  expect(await behindDroppedWriter()).toBe('ERR_DATUM_POISONED');
});

describe('guards', () => {
  afterEach(() => {
    for (const name of guardNames) setGuard(name, true);
  });

  /** Whether the task behind the parent sees what the spawned tasks write. */
  async function seen(without: 'spawnedHeld' | 'joinWaits'): Promise<number> {
    setGuard(without, false);
    return await onMachine({ workers: 1 }, async (runtime) => {
      const x = runtime.data(Float64Array.of(1));
      const late = task({
        name: 'late',
        flows: { x: readWrite('f64') },
        body: async ({ x }) => {
          const [value] = x;
          await new Promise((resolve) => setImmediate(resolve));
          x[0] = value + 100;
        },
      });
      const parent = task({
        name: 'parent',
        flows: { x: readWrite('f64') },
        body: async ({ x }, { data, spawn }) => {
          spawn(late, { x: data.x });
          for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
          x[0] = 2;
        },
      });
      await soon(
        runtime,
        runtime.run((graph) => {
          graph.insert(parent, { x });
          graph.insert(scale, { x, by: 10, plus: 0 });
        }).done,
      );
      return (await x.read())[0];
    });
  }

  test('without familyFails: a datum keeps what a part of a failed family has written', async () => {
    setGuard('familyFails', false);
    await onMachine({ workers: 1 }, async (runtime) => {
      expect(await afterFailedFamily(runtime, [])).toBe(2);
    });
  });

  test('without familyInPlace: a datum has the value of a family, although a later writer was dropped', async () => {
    setGuard('familyInPlace', false);
    expect(await behindDroppedWriter()).toBe(1);
  });

  test.each(['spawnedHeld', 'joinWaits'] as const)(
    'without %s: the value is wrong',
    async (guard) => {
      expect(await seen(guard)).not.toBe(1020);
    },
  );
});

it.each([0, 1])(
  'a body spawns on data of its task that were closed behind the task: machine %s',
  async (m) => {
    await onMachine(MACHINES[m], async (runtime) => {
      const [x, y, z] = [1, 2, 3].map((value) => runtime.data(Float64Array.of(value)));
      const sum = runtime.data(new Float64Array(1));
      const flows = { to: readWrite('f64'), from: read('f64') } as const;
      const family: TaskClass<typeof flows, { readonly left: 'i32' }> = task({
        name: 'family',
        flows,
        params: { left: 'i32' },
        body: ({ left }, { data, spawn }) => {
          spawn(add, { to: data.to, from: data.from, count: 1, factor: 1 });
          if (left > 0) spawn(family, { ...data, left: left - 1 });
          if (left === 0) expect(() => spawn(one, { x: z })).toThrow('is closed');
        },
      });
      await runtime.run((graph) => {
        graph.insert(family, { to: x, from: y, left: 2 });
        graph.insert(add, { to: sum, from: x, count: 1, factor: 1 });
        for (const datum of [x, y, z]) datum.close();
        expect(() => graph.insert(one, { x })).toThrow('is closed');
      });
      expect((await sum.read())[0]).toBe(7);
      await nothingLeft(runtime, [sum]);
    });
  },
);
