// Code that must not compile: wrong flow names, missing or wrong parameters, wrong element types, writing to a read
// flow.
import { describe, expectTypeOf, it } from 'vitest';
import {
  type BodyArguments,
  type Datum,
  type Graph,
  list,
  type Run,
  type RunReport,
  type Runtime,
  read,
  readWrite,
  reduce,
  type TaskClass,
  type TaskHandle,
  task,
  write,
} from '../../index.js';

declare const runtime: Runtime;
declare const graph: Graph;

const axpy = task({
  name: 'axpy',
  flows: { x: read('f64'), y: readWrite('f64') },
  params: { alpha: 'f64', n: 'i32', fast: 'bool' },
  body: ({ x, y, alpha, n, fast }) => {
    expectTypeOf(x).toEqualTypeOf<Readonly<Float64Array<ArrayBuffer>>>();
    expectTypeOf(y).toEqualTypeOf<Float64Array<ArrayBuffer>>();
    expectTypeOf(alpha).toEqualTypeOf<number>();
    expectTypeOf(n).toEqualTypeOf<number>();
    expectTypeOf(fast).toEqualTypeOf<boolean>();
    y[0] += alpha;
    // @ts-expect-error what is only read cannot be assigned to
    x[0] = 1;
  },
});

describe('task classes', () => {
  it('know their flows and parameters', () => {
    expectTypeOf(axpy).toExtend<
      TaskClass<
        {
          readonly x: { element: 'f64'; mode: 'read' };
          readonly y: { element: 'f64'; mode: 'readWrite' };
        },
        { readonly alpha: 'f64'; readonly n: 'i32'; readonly fast: 'bool' }
      >
    >();
  });

  it('change the elements of reducing flows', () => {
    const count = task({
      name: 'count',
      flows: { total: reduce('i32', 'sum'), each: list(reduce('f32', 'max')) },
      body: ({ total, each }) => {
        expectTypeOf(total).toEqualTypeOf<Int32Array<ArrayBuffer>>();
        expectTypeOf(each).toEqualTypeOf<readonly Float32Array<ArrayBuffer>[]>();
        total[0] += 1;
      },
    });
    const total = runtime.data('i32', 1);
    graph.insert(count, { total, each: [runtime.data('f32', 1)] });
    // @ts-expect-error another element type
    graph.insert(count, { total: runtime.data('f64', 1), each: [] });
    // @ts-expect-error no such operator
    reduce('f64', 'mean');
  });

  it('take and give arrays for lists', () => {
    const gather = task({
      name: 'gather',
      flows: { parts: list(read('f32')), more: list(readWrite('i32')), to: write('f64') },
      explain: (_, { data }) => {
        expectTypeOf(data.parts).toEqualTypeOf<readonly string[]>();
        expectTypeOf(data.to).toEqualTypeOf<string>();
        return '';
      },
      body: ({ parts, more, to }) => {
        expectTypeOf(parts).toEqualTypeOf<readonly Readonly<Float32Array<ArrayBuffer>>[]>();
        expectTypeOf(more).toEqualTypeOf<readonly Int32Array<ArrayBuffer>[]>();
        expectTypeOf(to).toEqualTypeOf<Float64Array<ArrayBuffer>>();
        // @ts-expect-error what is only read cannot be assigned to
        parts[0][0] = 1;
      },
    });
    const single = runtime.data('f32', 1);
    const whole = runtime.data('i32', 1);
    const to = runtime.data('f64', 1);
    graph.insert(gather, { parts: [single, single], more: [], to });
    // @ts-expect-error a list needs an array
    graph.insert(gather, { parts: single, more: [], to });
    // @ts-expect-error a member has the wrong element type
    graph.insert(gather, { parts: [single, whole], more: [whole], to });
    // @ts-expect-error a flow that is no list takes no array
    graph.insert(gather, { parts: [], more: [], to: [to] });
  });

  it('give bodies the arrays of their elements', () => {
    type Arguments = BodyArguments<
      {
        a: { element: 'f32'; mode: 'write' };
        b: { element: 'i32'; mode: 'read' };
        c: { element: 'u32'; mode: 'readWrite' };
        d: { element: 'u8'; mode: 'read' };
      },
      { flag: 'bool' }
    >;
    expectTypeOf<Arguments['a']>().toEqualTypeOf<Float32Array<ArrayBuffer>>();
    expectTypeOf<Arguments['b']>().toEqualTypeOf<Readonly<Int32Array<ArrayBuffer>>>();
    expectTypeOf<Arguments['c']>().toEqualTypeOf<Uint32Array<ArrayBuffer>>();
    expectTypeOf<Arguments['d']>().toEqualTypeOf<Readonly<Uint8Array<ArrayBuffer>>>();
    expectTypeOf<Arguments['flag']>().toEqualTypeOf<boolean>();
  });

  it('refuse element types, modes and parameter types that do not exist', () => {
    // @ts-expect-error no such element type
    read('f16');
    // @ts-expect-error no such parameter type
    task({ name: 'x', flows: {}, params: { n: 'int' }, kernel: 'empty' });
    // @ts-expect-error a flow is made by read, write or readWrite
    task({ name: 'x', flows: { a: 'f64' }, kernel: 'empty' });
    // @ts-expect-error a body's flow has a name
    task({ name: 'x', flows: { a: read('f64') }, body: ({ b }) => b });
    // @ts-expect-error a class has a name
    task({ flows: {}, kernel: 'empty' });
  });

  it('allow asynchronous bodies', () => {
    task({ name: 'x', flows: { a: write('f64') }, body: async ({ a }) => void a.fill(1) });
    // @ts-expect-error a body returns nothing or a promise of nothing
    task({ name: 'x', flows: { a: write('f64') }, body: ({ a }) => a });
  });
});

describe('insertion', () => {
  const x = runtime.data(new Float64Array(4));
  const y = runtime.data('f64', 4);
  const single = runtime.data(new Float32Array(4));

  it('takes all flows and parameters by name', () => {
    const handle = graph.insert(axpy, { x, y, alpha: 1, n: 4, fast: true });
    expectTypeOf(handle).toEqualTypeOf<TaskHandle>();
    graph.insert(
      axpy,
      { x, y, alpha: 1, n: 4, fast: true },
      { priority: 1, device: 'host', after: [handle] },
    );
  });

  it('refuses what is missing or misspelt', () => {
    // @ts-expect-error flow y is missing
    graph.insert(axpy, { x, alpha: 1, n: 4, fast: true });
    // @ts-expect-error parameter alpha is missing
    graph.insert(axpy, { x, y, n: 4, fast: true });
    // @ts-expect-error z is no flow
    graph.insert(axpy, { x, z: y, alpha: 1, n: 4, fast: true });
    // @ts-expect-error beta is no parameter
    graph.insert(axpy, { x, y, alpha: 1, n: 4, fast: true, beta: 2 });
  });

  it('refuses the wrong element type and the wrong kind of parameter', () => {
    // @ts-expect-error x takes f64
    graph.insert(axpy, { x: single, y, alpha: 1, n: 4, fast: true });
    // @ts-expect-error y takes a datum
    graph.insert(axpy, { x, y: new Float64Array(4), alpha: 1, n: 4, fast: true });
    // @ts-expect-error alpha is a number
    graph.insert(axpy, { x, y, alpha: '1', n: 4, fast: true });
    // @ts-expect-error fast is a truth value
    graph.insert(axpy, { x, y, alpha: 1, n: 4, fast: 1 });
    // @ts-expect-error fast takes no datum
    graph.insert(axpy, { x, y, alpha: 1, n: 4, fast: x });
    // @ts-expect-error alpha takes a datum of f64
    graph.insert(axpy, { x, y, alpha: single, n: 4, fast: true });
    // A parameter may be a datum of its type.
    graph.insert(axpy, { x, y, alpha: x, n: 4, fast: true });
  });

  it('refuses options that mean nothing', () => {
    const args = { x, y, alpha: 1, n: 4, fast: true } as const;
    // @ts-expect-error a device is a number or 'host'
    graph.insert(axpy, args, { device: 'gpu' });
    // @ts-expect-error a handle comes from insert
    graph.insert(axpy, args, { after: [3] });
    // @ts-expect-error misspelt
    graph.insert(axpy, args, { prority: 3 });
  });
});

describe('data', () => {
  it('have the element type of their array', () => {
    expectTypeOf(runtime.data(new Float64Array(1))).toEqualTypeOf<Datum<'f64'>>();
    expectTypeOf(runtime.data(new Float32Array(1))).toEqualTypeOf<Datum<'f32'>>();
    expectTypeOf(runtime.data(new Int32Array(1))).toEqualTypeOf<Datum<'i32'>>();
    expectTypeOf(runtime.data(new Uint32Array(1))).toEqualTypeOf<Datum<'u32'>>();
    expectTypeOf(runtime.data(new Uint8Array(1))).toEqualTypeOf<Datum<'u8'>>();
    expectTypeOf(runtime.data('u8', 3)).toEqualTypeOf<Datum<'u8'>>();
    // @ts-expect-error data are not made from plain arrays
    runtime.data([1, 2, 3]);
    // @ts-expect-error no such element
    runtime.data('i64', 3);
  });

  it('are read and set as their own arrays', () => {
    const datum = runtime.data('f32', 3);
    expectTypeOf(datum.read()).resolves.toEqualTypeOf<Float32Array<ArrayBuffer>>();
    datum.set(new Float32Array(3));
    // @ts-expect-error an f32 datum takes a Float32Array
    datum.set(new Float64Array(3));
    // @ts-expect-error a name is fixed
    datum.name = 'other';
  });
});

describe('bodies', () => {
  it('get their graph, their data by flow, and spawn', () => {
    const add = task({
      name: 'add',
      flows: { x: readWrite('f64'), parts: list(read('f32')) },
      params: { by: 'f64' },
      body: ({ x, by }, { data, graph, spawn, temporary }) => {
        expectTypeOf(x).toEqualTypeOf<Float64Array<ArrayBuffer>>();
        expectTypeOf(by).toEqualTypeOf<number>();
        expectTypeOf(data.x).toEqualTypeOf<Datum<'f64'>>();
        expectTypeOf(data.parts).toEqualTypeOf<readonly Datum<'f32'>[]>();
        expectTypeOf(temporary('i32', 3)).toEqualTypeOf<Datum<'i32'>>();
        const other = task({ name: 'o', flows: { y: readWrite('f64') }, body: () => {} });
        spawn(other, { y: data.x });
        graph.insert(other, { y: data.x });
        // @ts-expect-error an f64 flow takes no list of f32
        spawn(other, { y: data.parts });
        // @ts-expect-error no such flow
        data.z;
      },
    });
    expectTypeOf(add.name).toEqualTypeOf<string>();
  });
});

describe('runs', () => {
  it('are awaited for their report', async () => {
    const run = runtime.run(() => {});
    expectTypeOf(run).toEqualTypeOf<Run>();
    expectTypeOf(await run).toEqualTypeOf<RunReport>();
    run.events.on('progress', ({ completed }) => expectTypeOf(completed).toEqualTypeOf<number>());
    run.events.on('end', (report) => expectTypeOf(report).toEqualTypeOf<RunReport>());
    run.events.on('error', (error) => expectTypeOf(error).toEqualTypeOf<Error>());
    // @ts-expect-error no such event
    run.events.on('done', () => {});
    // @ts-expect-error a program is a function of a graph
    runtime.run((wrong: number) => wrong);
  });
});
