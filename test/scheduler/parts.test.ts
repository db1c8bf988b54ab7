// Parts of data: overlaps in program order, what travels, what is refused, failures, and random programs.
import '../support/patient-holds.js';
import { describe, expect, it, test } from 'vitest';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { presets } from '../../devices/simulated/machine/presets.js';
import {
  type Datum,
  list,
  Runtime,
  type RuntimeOptions,
  read,
  readWrite,
  TiledMatrix,
  task,
  write,
} from '../../index.js';
import { MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { codeOf } from '../support/outcomes.js';
import { partKernels, playParts } from '../support/part-programs.js';
import { add, delay, fail, fill, script } from '../support/tasks.js';

const HOST: RuntimeOptions = { workers: 2, hostMemory: '16MiB', checked: true };

const counted = (n: number): Float64Array<ArrayBuffer> => new Float64Array(n).map((_, i) => i);
const square = task({
  name: 'square',
  flows: { to: write('f64'), from: read('f64') },
  body: ({ to, from }) => {
    for (let i = 0; i < from.length; i++) to[i] = from[i] ** 2;
  },
});
const sum = task({
  name: 'sum',
  flows: { to: write('f64'), parts: list(read('f64')) },
  body: ({ to, parts }) => {
    to[0] = parts.reduce((all, part) => all + part.reduce((x, y) => x + y, 0), 0);
  },
});
const increment = script('increment', (values) => {
  for (let i = 0; i < values.length; i++) values[i]++;
});

describe.each(MACHINES)('parts on $name', ({ options, gpus }) => {
  it('have the values of their whole, in program order, by whatever part tasks write', async () => {
    await onMachine(options, async (runtime) => {
      const x = runtime.data(counted(10), { name: 'x' });
      const [left, middle, right] = [x.part(0, 5), x.part(3, 4), x.part(5, 5)];
      await runtime.run((graph) => {
        graph.insert(fill, { to: middle, count: 4, value: 50 });
        graph.insert(add, { to: left, from: right, count: 5 });
        graph.insert(fill, { to: x.part(9, 1), count: 1, value: -1 });
      });
      expect([...(await x.read())]).toEqual([50, 51, 9, 58, 59, 50, 50, 7, 8, -1]);
      expect([...(await right.read())]).toEqual([50, 50, 7, 8, -1]);
      await runtime.run((graph) => {
        graph.insert(increment, { of: x });
        graph.insert(square, { to: right, from: left });
      });
      expect([...(await x.part(4, 3).read())]).toEqual([60, 51 ** 2, 52 ** 2]);
      await nothingLeft(runtime, [x]);
    });
  });

  it('of a matrix are blocks, dense in their own memory', async () => {
    await onMachine(options, async (runtime) => {
      const a = new TiledMatrix(
        runtime,
        'f64',
        { rows: 7, tile: 4 },
        (values, row, column, rows) => {
          for (let i = 0; i < values.length; i++)
            values[i] = 10 * (row + (i % rows)) + column + Math.floor(i / rows);
        },
      );
      const row = a.block(0, 1, { row: 2, rows: 1 });
      expect([row.rows, row.columns, row.name]).toEqual([1, 3, 'matrix(0, 1)[2..2, 0..2]']);
      expect([...(await row.read())]).toEqual([24, 25, 26]);
      const inner = a.at(0, 0).block({ row: 1, rows: 2, column: 1, columns: 2 });
      expect([...(await inner.read())]).toEqual([11, 21, 12, 22]);
      expect(inner.part(2, 2)).toBe(a.at(0, 0).block({ row: 1, rows: 2, column: 2, columns: 1 }));
      await runtime.run((graph) => {
        graph.insert(fill, { to: inner, count: 4, value: -1 });
        graph.insert(add, { to: row, from: a.block(1, 0, { rows: 1, columns: 3 }), count: 3 });
      });
      expect([...(await a.at(0, 0).read())]).toEqual([
        0, 10, 20, 30, 1, -1, -1, 31, 2, -1, -1, 32, 3, 13, 23, 33,
      ]);
      expect([...(await a.block(0, 1, { columns: 1 }).read())]).toEqual([4, 14, 64, 34]);
      a.close();
      await nothingLeft(runtime, []);
    });
  });

  it.each([1, 2, 3, 4])('random program %i has the results of plain arrays', async (seed) => {
    await onMachine(options, async (runtime) => {
      await nothingLeft(runtime, await playParts(runtime, seed * 7 + gpus, 40));
    });
  });
});

describe('random programs with little memory', () => {
  it.each([11, 12, 13, 14, 15, 16, 17, 18])('%i, on emulated GPUs that evict', async (seed) => {
    const little: RuntimeOptions = { gpus: 2, gpuMemory: 2560, hostMemory: '1MiB', checked: true };
    await onMachine({ ...little, workers: 1, window: 8 }, async (runtime) => {
      await nothingLeft(runtime, await playParts(runtime, seed, 40));
    });
  });

  const delays = { spread: 4, holdBack: 0.4, stall: 0.1, stallNs: 20_000, spurious: 0.05 };

  it.each([21, 22, 23, 24, 25, 26, 27, 28])('%i, on a simulated machine', async (seed) => {
    const machine = { ...presets['h200-2'], gpuMemory: 2560, hostMemory: 2 ** 18 };
    const backend = new SimulatedBackend({
      machine,
      kernels: partKernels,
      adversary: { ...delays, seed },
    });
    const runtime = Runtime.over(backend, { checked: true });
    await nothingLeft(runtime, await playParts(runtime, seed, 60));
    await runtime.close();
  });
});

describe('what travels', () => {
  it('in an exchange of halos is the halos', async () => {
    const two = { ...HOST, workers: 1, gpus: 2, gpuMemory: '4MiB' };
    await onMachine(two, async (runtime) => {
      const side = 64;
      const [a, b] = [0, 1].map((device) =>
        runtime.data(new Float64Array(side * side).fill(1), { rows: side, device }),
      );
      const edge = { row: 0, rows: 1 };
      const steps = 10;
      const exchange = await runtime.run((graph) => {
        for (let step = 0; step < steps; step++) {
          // The last column of one tile, and the first row, which is strided, of the other.
          graph.insert(
            add,
            { to: b, from: a.block({ column: side - 1 }), count: side },
            { device: 1 },
          );
          graph.insert(add, { to: a, from: b.block(edge), count: side }, { device: 0 });
        }
      });
      expect(exchange.tasks).toBe(2 * steps);
      expect(exchange.bytes).toMatchObject({
        // The first halo is that of a tile that is not on its GPU yet.
        h2d: (2 * side * side + side) * 8,
        d2d: (2 * steps - 1) * side * 8,
        d2h: 0,
      });
    });
  });

  it('into the edge of a tile is the edge', async () => {
    const two = { ...HOST, workers: 1, gpus: 2, gpuMemory: '4MiB' };
    await onMachine(two, async (runtime) => {
      const side = 64;
      const a = runtime.data('f64', side * side, { rows: side, device: 0 });
      const ghost = a.block({ row: side - 1 });
      const { bytes } = await runtime.run((graph) => {
        graph.insert(fill, { to: a, count: side * side, value: 1 }, { device: 0 });
        for (let step = 0; step < 10; step++) {
          graph.insert(fill, { to: ghost, count: side, value: step }, { device: 1 });
          graph.insert(delay, { of: a, microseconds: 1 }, { device: 0 });
        }
      });
      expect(bytes).toMatchObject({ h2d: 0, d2d: 10 * side * 8, d2h: 0 });
    });
  });
});

describe('parts are refused', () => {
  const refused = async (
    act: (o: { runtime: Runtime; x: Datum<'f64'> }) => unknown,
    code: string,
    words: RegExp,
  ): Promise<void> => {
    await onMachine(HOST, async (runtime) => {
      const x = runtime.data(counted(12), { name: 'x', rows: 4 });
      const failed = await Promise.resolve()
        .then(() => act({ runtime, x }))
        .then(
          () => undefined,
          (error: Error & { code: string }) => error,
        );
      expect(failed?.code).toBe(code);
      expect(failed?.message).toMatch(words);
    });
  };
  const noop = script('noop', () => {});

  test.each<[string, (x: Datum<'f64'>) => unknown, RegExp]>([
    ['an element before it', (x) => x.part(-1, 2), /datum 'x' has 12 elements: .* 2 .* from -1 on/],
    ['elements after it', (x) => x.part(8, 5), /has 12 elements: .* 5 .* from 8 on/],
    ['no elements', (x) => x.part(8, 0), /0 of them from 8 on/],
    ['half an element', (x) => x.part(0.5, 1), /from 0.5 on/],
    ['elements of several columns', (x) => x.part(2, 4), /neither whole columns nor part of one/],
    ['rows that it does not have', (x) => x.block({ row: 4 }), /has 4 rows: .* 0 .* from 4 on/],
    ['columns that it does not have', (x) => x.block({ columns: 4 }), /has 3 columns/],
    ['unknown options', (x) => x.block({ cols: 1 } as never), /cols/],
  ])('of %s', async (_, act, words) => {
    await refused(({ x }) => act(x), 'ERR_OPTION', words);
  });

  test('of a datum that is closed, or whose part is', async () => {
    const closed = /datum '.*' is closed/;
    await refused(
      ({ x }) => {
        x.close();
        x.part(0, 1);
      },
      'ERR_DATUM_CLOSED',
      closed,
    );
    await refused(
      ({ x }) => {
        const part = x.part(0, 3);
        part.close();
        part.part(0, 1);
      },
      'ERR_DATUM_CLOSED',
      closed,
    );
    await refused(
      async ({ runtime, x }) => {
        const part = x.part(0, 3);
        x.close();
        await runtime.run((graph) => void graph.insert(noop, { of: part }));
      },
      'ERR_DATUM_CLOSED',
      /'x\[0..2, 0..0\]'/,
    );
  });

  test('beside an overlapping one that the task writes', async () => {
    await refused(
      ({ runtime, x }) =>
        runtime.run((graph) => {
          graph.insert(add, { to: x.part(0, 3), from: x.part(2, 2), count: 1 });
        }),
      'ERR_DUPLICATE_DATUM',
      /'x\[0..2, 0..0\]' for flow 'to' and 'x\[2..3, 0..0\]' for flow 'from' have elements in common/,
    );
  });

  test('when the value from before a cancelled run is wanted', async () => {
    await refused(({ x }) => x.part(0, 1).restore(), 'ERR_PART', /restore\(\) uses part/);
  });

  test('when a device can hold the datum but not the part beside it', async () => {
    await onMachine({ ...HOST, gpus: 1, gpuMemory: 1024 }, async (runtime) => {
      const x = runtime.data('f64', 100, { name: 'x' });
      expect(() => x.part(0, 60)).toThrow(/480 bytes of datum 'x' \(800 bytes\).* has 1024 bytes/);
    });
  });
});

describe('values that are missing', () => {
  it('a datum has a value when tasks have written all parts of it', async () => {
    await onMachine(HOST, async (runtime) => {
      const x = runtime.data('f64', 6, { name: 'x' });
      const [left, right] = [x.part(0, 3), x.part(3, 3)];
      await runtime.run((graph) => void graph.insert(fill, { to: left, count: 3, value: 1 }));
      expect(await codeOf(x.read())).toBe('ERR_NEVER_WRITTEN');
      expect(await codeOf(x.part(2, 2).read())).toBe('ERR_NEVER_WRITTEN');
      left.close();
      expect(await codeOf(x.read())).toBe('ERR_NEVER_WRITTEN');
      await runtime.run((graph) => void graph.insert(fill, { to: right, count: 3, value: 2 }));
      expect([...(await x.read())]).toEqual([1, 1, 1, 2, 2, 2]);
      await nothingLeft(runtime, [x]);
    });
  });

  it('a failed task leaves its part without a value, and the datum when it is used', async () => {
    await onMachine(HOST, async (runtime) => {
      const x = runtime.data(counted(6), { name: 'x' });
      const [left, right] = [x.part(0, 3), x.part(3, 3)];
      const run = runtime.run((graph) => {
        graph.insert(increment, { of: right });
        graph.insert(fail, { of: left, code: 3 });
      });
      expect(await codeOf(run)).toBe('ERR_TASK_FAILED');
      expect(await codeOf(left.read())).toBe('ERR_DATUM_POISONED');
      expect(await codeOf(x.read())).toBe('ERR_DATUM_POISONED');
      expect(await codeOf(x.part(1, 1).read())).toBe('ERR_DATUM_POISONED');
      await x.set(counted(6));
      expect([...(await left.read())]).toEqual([0, 1, 2]);
      await nothingLeft(runtime, [x]);
    });
  });

  it('a part that a cancelled run only reads keeps its value', async () => {
    await onMachine(HOST, async (runtime) => {
      const x = runtime.data(counted(6), { name: 'x' });
      const y = runtime.data('f64', 3);
      const run = runtime.run(
        (graph) => {
          graph.insert(fill, { to: y, count: 3, value: 1 });
          graph.insert(square, { to: y, from: x.part(3, 3) });
          run0.abort();
        },
        { signal: run0.signal },
      );
      expect(await codeOf(run)).toBe('ERR_ABORTED');
      expect([...(await x.part(3, 3).read())]).toEqual([3, 4, 5]);
      await nothingLeft(runtime, [x, y]);
    });
  });
  const run0 = new AbortController();
});

describe('parts and the rest of the runtime', () => {
  it('are found in lists and by values in the program', async () => {
    await onMachine(HOST, async (runtime) => {
      const x = runtime.data(counted(9));
      const to = runtime.data('f64', 1);
      const parts = [0, 3, 6].map((i) => x.part(i, 3));
      await runtime.run(async (graph) => {
        for (const of of parts) graph.insert(increment, { of });
        graph.insert(sum, { to, parts: [...parts, x] });
        expect(await graph.value(to)).toBe(90);
        graph.insert(increment, { of: x });
        expect(await graph.value(x.part(8, 1))).toBe(10);
      });
      await nothingLeft(runtime, [x, to]);
    });
  });

  it('are used by tasks that bodies insert', async () => {
    await onMachine({ ...HOST, window: 4 }, async (runtime) => {
      const x = runtime.data(counted(8));
      const seed = runtime.data(new Float64Array(1));
      const grow = task({
        name: 'grow',
        flows: { of: readWrite('f64') },
        body: (_, { graph }) => {
          for (let i = 0; i < 6; i++) graph.insert(increment, { of: x.part(i, 3) });
        },
      });
      await runtime.run((graph) => {
        for (let i = 0; i < 10; i++) {
          graph.insert(grow, { of: seed });
          graph.insert(increment, { of: x.part(7, 1) });
        }
      });
      expect([...(await x.read())]).toEqual([10, 21, 32, 33, 34, 35, 26, 27]);
      await nothingLeft(runtime, [x, seed]);
    });
  });

  it('keep runs from being recognised, also if they get parts later', async () => {
    await onMachine({ ...HOST, plans: 'auto' }, async (runtime) => {
      const x = runtime.data(new Float64Array(40));
      const y = runtime.data(new Float64Array(40).fill(1));
      const parts: Datum<'f64'>[] = [];
      const outcomes: unknown[] = [];
      for (let k = 0; k < 8; k++) {
        if (k === 5) parts.push(x.part(0, 20));
        const report = await runtime.run((graph) => {
          for (let i = 0; i < 60; i++) graph.insert(add, { to: x, from: y, count: 40 });
        });
        outcomes.push(report.recognition);
        if (k >= 5) expect((await parts[0].read())[0]).toBe(60 * (k + 1));
      }
      expect(outcomes[4]).toBe('played');
      expect(outcomes[7]).toBe('its tasks use parts of data');
      await nothingLeft(runtime, [x, y]);
    });
  });
});

describe('guards', () => {
  const damaged = async (): Promise<string> => {
    const runtime = await Runtime.create(HOST);
    const x = runtime.data(counted(6));
    const part = x.part(2, 2);
    try {
      await soon(
        runtime,
        runtime.run((graph) => {
          graph.insert(fill, { to: part, count: 2, value: 9 });
          graph.insert(increment, { of: x });
        }).done,
      );
      return [...(await x.read()), ...(await part.read())].join(' ');
    } finally {
      await runtime.close();
    }
  };
  const right = '1 2 10 10 5 6 10 10';

  test('with them the results are right', async () => {
    expect(await damaged()).toBe(right);
  });

  test.each(['partTakesOver', 'partOverwrites'] as const)(
    'without %s: a task reads an older version',
    async (guard) => {
      setGuard(guard, false);
      try {
        expect(await damaged().catch(() => 'an error')).not.toBe(right);
      } finally {
        setGuard(guard, true);
      }
    },
  );
});
