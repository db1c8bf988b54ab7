// Names and element types of a parameterised graph are those of its classes.
import { expectTypeOf, it } from 'vitest';
import { choleskyGraph } from '../../algorithms/index.js';
import {
  type ClassNode,
  type FlowLabel,
  list,
  parameterised,
  type Runtime,
  range,
  read,
  readWrite,
  type TaskNode,
  TiledMatrix,
  task,
  temporary,
  write,
} from '../../index.js';

declare const runtime: Runtime;

const make = task({
  name: 'make',
  flows: { x: write('f64') },
  params: { n: 'i32', isLast: 'bool' },
  kernel: 'make',
});
const use = task({ name: 'use', flows: { a: read('f64'), b: readWrite('f32') }, kernel: 'use' });
const gather = task({ name: 'gather', flows: { parts: list(read('f64')) }, kernel: 'gather' });

it('names and element types of the ends', () => {
  parameterised('ends', (graph) => {
    const { producer, consumer } = graph.declare({
      producer: { runs: make, indices: ['i', 'j'], controls: ['go'] },
      consumer: { runs: use, indices: ['k'] },
    });
    producer.x({ i: 0, j: 1 });
    producer.go({ i: 0, j: 1 });
    // @ts-expect-error no such flow
    producer.y({ i: 0, j: 1 });
    // @ts-expect-error no such index
    producer.x({ i: 0, k: 1 });
    // @ts-expect-error an index is missing
    producer.x({ i: 0 });
    // @ts-expect-error an index is a number
    consumer.a({ k: '0' });
    // @ts-expect-error no such class
    graph.declare({ producer: { runs: make, indices: ['i'] } }).other;
    // @ts-expect-error not a task class
    graph.declare({ producer: { runs: 'make', indices: ['i'] } });
  });
});

it('definitions', () => {
  parameterised('definitions', (graph) => {
    const { producer, consumer, all } = graph.declare({
      producer: { runs: make, indices: ['i', 'j'], controls: ['go'] },
      consumer: { runs: use, indices: ['k'] },
      all: { runs: gather, indices: [] },
    });
    const single = runtime.data('f32', 1);
    graph.define(producer, {
      ranges: { i: () => range(0, 3), j: ({ i }) => range(i, 3) },
      flows: {
        x: {
          from: () => temporary('f64', 1),
          to: ({ i, j }) => [consumer.a({ k: i + j }), false, [undefined]],
        },
      },
      controls: { go: { to: ({ i }) => (i > 0 ? producer.go({ i: i - 1, j: 0 }) : undefined) } },
      params: ({ i }) => ({ n: i, isLast: true }),
      device: ({ i }) => (i === 0 ? 'host' : i),
    });
    graph.define(consumer, {
      ranges: { k: () => range(0, 3) },
      flows: { a: { from: ({ k }) => producer.x({ i: k, j: k }) }, b: { from: () => single } },
    });
    graph.define(all, {
      ranges: {},
      flows: { parts: { from: () => [producer.x({ i: 0, j: 0 })] } },
    });
  });
});

it('wrong definitions', () => {
  parameterised('wrong', (graph) => {
    const { producer, consumer, all } = graph.declare({
      producer: { runs: make, indices: ['i', 'j'], controls: ['go'] },
      consumer: { runs: use, indices: ['k'] },
      all: { runs: gather, indices: [] },
    });
    const single = runtime.data('f32', 1);
    const k = { k: () => range(0, 3) };
    const a = { from: () => producer.x({ i: 0, j: 0 }) };
    const b = { from: () => single };
    // @ts-expect-error the flow has elements of f64
    graph.define(consumer, { ranges: k, flows: { a: { from: () => single }, b } });
    // @ts-expect-error the flow has elements of f32
    graph.define(consumer, { ranges: k, flows: { a, b: a } });
    const sent = { from: () => single, to: () => consumer.a({ k: 1 }) };
    // @ts-expect-error the flow has elements of f32, its target of f64
    graph.define(consumer, { ranges: k, flows: { a, b: sent } });
    // @ts-expect-error a flow is missing
    graph.define(consumer, { ranges: k, flows: { a } });
    // @ts-expect-error a range is missing
    graph.define(consumer, { ranges: {}, flows: { a, b } });
    // @ts-expect-error no such index
    graph.define(consumer, { ranges: k, flows: { a, b }, priority: ({ i }) => i });
    // @ts-expect-error the class has no parameters
    graph.define(consumer, { ranges: k, flows: { a, b }, params: () => ({ n: 1 }) });
    const x = { from: () => temporary('f64', 1) };
    const ranges = { i: () => range(0, 3), j: () => range(0, 3) };
    const constant = { n: 1, isLast: true };
    graph.define(producer, {
      ...{ ranges, flows: { x }, params: constant },
      repeats: { j: () => range(1, 2) },
    });
    graph.define(producer, {
      ...{ ranges, flows: { x }, params: constant },
      // @ts-expect-error no such index
      repeats: { k: () => range(1, 2) },
    });
    graph.define(producer, {
      ...{ ranges, flows: { x }, params: constant },
      // @ts-expect-error one index only
      repeats: { i: () => range(1, 2), j: () => range(1, 2) },
    });
    graph.define(producer, {
      ...{ ranges, flows: { x }, params: constant },
      // @ts-expect-error the range depends on no index
      repeats: { i: ({ j }) => range(1, j) },
    });
    // @ts-expect-error a parameter is missing
    graph.define(producer, { ranges, flows: { x }, params: { n: 1 } });
    // @ts-expect-error the parameters are missing
    graph.define(producer, { ranges, flows: { x } });
    graph.define(producer, {
      ranges,
      flows: { x },
      // @ts-expect-error a truth value
      params: () => ({ n: 1, isLast: 1 }),
    });
    graph.define(producer, {
      // @ts-expect-error a range depends on the indices before it only
      ranges: { i: ({ j }) => range(0, j), j: () => range(0, 3) },
      flows: { x },
      params: () => ({ n: 1, isLast: true }),
    });
    graph.define(producer, {
      ranges,
      flows: { x },
      // @ts-expect-error no such control flow
      controls: { come: { from: () => undefined } },
      params: () => ({ n: 1, isLast: true }),
    });
    // @ts-expect-error a list takes an array
    graph.define(all, { ranges: {}, flows: { parts: { from: () => producer.x({ i: 0, j: 0 }) } } });
  });
});

it('what a rank says to look at its own tasks only', () => {
  const A = new TiledMatrix(runtime, 'f64', { rows: 4, tile: 2 });
  const single = runtime.data('f32', 1);
  parameterised('own', (graph) => {
    const { producer, consumer } = graph.declare({
      producer: { runs: make, indices: ['i', 'j'] },
      consumer: { runs: use, indices: ['k'] },
    });
    const common = {
      ranges: { i: () => range(0, 3), j: () => range(0, 6, 2) },
      params: () => ({ n: 1, isLast: true }),
    };
    const x = { from: () => A.at(0, 0), datum: () => A.at(0, 0) };
    graph.define(producer, {
      ...common,
      flows: { x: { ...x, datum: ({ i, j }) => A.at(i, j) } },
      on: ({ i, j }) => A.rankOf(i, j),
      order: ({ i, j }) => 3 * i + j,
      own: { i: (_, rank) => A.ownRows(rank, range(0, 3)), j: ({ i }, rank) => [i, i + rank] },
    });
    // @ts-expect-error no such index
    graph.define(producer, { ...common, flows: { x }, order: ({ k }) => k });
    // @ts-expect-error a position is a number
    graph.define(producer, { ...common, flows: { x }, order: ({ i }) => `${i}` });
    // @ts-expect-error no such index
    graph.define(producer, { ...common, flows: { x }, own: { k: () => range(0, 1) } });
    // @ts-expect-error an own range depends on the indices before it only
    graph.define(producer, { ...common, flows: { x }, own: { i: ({ j }) => range(0, j) } });
    // @ts-expect-error an own range is a range or a list of numbers
    graph.define(producer, { ...common, flows: { x }, own: { i: () => ['0'] } });
    // @ts-expect-error a range has integers for its ends and its step
    range(0, 3, '1');
    // @ts-expect-error the flow has elements of f64
    graph.define(producer, { ...common, flows: { x: { ...x, datum: () => single } } });
    // @ts-expect-error a datum or a rank
    graph.define(producer, { ...common, flows: { x }, on: () => '0' });
    graph.define(consumer, {
      ranges: { k: () => range(0, 3) },
      flows: {
        // @ts-expect-error a flow that is only read leaves no value
        a: { from: () => A.at(0, 0), datum: () => A.at(0, 0) },
        b: { from: () => single, datum: () => single },
      },
    });
  });
});

it('data that tasks of other ranks read as they were before the graph', () => {
  const A = new TiledMatrix(runtime, 'f64', { rows: 4, tile: 2 });
  const single = runtime.data('f32', 1);
  parameterised('inputs', (graph) => {
    const { consumer } = graph.declare({ consumer: { runs: use, indices: ['k'] } });
    const ranges = { i: () => range(0, 3), j: ({ i }: { readonly i: number }) => range(i, 3) };
    const given = { indices: ['i', 'j'], ranges } as const;
    graph.inputs({
      ...given,
      own: { i: (_, rank) => [rank] },
      on: ({ i, j }) => A.rankOf(i, j),
      datum: ({ i, j }) => A.at(i, j),
      to: ({ i, j }) => [consumer.a({ k: i }), j > 0 && consumer.a({ k: j })],
    });
    // @ts-expect-error no such index
    graph.inputs({ ...given, datum: ({ k }) => A.at(k, 0), to: () => undefined });
    // @ts-expect-error no such index of the class
    graph.inputs({ ...given, datum: () => A.at(0, 0), to: ({ i }) => consumer.a({ i }) });
    // @ts-expect-error the datum has elements of f64, the flow of f32
    graph.inputs({ ...given, datum: () => A.at(0, 0), to: () => consumer.b({ k: 0 }) });
    // @ts-expect-error a range is missing
    graph.inputs({ ...given, ranges: {}, datum: () => A.at(0, 0), to: () => undefined });
    graph.inputs({
      ...given,
      // @ts-expect-error no such index
      own: { k: () => [0] },
      datum: () => A.at(0, 0),
      to: () => undefined,
    });
    graph.share(single, A.at(0, 0));
    // @ts-expect-error not a datum
    graph.share(4);
    // @ts-expect-error a matrix is no datum
    graph.share(A);
  });
});

it('why a graph is not local', () => {
  const A = new TiledMatrix(runtime, 'f64', { rows: 4, tile: 2 });
  expectTypeOf(choleskyGraph.whyNotLocal({ A })).toEqualTypeOf<string | undefined>();
  // @ts-expect-error no such argument
  choleskyGraph.whyNotLocal({ B: A });
  // @ts-expect-error the arguments are missing
  choleskyGraph.whyNotLocal();
});

it('arguments of an instance', () => {
  const A = new TiledMatrix(runtime, 'f32', { rows: 4, tile: 2 });
  runtime.run(choleskyGraph, { A });
  void runtime.plan(choleskyGraph, { A }, { name: 'plan' });
  runtime.run((graph) => choleskyGraph.insertInto(graph, { A }) as never);
  // @ts-expect-error no such argument
  runtime.run(choleskyGraph, { B: A });
  // @ts-expect-error the arguments are missing
  runtime.run(choleskyGraph);
  // @ts-expect-error not a matrix
  void runtime.plan(choleskyGraph, { A: 4 });
});

it('class graph and task graph', () => {
  const A = new TiledMatrix(runtime, 'f64', { rows: 4, tile: 2 });
  const classes = choleskyGraph.classGraph({ A });
  expectTypeOf(classes.node('potrf(k)')).toEqualTypeOf<ClassNode>();
  expectTypeOf(classes.graph()).toEqualTypeOf<string>();
  expectTypeOf(classes.edge('potrf(k)', 'trsm(k, i)', 'a -> a')).toEqualTypeOf<FlowLabel>();
  expectTypeOf(choleskyGraph.taskGraph({ A }).node('potrf(k=0)')).toEqualTypeOf<TaskNode>();
  const alone = parameterised('alone', () => {});
  alone.classGraph();
  // @ts-expect-error no such argument
  choleskyGraph.classGraph({ B: A });
  // @ts-expect-error the arguments are missing
  choleskyGraph.taskGraph();
});
