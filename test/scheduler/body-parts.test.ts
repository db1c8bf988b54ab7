// Parts in the tasks that bodies spawn: a body takes parts of its data, and tasks behind its own see what was written by way of them.
import '../support/removable-guards.js';
import { afterEach, describe, expect, it, test } from 'vitest';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import {
  type Datum,
  type Graph,
  HeadraceError,
  type Runtime,
  type RuntimeOptions,
  read,
  readWrite,
  task,
} from '../../index.js';
import { BodyProgram, grown } from '../support/body-part-programs.js';
import { raise } from '../support/body-tasks.js';
import { partOf } from '../support/grids.js';
import { MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { partKernels } from '../support/part-programs.js';
import { onRanks } from '../support/simulated-ranks.js';
import { add, fill, script } from '../support/tasks.js';

const HOST: RuntimeOptions = { workers: 2, hostMemory: '16MiB', checked: true };
const counted = (n: number): Float64Array => Float64Array.from({ length: n }, (_, i) => i);

const sort = task({
  name: 'sort',
  flows: { x: readWrite('f64') },
  body: ({ x }, { data, spawn }) => {
    const half = x.length >> 1;
    if (x.length < 3) return void x.sort();
    spawn(sort, { x: data.x.part(0, half) });
    spawn(sort, { x: data.x.part(half, x.length - half) });
    spawn(merge, { x: data.x });
  },
});
const merge = task({
  name: 'merge',
  flows: { x: readWrite('f64') },
  body: ({ x }) => void x.sort(),
});

/** Random bodies on one rank, or on several; the values that each rank sees. */
async function play(runtime: Runtime, seed: number, failing = -1): Promise<number[][]> {
  const shapes = [4, 3, 12].map((rows, i) => ({ rows, values: counted(12).map((v) => v + i) }));
  const data = shapes.map(({ rows, values }, i) =>
    runtime.data(values, { rows, rank: i % runtime.ranks }),
  );
  const { grow } = new BodyProgram(runtime, failing);
  const run = runtime.run((graph: Graph) => {
    for (let k = 0; k < 2; k++) {
      for (const [i, x] of data.entries())
        graph.insert(grow, { x, seed: seed + i, depth: 2 } as never);
      graph.insert(add, { to: data[0], from: data[1].part(3, 3), count: 3 });
    }
  });
  if (failing >= 0) await expect(soon(runtime, run.done)).rejects.toThrow();
  else await soon(runtime, run.done);
  const seen: number[][] = [];
  for (const datum of data)
    seen.push(
      await datum.read().then(
        (values) => [...values],
        () => [],
      ),
    );
  await nothingLeft(runtime, data);
  return seen;
}

function expected(seed: number): number[][] {
  const shapes = [4, 3, 12].map((rows, i) => ({ rows, values: counted(12).map((v) => v + i) }));
  const values = shapes.map((shape) => [...shape.values]);
  for (let k = 0; k < 2; k++) {
    for (const [i, { rows }] of shapes.entries())
      values[i] = grown(rows, Float64Array.from(values[i]), seed + i, 2);
    for (let j = 0; j < 3; j++) values[0][j] += values[1][3 + j];
  }
  return values;
}

describe.each(MACHINES)('bodies with parts on $name', ({ options }) => {
  it('sort in place', async () => {
    await onMachine(options, async (runtime) => {
      const x = runtime.data(counted(50).map((i) => (i * 37) % 50));
      const ones = runtime.data(new Float64Array(50).fill(1));
      await runtime.run((graph) => {
        graph.insert(sort, { x });
        graph.insert(add, { to: x, from: ones, count: 50 });
      });
      expect([...(await x.read())]).toEqual([...counted(50).map((i) => i + 1)]);
    });
  });

  it('give what loops give', async () => {
    for (let seed = 1; seed <= partOf(20, 4); seed++)
      await onMachine(options, async (runtime) => {
        expect(await play(runtime, seed * 7), `seed ${seed * 7}`).toEqual(expected(seed * 7));
      });
  }, 60_000);
});

describe('bodies with parts', () => {
  it('give what loops give in a small window', async () => {
    for (let seed = 1; seed <= partOf(20, 4); seed++)
      await onMachine({ ...HOST, window: 16, overflow: 100_000 }, async (runtime) => {
        expect(await play(runtime, seed), `seed ${seed}`).toEqual(expected(seed));
      });
  }, 60_000);

  it.each([2, 3])(
    'give what loops give on %i ranks',
    async (ranks) => {
      for (let seed = 1; seed <= partOf(20, 3); seed++) {
        const all = await onRanks(
          { ranks, seed, machine: { lanes: 8 }, kernels: partKernels },
          (runtime) => play(runtime, seed),
        );
        for (const seen of all) expect(seen, `seed ${seed}`).toEqual(expected(seed));
      }
    },
    60_000,
  );

  it('leave no value when a spawned task fails', async () => {
    for (let seed = 1; seed <= partOf(20, 4); seed++)
      await onMachine(HOST, async (runtime) => {
        const seen = await play(runtime, seed, 2 + (seed % 4));
        const right = expected(seed);
        for (const [i, values] of seen.entries())
          if (values.length > 0) expect(values, `seed ${seed}`).toEqual(right[i]);
      });
  }, 60_000);

  it('use a temporary that has the row of one which they have closed', async () => {
    await onMachine(HOST, async (runtime) => {
      const x = runtime.data(counted(4));
      const rows: number[] = [];
      const parent = task({
        name: 'parent',
        flows: { x: readWrite('f64') },
        body: async (_, { data, spawn, temporary }) => {
          const first = temporary('f64', 4);
          first.part(0, 2);
          first.close();
          while (runtime.engine.directory.info[first.row] === first)
            await new Promise((resolve) => setTimeout(resolve, 1));
          const second = temporary('f64', 4);
          rows.push(first.row, second.row);
          spawn(fill, { to: second, count: 4, value: 1 });
          spawn(fill, { to: second.part(0, 2), count: 2, value: 3 });
          spawn(add, { to: data.x, from: second, count: 4 });
        },
      });
      await soon(
        runtime,
        runtime.run((graph) => void graph.insert(parent, { x })),
      );
      expect(rows[1]).toBe(rows[0]);
      expect([...(await x.read())]).toEqual([3, 4, 3, 4]);
    });
  });

  it('insert tasks on parts of their data in program order, too', async () => {
    await onMachine(HOST, async (runtime) => {
      const x = runtime.data(counted(8));
      const ones = runtime.data(new Float64Array(8).fill(1));
      const parent = task({
        name: 'parent',
        flows: { x: readWrite('f64') },
        body: (_, { data, spawn, graph }) => {
          const part = data.x.part(2, 3);
          spawn(fill, { to: part, count: 3, value: 7 });
          graph.insert(add, { to: part, from: ones, count: 3 });
          expect(part.whole).toBe(x);
          expect(part.name).toBe('data-1[2..4]');
        },
      });
      await runtime.run((graph) => void graph.insert(parent, { x }));
      expect([...(await x.read())]).toEqual([0, 1, 8, 8, 8, 5, 6, 7]);
      await nothingLeft(runtime, [x, ones]);
    });
  });

  it('insert tasks on parts of a part in program order, too', async () => {
    await onMachine(HOST, async (runtime) => {
      const x = runtime.data(counted(12), { rows: 4 });
      const parent = task({
        name: 'parent',
        flows: { x: readWrite('f64') },
        body: (_, { data, graph }) => {
          const part = data.x.block({ row: 1, rows: 1, column: 1, columns: 1 });
          graph.insert(fill, { to: part, count: 1, value: 70 });
        },
      });
      await runtime.run(
        (graph) =>
          void graph.insert(parent, {
            x: x.block({ row: 1, rows: 3, column: 1, columns: 2 }),
          }),
      );
      const expected = counted(12);
      expected[(1 + 1) * 4 + 1 + 1] = 70;
      expect([...(await x.read())]).toEqual([...expected]);
      await nothingLeft(runtime, [x]);
    });
  });

  it('do not change what the program may do with the data', async () => {
    await onMachine({ ...HOST, plans: 'auto' }, async (runtime) => {
      const x = runtime.data(counted(8));
      await runtime.run((graph) => void graph.insert(sort, { x }));
      expect(x.view).toBeUndefined();
      await nothingLeft(runtime, [x]);
    });
  });
});

describe('of bodies with parts are refused', () => {
  async function refused(
    body: (of: {
      data: { x: Datum<'f64'>; y: Datum<'f64'> };
      spawn: (cls: unknown, args: object) => unknown;
      temporary: (element: 'f64', length: number) => Datum<'f64'>;
      z: Datum<'f64'>;
      graph: { value(datum: Datum): Promise<number> };
    }) => unknown,
    code: string,
    text: RegExp,
  ): Promise<void> {
    await onMachine(HOST, async (runtime) => {
      const [x, y, z] = [counted(8), counted(8), counted(8)].map((values, i) =>
        runtime.data(values, { name: 'xyz'[i] }),
      );
      const parent = task({
        name: 'parent',
        flows: { x: readWrite('f64'), y: read('f64') },
        body: (_, { data, graph, spawn, temporary }) =>
          body({ data, graph, spawn, temporary, z } as never) as undefined,
      });
      const error = await runtime
        .run((graph) => void graph.insert(parent, { x, y }))
        .then(
          () => undefined,
          (thrown: unknown) => (thrown as Error).cause,
        );
      expect(error).toBeInstanceOf(HeadraceError);
      expect((error as HeadraceError).code).toBe(code);
      expect((error as HeadraceError).message).toMatch(text);
      await nothingLeft(runtime, [x, y, z]);
    });
  }

  test('writes of parts that the parent reads', async () => {
    await refused(
      ({ data, spawn }) => spawn(fill, { to: data.y.part(0, 2), count: 2, value: 1 }),
      'ERR_SPAWN_ORDER',
      /writes datum 'y\[0..1\]', which its parent only reads/,
    );
  });

  test('parts of data that the parent does not use', async () => {
    await refused(
      ({ spawn, z }) => spawn(fill, { to: z.part(0, 2), count: 2, value: 1 }),
      'ERR_PART',
      /uses part 'z\[0..1\]': a body spawns the task/,
    );
  });

  test('overlapping parts of which a task writes one', async () => {
    await refused(
      ({ data, spawn }) => spawn(add, { to: data.x.part(0, 4), from: data.x.part(3, 2), count: 2 }),
      'ERR_DUPLICATE_DATUM',
      /have elements in common/,
    );
    await refused(
      ({ data, spawn }) => spawn(add, { to: data.x, from: data.x.part(3, 2), count: 2 }),
      'ERR_DUPLICATE_DATUM',
      /have elements in common/,
    );
  });

  test('parts of temporary data without a value', async () => {
    await refused(
      ({ data, spawn, temporary }) => {
        const sum = temporary('f64', 4);
        spawn(fill, { to: sum.part(0, 3), count: 3, value: 1 });
        spawn(add, { to: data.x, from: sum.part(2, 2), count: 2 });
      },
      'ERR_NEVER_WRITTEN',
      /'temporary of parent.*\[2..3\]'/,
    );
  });

  test('calls on a part', async () => {
    await refused(
      ({ data }) => data.x.part(0, 2).read(),
      'ERR_PART',
      /read\(\) is called on part 'x\[0..1\]', which a body has made/,
    );
    await refused(
      ({ data, graph }) => graph.value(data.x.part(0, 2)),
      'ERR_PART',
      /graph\.value\(\) is called on part 'x\[0..1\]', which a body has made/,
    );
  });

  test('parts of another body', async () => {
    let kept: Datum<'f64'> | undefined;
    await refused(
      async ({ data, spawn }) => {
        kept = data.x.part(0, 2);
        const other = task({
          name: 'other',
          flows: { x: readWrite('f64') },
          body: (_, context) => void context.spawn(fill, { to: kept as never, count: 2, value: 1 }),
        });
        spawn(other, { x: data.x.part(4, 2) });
      },
      'ERR_PART',
      /uses part 'x\[0..1\]': a body spawns the task/,
    );
  });
});

describe('a datum that the program has closed behind a task', () => {
  it.each(['a datum', 'a part'])('%s: its body takes parts of it', async (which) => {
    await onMachine(HOST, async (runtime) => {
      const x = runtime.data(counted(8), { name: 'x' });
      const sum = runtime.data(new Float64Array(8), { name: 'sum' });
      const parent = task({
        name: 'parent',
        flows: { x: readWrite('f64'), to: readWrite('f64') },
        body: (_, { data, spawn }) => {
          spawn(fill, { to: data.x.part(1, 3), count: 3, value: 7 });
          spawn(add, { to: data.to, from: data.x, count: 4 });
        },
      });
      const used = which === 'a part' ? x.part(4, 4) : x;
      await runtime.run((graph) => {
        graph.insert(parent, { x: used, to: sum });
        used.close();
      });
      const first = which === 'a part' ? 4 : 0;
      expect([...(await sum.read())]).toEqual([first, 7, 7, 7, 0, 0, 0, 0]);
      if (which === 'a part') expect([...(await x.read())]).toEqual([0, 1, 2, 3, 4, 7, 7, 7]);
      expect(() => used.part(0, 1)).toThrow(/is closed/);
      await nothingLeft(runtime, [x, sum]);
    });
  });
});

describe('a part that a body closes', () => {
  const wait = task({
    name: 'wait',
    flows: { x: read('f64') },
    // Lasts while the other data are made; the values are the same if it does not.
    body: () => new Promise<void>((resolve) => setTimeout(resolve, 20)),
  });

  it('gives what it has to the data of the task before its memory goes', async () => {
    await onMachine(HOST, async (runtime) => {
      const x = runtime.data(counted(4));
      const others: Datum<'f64'>[] = [];
      const parent = task({
        name: 'parent',
        flows: { x: readWrite('f64') },
        body: (_, { data, spawn }) => {
          const part = data.x.part(0, 2);
          // What the part has is copied behind the reading task, and the memory of the part would be that of another datum.
          spawn(wait, { x: data.x });
          spawn(fill, { to: part, count: 2, value: 9 });
          part.close();
        },
      });
      const makeOthers = script('make others', async () => {
        for (let i = 0; i < 5; i++) {
          await new Promise((resolve) => setTimeout(resolve, 2));
          others.push(runtime.data(new Float64Array(2).fill(5)));
        }
      });
      const of = runtime.data(new Float64Array(1));
      const run = runtime.run((graph) => {
        graph.insert(parent, { x });
        graph.insert(makeOthers, { of });
      });
      await soon(runtime, run);
      expect([...(await x.read())]).toEqual([9, 9, 2, 3]);
      for (const other of others) expect([...(await other.read())]).toEqual([5, 5]);
      await nothingLeft(runtime, [x, of, ...others]);
    });
  });

  it('is another one when the body takes it again', async () => {
    await onMachine(HOST, async (runtime) => {
      const x = runtime.data(counted(4));
      const parent = task({
        name: 'parent',
        flows: { x: readWrite('f64') },
        body: (_, { data, spawn }) => {
          const first = data.x.part(0, 2);
          spawn(fill, { to: first, count: 2, value: 9 });
          first.close();
          expect(() => first.part(0, 1)).toThrow(/is closed/);
          const second = data.x.part(0, 2);
          expect(second.closed).toBe(false);
          expect(data.x.part(0, 2)).toBe(second);
          spawn(raise, { x: second });
        },
      });
      await soon(
        runtime,
        runtime.run((graph) => void graph.insert(parent, { x })),
      );
      expect([...(await x.read())]).toEqual([10, 10, 2, 3]);
    });
  });

  it('ends with a temporary', async () => {
    await onMachine(HOST, async (runtime) => {
      const x = runtime.data(counted(4));
      const parent = task({
        name: 'parent',
        flows: { x: readWrite('f64') },
        body: (_, { data, spawn, temporary }) => {
          const all = temporary('f64', 4);
          const part = all.part(0, 2);
          spawn(fill, { to: all, count: 4, value: 1 });
          spawn(add, { to: data.x.part(2, 2), from: part, count: 2 });
          all.close();
          expect(part.closed).toBe(true);
          expect(() => all.part(0, 2)).toThrow(/is closed/);
          expect(() => spawn(add, { to: data.x.part(2, 2), from: part, count: 2 })).toThrow(
            /is closed/,
          );
        },
      });
      await soon(
        runtime,
        runtime.run((graph) => void graph.insert(parent, { x })),
      );
      expect([...(await x.read())]).toEqual([0, 1, 3, 4]);
    });
  });
});

describe('guards of bodies with parts', () => {
  afterEach(() => setGuard('bodyPartsReturn', true));

  test('without bodyPartsReturn: tasks behind a body miss what its family has written', async () => {
    setGuard('bodyPartsReturn', false);
    await onMachine({ ...HOST, checked: false }, async (runtime) => {
      const x = runtime.data(counted(8));
      const parent = task({
        name: 'parent',
        flows: { x: readWrite('f64') },
        body: (_, { data, spawn }) =>
          void spawn(fill, { to: data.x.part(0, 8 - 1), count: 7, value: 7 }),
      });
      await runtime.run((graph) => void graph.insert(parent, { x }));
      expect([...(await x.read())]).toEqual([...counted(8)]);
    });
  });
});
