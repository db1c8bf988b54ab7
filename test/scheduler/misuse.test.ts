// Every mistake of a program gets its documented error, from the call with the mistake, and changes nothing.
import { describe, expect, it } from 'vitest';
import { reduceGraph } from '../../algorithms/index.js';
import {
  type Datum,
  type Graph,
  HeadraceError,
  Runtime,
  type RuntimeOptions,
  read,
  readWrite,
  squareGrid,
  TiledMatrix,
  task,
  write,
} from '../../index.js';
import { GPUS, HOSTS, nothingLeft, onMachine, soon } from '../support/machines.js';
import { add, copy, fill, spin } from '../support/tasks.js';

const COUNT = 16;
const options = HOSTS[0].options;

function thrown(action: () => unknown): HeadraceError {
  try {
    action();
  } catch (error) {
    if (error instanceof HeadraceError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

/** Makes one mistake inside a program that is otherwise fine; the rest of the program runs. */
async function mistake(
  makeIt: (runtime: Runtime, graph: Graph, good: Datum<'f64'>) => unknown,
  more: RuntimeOptions = {},
): Promise<HeadraceError> {
  return await onMachine({ ...options, ...more }, async (runtime) => {
    const good = runtime.data(new Float64Array(COUNT), { name: 'good' });
    const one = runtime.data(new Float64Array(COUNT).fill(1), { name: 'one' });
    let error: HeadraceError | undefined;
    const report = await soon(
      runtime,
      runtime.run((graph) => {
        graph.insert(add, { to: good, from: one, count: COUNT });
        error = thrown(() => makeIt(runtime, graph, good));
        graph.insert(add, { to: good, from: one, count: COUNT });
      }),
    );
    expect(report.tasks).toBe(2);
    expect(await good.read()).toEqual(new Float64Array(COUNT).fill(2));
    return error as HeadraceError;
  });
}

const anything = (value: unknown): never => value as never;

describe('Graph.insert', () => {
  it.each([
    [
      'a missing datum',
      { count: COUNT, value: 1 },
      'ERR_MISSING_ARGUMENT',
      "needs a datum for flow 'to'",
    ],
    ['null', { to: null, count: COUNT, value: 1 }, 'ERR_ARGUMENT_TYPE', "flow 'to' needs a datum"],
    [
      'an array',
      { to: new Float64Array(1), count: COUNT, value: 1 },
      'ERR_ARGUMENT_TYPE',
      "flow 'to' needs a datum, not an object",
    ],
    [
      'a string',
      { to: 'good', count: COUNT, value: 1 },
      'ERR_ARGUMENT_TYPE',
      "flow 'to' needs a datum, not 'good'",
    ],
  ])('refuses %s for a flow', async (_, args, code, message) => {
    const error = await mistake((_runtime, graph) => graph.insert(fill, anything(args)));
    expect(error.code).toBe(code);
    expect(error.message).toContain(message);
    expect(error.message).toContain("task class 'fill'");
  });

  it.each([
    ['a missing parameter', { value: 1 }, 'ERR_MISSING_ARGUMENT', "needs parameter 'count'"],
    [
      'a string',
      { count: '16', value: 1 },
      'ERR_ARGUMENT_TYPE',
      "parameter 'count' cannot be '16'",
    ],
    [
      'a fraction for an integer',
      { count: 1.5, value: 1 },
      'ERR_ARGUMENT_TYPE',
      "parameter 'count' cannot be 1.5",
    ],
    [
      'an integer of more than 32 bits',
      { count: 2 ** 31, value: 1 },
      'ERR_ARGUMENT_TYPE',
      "parameter 'count' cannot be 2147483648",
    ],
    [
      'not a number for an integer',
      { count: Number.NaN, value: 1 },
      'ERR_ARGUMENT_TYPE',
      "parameter 'count' cannot be NaN",
    ],
    [
      'null',
      { count: COUNT, value: null },
      'ERR_ARGUMENT_TYPE',
      "parameter 'value' cannot be null",
    ],
  ])('refuses %s as a parameter', async (_, args, code, message) => {
    const error = await mistake((_r, graph, good) =>
      graph.insert(fill, anything({ to: good, ...args })),
    );
    expect(error.code).toBe(code);
    expect(error.message).toContain(message);
  });

  it('refuses arguments that the class does not have; in checked runs at any insertion', async () => {
    const args = (good: Datum<'f64'>): never =>
      anything({ to: good, count: 1, value: 1, valeu: 2 });
    const error = await mistake((_r, graph, good) => graph.insert(fill, args(good)));
    expect(error).toMatchObject({
      code: 'ERR_UNKNOWN_ARGUMENT',
      message:
        "task class 'fill' has no flow or parameter 'valeu' (its arguments are to, count, value)",
    });
    await onMachine({ ...options, checked: true }, async (runtime) => {
      const good = runtime.data(new Float64Array(COUNT));
      const run = runtime.run((graph) => {
        for (let i = 0; i < 40; i++) graph.insert(fill, { to: good, count: 1, value: 1 });
        graph.insert(fill, { to: good, count: 1, value: 1 }, anything({ prio: 1, priority: 1 }));
      });
      await expect(soon(runtime, run)).rejects.toThrow("have no 'prio'");
      const other = runtime.run((graph) => void graph.insert(fill, args(good)));
      await expect(soon(runtime, other)).rejects.toMatchObject({ code: 'ERR_UNKNOWN_ARGUMENT' });
      good.close();
    });
  });

  it('refuses the wrong element type', async () => {
    const error = await mistake((runtime, graph) => {
      const wrong = runtime.data(new Float32Array(COUNT), { name: 'single' });
      graph.insert(fill, anything({ to: wrong, count: COUNT, value: 1 }));
    });
    expect(error.code).toBe('ERR_ARGUMENT_TYPE');
    expect(error.message).toContain("flow 'to' takes f64, but datum 'single' is f32");
  });

  it('refuses a datum of another runtime', async () => {
    await onMachine(options, async (other) => {
      const foreign = other.data(new Float64Array(COUNT), { name: 'foreign' });
      const error = await mistake((_r, graph) =>
        graph.insert(fill, { to: foreign, count: COUNT, value: 1 }),
      );
      expect(error).toMatchObject({ code: 'ERR_FOREIGN_DATUM', details: { datum: 'foreign' } });
    });
  });

  it('refuses a closed datum', async () => {
    const error = await mistake((runtime, graph) => {
      const closed = runtime.data(new Float64Array(COUNT), { name: 'gone' });
      closed.close();
      expect(closed.closed).toBe(true);
      graph.insert(fill, { to: closed, count: COUNT, value: 1 });
    });
    expect(error).toMatchObject({ code: 'ERR_DATUM_CLOSED', details: { datum: 'gone' } });
  });

  it('refuses to read a datum that was never written', async () => {
    for (const mode of [read('f64'), readWrite('f64')]) {
      const reader = task({ name: 'reader', flows: { from: mode }, kernel: 'empty' });
      const error = await mistake((runtime, graph) => {
        const empty = runtime.data('f64', COUNT, { name: 'empty' });
        graph.insert(reader, anything({ from: empty }));
      });
      expect(error).toMatchObject({ code: 'ERR_NEVER_WRITTEN', details: { datum: 'empty' } });
    }
  });

  it('refuses one datum for two flows when one of them writes; reading twice is fine', async () => {
    const error = await mistake((_r, graph, good) =>
      graph.insert(copy, { to: good, from: good, bytes: 8 }),
    );
    expect(error).toMatchObject({ code: 'ERR_DUPLICATE_DATUM', details: { datum: 'good' } });
    expect(error.message).toContain("flows 'to' and 'from' are both datum 'good'");
    const many = task({
      name: 'many',
      flows: Object.fromEntries(
        Array.from({ length: 40 }, (_, i) => [`f${i}`, i === 39 ? readWrite('f64') : read('f64')]),
      ),
      kernel: 'empty',
    });
    const wide = await mistake((_r, graph, good) =>
      graph.insert(many, Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`f${i}`, good]))),
    );
    expect(wide.code).toBe('ERR_DUPLICATE_DATUM');
    await onMachine(options, async (runtime) => {
      const twice = task({
        name: 'twice',
        flows: { a: read('f64'), b: read('f64') },
        kernel: 'empty',
      });
      const datum = runtime.data(new Float64Array(COUNT));
      expect(
        (await runtime.run((graph) => void graph.insert(twice, { a: datum, b: datum }))).tasks,
      ).toBe(1);
      await nothingLeft(runtime, [datum]);
    });
  });

  it('refuses an unknown kernel and a device that does not exist or has no body', async () => {
    const unknown = task({
      name: 'unknown',
      flows: { of: readWrite('f64') },
      kernel: 'no_such_kernel',
    });
    const error = await mistake((_r, graph, good) => graph.insert(unknown, { of: good }));
    expect(error.code).toBe('ERR_UNKNOWN_KERNEL');
    expect(error.message).toContain("'no_such_kernel'");
    for (const device of [0, -1, 1.5, Number.NaN]) {
      const none = await mistake((_r, graph) =>
        graph.insert(spin, { microseconds: 1 }, { device }),
      );
      expect(none.code).toBe('ERR_NO_DEVICE');
      expect(none.message).toContain('has none');
    }
    const two = { gpus: 2, gpuMemory: '64KiB' };
    const third = await mistake(
      (_r, graph) => graph.insert(spin, { microseconds: 1 }, { device: 2 }),
      two,
    );
    expect(third.message).toContain('GPUs 0 to 1');
    const scriptOnly = task({
      name: 'script only',
      flows: { of: readWrite('f64') },
      body: () => {},
    });
    const noBody = await mistake(
      (_r, graph, good) => graph.insert(scriptOnly, { of: good }, { device: 1 }),
      two,
    );
    expect(noBody).toMatchObject({
      code: 'ERR_NO_DEVICE',
      message: expect.stringContaining("'script only' has no body for"),
    });
  });

  it('refuses tasks for a run that is over', async () => {
    await onMachine(options, async (runtime) => {
      let kept: Graph | undefined;
      await runtime.run((graph) => {
        kept = graph;
        graph.insert(spin, { microseconds: 1 });
      });
      const error = thrown(() => (kept as Graph).insert(spin, { microseconds: 1 }));
      expect(error.code).toBe('ERR_RUN_OVER');
    });
  });

  it('gives the reason of the failure after the run has failed', async () => {
    await onMachine(options, async (runtime) => {
      let again: unknown;
      const run = runtime.run((graph) => {
        run0.cancel = () => graph.insert(spin, { microseconds: 1 });
        throw new Error('no more');
      });
      await expect(run).rejects.toThrow('no more');
      try {
        run0.cancel();
      } catch (error) {
        again = error;
      }
      expect((again as HeadraceError).message).toContain('no more');
    });
  });
});

const run0: { cancel: () => unknown } = { cancel: () => undefined };

describe('task', () => {
  it('refuses classes without name or body, and one name for two things', () => {
    expect(thrown(() => task({ name: '', flows: {}, kernel: 'empty' })).code).toBe(
      'ERR_TASK_CLASS',
    );
    expect(thrown(() => task({ name: 'idle', flows: {} })).message).toContain("'idle' has no body");
    const fetch = 'later' as 'pull';
    expect(
      thrown(() => task({ name: 'idle', flows: { x: read('f64', { fetch }) }, kernel: 'empty' })),
    ).toMatchObject({ code: 'ERR_OPTION', message: expect.stringContaining("'later'") });
    expect(thrown(() => task({ name: 'idle', flows: {}, gpuKernel: false })).code).toBe(
      'ERR_TASK_CLASS',
    );
    const both = thrown(() =>
      task({ name: 'both', flows: { x: read('f64') }, params: { x: 'f64' }, kernel: 'empty' }),
    );
    expect(both.message).toContain("flow and a parameter named 'x'");
    const parts = { name: 'parts', flows: {}, kernel: 'empty' };
    expect(thrown(() => task(anything({ ...parts, prams: {} })))).toMatchObject({
      code: 'ERR_TASK_CLASS',
      message: expect.stringMatching(
        /^task class 'parts' has 'prams' \(its parts are name, flows, /,
      ),
    });
    const flow = anything({ element: 'f64', mode: 'read', fetsch: 'pull' });
    expect(thrown(() => task({ ...parts, flows: { x: flow } })).message).toContain(
      "'parts' has 'fetsch' in its flow 'x'",
    );
    for (const make of [read, readWrite])
      expect(thrown(() => make('f64', anything({ mode: 'write' }))).code).toBe('ERR_OPTION');
    const cuda = { source: '', function: 'f', arguments: [], grid: 1, block: 1, blocks: 2 };
    expect(thrown(() => task(anything({ ...parts, cuda }))).message).toContain("it has 'blocks'");
  });
});

describe('Runtime', () => {
  it.each([
    [{ workers: 0 }, 'workers'],
    [{ workers: 1.5 }, 'workers'],
    [{ gpus: -1 }, 'gpus'],
    [{ gpus: 31 }, 'gpus'],
    [{ driver: 'opencl' }, 'driver'],
    [{ gpuMemory: 'much' }, 'gpuMemory'],
    [{ gpuMemory: 0 }, 'gpuMemory'],
    [{ gpuMemory: '511B' }, 'gpuMemory'],
    [{ gpuMemory: '12 parsecs' }, 'gpuMemory'],
    [{ hostMemory: -5 }, 'hostMemory'],
    [{ computeStreams: 0 }, 'computeStreams'],
    [{ window: 100 }, 'window'],
    [{ window: 2 }, 'window'],
    [{ runAhead: 3 }, 'runAhead'],
  ])('refuses options %j', async (wrong, named) => {
    const error = await Runtime.create(wrong as RuntimeOptions).then(
      () => undefined,
      (e: unknown) => e as HeadraceError,
    );
    expect(error).toBeInstanceOf(HeadraceError);
    expect(error?.code).toBe('ERR_OPTION');
    expect(error?.message).toContain(named);
  });

  it('refuses data of nothing', async () => {
    await onMachine(options, async (runtime) => {
      for (const length of [0, -1, 1.5, Number.NaN, 2 ** 60]) {
        expect(thrown(() => runtime.data('f64', length)).code).toBe('ERR_OPTION');
      }
      expect(thrown(() => runtime.data(new Float64Array(0))).code).toBe('ERR_OPTION');
      for (const wrong of [
        [1, 2],
        'f16',
        new Int8Array(3),
        new DataView(new ArrayBuffer(8)),
        undefined,
        null,
      ]) {
        expect(thrown(() => runtime.data(anything(wrong))).code).toBe('ERR_ARGUMENT_TYPE');
      }
      expect(thrown(() => runtime.data('f64', 4, { device: 3 })).code).toBe('ERR_NO_DEVICE');
    });
  });

  it('refuses a missing GPU driver', async () => {
    const error = (await Runtime.create({ driver: 'cuda', gpus: 1 }).then(
      async (runtime) => {
        await runtime.close();
        return undefined;
      },
      (e: unknown) => e,
    )) as HeadraceError | undefined;
    // A machine with CUDA opens it.
    if (error !== undefined) expect(error.code).toBe('ERR_NO_GPU');
  });

  it('is of no use once closed', async () => {
    const runtime = await Runtime.create(options);
    const datum = runtime.data(new Float64Array(COUNT));
    await runtime.close();
    await runtime.close();
    expect(thrown(() => runtime.data(new Float64Array(1))).code).toBe('ERR_RUNTIME_CLOSED');
    expect(thrown(() => runtime.run(() => {})).code).toBe('ERR_RUNTIME_CLOSED');
    expect(thrown(() => runtime.loadKernels('x.so')).code).toBe('ERR_RUNTIME_CLOSED');
    await expect(datum.read()).rejects.toMatchObject({ code: 'ERR_RUNTIME_CLOSED' });
    await expect(datum.set(new Float64Array(COUNT))).rejects.toMatchObject({
      code: 'ERR_RUNTIME_CLOSED',
    });
    expect(thrown(() => datum.advise('host')).code).toBe('ERR_RUNTIME_CLOSED');
    datum.close();
  });

  it('refuses kernel libraries that are not there or not kernel libraries', async () => {
    await onMachine(options, async (runtime) => {
      for (const wrong of ['/no/such/library.so', process.execPath]) {
        expect(thrown(() => runtime.loadKernels(wrong)).code).toBe('ERR_KERNEL_LIBRARY');
      }
    });
  });

  it('reports that host memory is full, and continues after data were closed', async () => {
    await onMachine({ ...options, hostMemory: 64 * 512 }, async (runtime) => {
      const data = Array.from({ length: 64 }, () => runtime.data(new Float64Array(64)));
      expect(thrown(() => runtime.data(new Float64Array(64), { name: 'one more' }))).toMatchObject({
        code: 'ERR_OUT_OF_HOST_MEMORY',
        details: { datum: 'one more', bytes: 512, limit: 64 * 512 },
      });
      const born = runtime.data('f64', 64, { name: 'born' });
      const run = runtime.run(
        (graph) => void graph.insert(fill, { to: born, count: 64, value: 1 }),
      );
      await expect(soon(runtime, run)).rejects.toMatchObject({
        code: 'ERR_OUT_OF_HOST_MEMORY',
        message: expect.stringContaining("for 'born', but host memory is full"),
      });
      data.pop()?.close();
      await soon(runtime, runtime.engine.quiet());
      await soon(
        runtime,
        runtime.run((graph) => void graph.insert(fill, { to: born, count: 64, value: 2 })),
      );
      expect((await born.read())[0]).toBe(2);
      await nothingLeft(runtime, [...data, born]);
    });
  });

  it('opens 63 runs at a time', async () => {
    await onMachine({ ...options, window: 1024 }, async (runtime) => {
      let open = (): void => {};
      const wait = new Promise<void>((resolve) => {
        open = resolve;
      });
      const runs = Array.from({ length: 63 }, () => runtime.run(() => wait));
      expect(thrown(() => runtime.run(() => {})).code).toBe('ERR_TOO_MANY_RUNS');
      open();
      await Promise.all(runs.map((run) => run.done));
      await runtime.run(() => {});
    });
  });
});

describe('Datum', () => {
  it('refuses to be read or set when that makes no sense', async () => {
    await onMachine(options, async (runtime) => {
      const datum = runtime.data('f64', COUNT, { name: 'datum' });
      await expect(datum.read()).rejects.toMatchObject({ code: 'ERR_NEVER_WRITTEN' });
      await expect(datum.set(new Float64Array(3))).rejects.toMatchObject({
        code: 'ERR_ARGUMENT_TYPE',
      });
      await expect(datum.set(anything(new Float32Array(COUNT)))).rejects.toMatchObject({
        code: 'ERR_ARGUMENT_TYPE',
      });
      await datum.set(new Float64Array(COUNT).fill(4));
      expect(await datum.read()).toEqual(new Float64Array(COUNT).fill(4));
      expect(thrown(() => datum.advise(0)).code).toBe('ERR_NO_DEVICE');
      datum.close();
      datum.close();
      await expect(datum.read()).rejects.toMatchObject({ code: 'ERR_DATUM_CLOSED' });
      await expect(datum.set(new Float64Array(COUNT))).rejects.toMatchObject({
        code: 'ERR_DATUM_CLOSED',
      });
      expect(thrown(() => datum.locations()).code).toBe('ERR_DATUM_CLOSED');
      await nothingLeft(runtime, []);
    });
  });

  it('takes the values of the array at the call, and returns new arrays', async () => {
    await onMachine(options, async (runtime) => {
      const source = new Float64Array(COUNT).fill(1);
      const datum = runtime.data(source);
      source.fill(2);
      const first = await datum.read();
      expect(first[0]).toBe(1);
      first.fill(3);
      expect((await datum.read())[0]).toBe(1);
      const values = new Float64Array(COUNT).fill(5);
      const set = datum.set(values);
      values.fill(6);
      await set;
      expect((await datum.read())[0]).toBe(5);
      await nothingLeft(runtime, [datum]);
    });
  });

  it('counts the elements of an array, whatever its own property `length` says', async () => {
    await onMachine(options, async (runtime) => {
      const says = (length: unknown, ...values: number[]): Float64Array<ArrayBuffer> =>
        Object.defineProperty(Float64Array.of(...values), 'length', { value: length });
      for (const length of [0, 2, 5, 1.5, undefined]) {
        const datum = runtime.data(says(length, 1, 2, 3));
        expect([...(await datum.read())]).toEqual([1, 2, 3]);
        await datum.set(says(length, 4, 5, 6));
        expect([...(await datum.read())]).toEqual([4, 5, 6]);
        await expect(datum.set(says(3, 7, 8))).rejects.toMatchObject({
          code: 'ERR_ARGUMENT_TYPE',
          message: expect.stringContaining('not 2 elements of f64'),
        });
        datum.close();
      }
      await nothingLeft(runtime, []);
    });
  });

  it.each([
    ['f64', Float64Array.of(1.5, -0, Number.NaN, Number.POSITIVE_INFINITY)],
    ['f32', Float32Array.of(1.5, -0, Number.NaN)],
    ['i32', Int32Array.of(-1, 2 ** 31 - 1, 0)],
    ['u32', Uint32Array.of(2 ** 32 - 1, 0)],
    ['u8', Uint8Array.of(255, 0, 7)],
  ] as const)('keeps %s bit for bit', async (element, values) => {
    await onMachine(GPUS[0].options, async (runtime) => {
      const datum: Datum = runtime.data(values as Float64Array);
      expect([datum.element, datum.length, datum.bytes]).toEqual([
        element,
        values.length,
        values.byteLength,
      ]);
      const through = task({
        name: 'through',
        flows: { of: { element, mode: 'readWrite' } as const },
        kernel: 'empty',
      });
      await soon(
        runtime,
        runtime.run((graph) => void graph.insert(through, { of: datum } as never)),
      );
      const back = await datum.read();
      expect(Buffer.from(back.buffer, back.byteOffset, back.byteLength)).toEqual(
        Buffer.from(values.buffer, values.byteOffset, values.byteLength),
      );
      await nothingLeft(runtime, [datum]);
    });
  });
});

describe('TiledMatrix', () => {
  it('refuses sizes, grids and tiles that do not exist', async () => {
    await onMachine(options, async (runtime) => {
      for (const wrong of [
        { rows: 0, tile: 4 },
        { rows: 4, tile: 0 },
        { rows: 4.5, tile: 2 },
        { rows: 4, columns: -1, tile: 2 },
      ]) {
        expect(thrown(() => new TiledMatrix(runtime, 'f64', wrong)).code).toBe('ERR_OPTION');
      }
      for (const grid of [{ rows: 1, columns: 1, blockRow: 2 }, null, 7])
        expect(
          thrown(() => new TiledMatrix(runtime, 'f64', anything({ rows: 4, tile: 2, grid }))),
        ).toMatchObject({
          code: 'ERR_OPTION',
          message: expect.stringContaining('the grid of matrix'),
        });
      for (const grid of [
        { rows: 2, columns: 1 },
        { rows: 0, columns: 1 },
        { rows: 1.5, columns: 1 },
      ]) {
        expect(thrown(() => new TiledMatrix(runtime, 'f64', { rows: 4, tile: 2, grid })).code).toBe(
          'ERR_UNDISTRIBUTED',
        );
      }
      const lower = new TiledMatrix(runtime, 'f64', { rows: 9, tile: 2, lower: true, name: 'L' });
      expect(lower.tileRows).toBe(5);
      expect([lower.rowsOf(4), lower.columnsOf(0)]).toEqual([1, 2]);
      for (const [i, j] of [
        [0, 1],
        [5, 0],
        [-1, 0],
        [0.5, 0],
      ]) {
        expect(thrown(() => lower.at(i, j))).toMatchObject({
          code: 'ERR_NO_TILE',
          message: expect.stringContaining('lower triangle only'),
        });
      }
      lower.close();
      lower.close();
      await nothingLeft(runtime, []);
    });
  });

  it('is distributed block-cyclically', async () => {
    await onMachine({ ...GPUS[2].options }, async (runtime) => {
      const matrix = new TiledMatrix(
        runtime,
        'f64',
        { rows: 8, columns: 12, tile: 2 },
        (v) => void v.fill(1),
      );
      expect(matrix.grid).toMatchObject({ rows: 2, columns: 2 });
      const touch = task({ name: 'touch', flows: { of: readWrite('f64') }, kernel: 'empty' });
      await soon(
        runtime,
        runtime.run((graph) => {
          for (let i = 0; i < 4; i++)
            for (let j = 0; j < 6; j++) graph.insert(touch, { of: matrix.at(i, j) });
        }),
      );
      for (let i = 0; i < 4; i++) {
        for (let j = 0; j < 6; j++)
          expect(matrix.at(i, j).locations()).toEqual([runtime.gpus[(i % 2) * 2 + (j % 2)]]);
      }
      expect(await matrix.read()).toEqual(new Float64Array(96).fill(1));
      matrix.close();
      await nothingLeft(runtime, []);
    });
  });

  it('reads back its values, column by column, edge tiles included', async () => {
    await onMachine(GPUS[1].options, async (runtime) => {
      const matrix = new TiledMatrix(
        runtime,
        'f32',
        { rows: 7, columns: 5, tile: 3 },
        (values, row, column, rows, columns) => {
          for (let c = 0; c < columns; c++)
            for (let r = 0; r < rows; r++) values[c * rows + r] = (row + r) * 10 + column + c;
        },
      );
      expect(matrix.bytes).toBe(35 * 4);
      const all = await matrix.read();
      expect([...all]).toEqual(
        Array.from({ length: 35 }, (_, at) => (at % 7) * 10 + Math.floor(at / 7)),
      );
      matrix.close();
      await nothingLeft(runtime, []);
    });
  });
});

describe('errors', () => {
  it('travel as JSON with code, facts and cause', () => {
    const error = new HeadraceError('ERR_X', 'went wrong', {
      task: 'a #1',
      remedy: 'do it right',
      cause: new HeadraceError('ERR_Y', 'because', { bytes: 3 }),
    });
    expect(error.message).toBe('went wrong (do it right)');
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({
      code: 'ERR_X',
      task: 'a #1',
      cause: { code: 'ERR_Y', bytes: 3 },
    });
    const plain = new HeadraceError('ERR_X', 'went wrong', { cause: 'text' });
    expect(plain.toJSON()).toMatchObject({ cause: { message: 'text' } });
  });

  it('a write flow needs no value', async () => {
    await onMachine(options, async (runtime) => {
      const born = task({
        name: 'born',
        flows: { to: write('u8') },
        body: ({ to }) => void to.fill(9),
      });
      const datum = runtime.data('u8', 3);
      await soon(
        runtime,
        runtime.run((graph) => void graph.insert(born, { to: datum })),
      );
      expect([...(await datum.read())]).toEqual([9, 9, 9]);
      await nothingLeft(runtime, [datum]);
    });
  });
});

describe('functions that take data, sizes and grids', () => {
  it.each([undefined, null, 5, {}, 'x'])('graph.check and graph.owns refuse %j', async (value) => {
    for (const call of ['check', 'owns'] as const) {
      const error = await mistake((_, graph) => graph[call](anything(value), true as never));
      expect(error.code).toBe('ERR_ARGUMENT_TYPE');
      expect(error.message).toContain(`graph.${call} takes a datum, not`);
    }
  });

  it.each([0, -1, 1.5, Number.NaN, Infinity, '4', undefined])('squareGrid refuses %j', (n) => {
    expect(thrown(() => squareGrid(anything(n))).code).toBe('ERR_OPTION');
  });

  it('a matrix takes its values from a function only', async () => {
    await onMachine(options, async (runtime) => {
      const of = { rows: 4, tile: 2 };
      const error = thrown(() => new TiledMatrix(runtime, 'f64', of, anything([1])));
      expect(error.code).toBe('ERR_ARGUMENT_TYPE');
      await nothingLeft(runtime, []);
    });
  });

  it('reduceGraph names the argument that is wrong', async () => {
    await onMachine(options, async (runtime) => {
      const x = runtime.data(new Float64Array(1));
      for (const args of [{}, { inputs: [x, 5], result: x }, { inputs: [x, x], result: null }]) {
        const error = thrown(() => reduceGraph.verify(anything({ operation: 'sum', ...args })));
        expect(error.code).toBe('ERR_ARGUMENT_TYPE');
        expect(error.message).toContain('reduceGraph: ');
      }
      await nothingLeft(runtime, [x]);
    });
  });
});
