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
