// The class graph and the task graph of an instance: nodes, flows, and edges of which only one end is written.
import { alg } from '@dagrejs/graphlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { choleskyGraph } from '../../../algorithms/index.js';
import {
  type ClassBuilder,
  list,
  parameterised,
  Runtime,
  range,
  read,
  readWrite,
  TiledMatrix,
  task,
  temporary,
  write,
} from '../../../index.js';

let runtime: Runtime;
let A: TiledMatrix<'f64'>;
beforeAll(async () => {
  runtime = await Runtime.create({ workers: 1 });
  A = new TiledMatrix(runtime, 'f64', { rows: 16, tile: 4 });
});
afterAll(() => runtime.close());

const make = task({ name: 'make', flows: { x: write('f64') }, body: () => {} });
const change = task({ name: 'change', flows: { y: readWrite('f64') }, body: () => {} });
const many = task({ name: 'many', flows: { all: list(read('f64')) }, body: () => {} });
const fresh = () => temporary('f64', 1);
const planted = (build: (graph: ClassBuilder) => void) => parameterised('planted', build);

test('the class graph of Cholesky has its four classes and the eight flows between them', () => {
  const graph = choleskyGraph.classGraph({ A });
  expect(graph.graph()).toBe('cholesky');
  expect([graph.isDirected(), graph.isMultigraph()]).toEqual([true, true]);
  expect(graph.nodes()).toEqual(['potrf(k)', 'trsm(k, i)', 'syrk(k, i)', 'gemm(k, i, j)']);
  expect(graph.nodes().map((name) => graph.node(name).tasks)).toEqual([4, 6, 6, 4]);
  expect(graph.node('gemm(k, i, j)')).toEqual({
    class: 'gemm',
    runs: 'gemm',
    indices: ['k', 'i', 'j'],
    tasks: 4,
  });
  const flows = graph.edges().map(({ v, w, name }) => {
    const { count, unmatched, isControl } = graph.edge(v, w, name);
    expect([unmatched, isControl]).toEqual([0, false]);
    return `${v} ${name} ${w}: ${count}`;
  });
  expect(flows.sort()).toEqual([
    'gemm(k, i, j) c -> b trsm(k, i): 3',
    'gemm(k, i, j) c -> c gemm(k, i, j): 1',
    'potrf(k) a -> a trsm(k, i): 6',
    'syrk(k, i) c -> a potrf(k): 3',
    'syrk(k, i) c -> c syrk(k, i): 3',
    'trsm(k, i) b -> a gemm(k, i, j): 4',
    'trsm(k, i) b -> a syrk(k, i): 6',
    'trsm(k, i) b -> b gemm(k, i, j): 4',
  ]);
});

test('the task graph of Cholesky is that of its loops', () => {
  const graph = choleskyGraph.taskGraph({ A });
  const edges: string[] = [];
  const nt = 4;
  for (let k = 0; k < nt; k++) {
    if (k > 0) edges.push(`syrk(k=${k - 1}, i=${k}) c -> a potrf(k=${k})`);
    for (let i = k + 1; i < nt; i++) {
      edges.push(`potrf(k=${k}) a -> a trsm(k=${k}, i=${i})`);
      if (k > 0) edges.push(`gemm(k=${k - 1}, i=${i}, j=${k}) c -> b trsm(k=${k}, i=${i})`);
      edges.push(`trsm(k=${k}, i=${i}) b -> a syrk(k=${k}, i=${i})`);
      if (k > 0) edges.push(`syrk(k=${k - 1}, i=${i}) c -> c syrk(k=${k}, i=${i})`);
      for (let j = k + 1; j < i; j++) {
        const gemm = `gemm(k=${k}, i=${i}, j=${j})`;
        edges.push(`trsm(k=${k}, i=${i}) b -> a ${gemm}`, `trsm(k=${k}, i=${j}) b -> b ${gemm}`);
        if (k > 0) edges.push(`gemm(k=${k - 1}, i=${i}, j=${j}) c -> c ${gemm}`);
      }
    }
  }
  expect(graph.nodeCount()).toBe(20);
  expect(
    graph
      .edges()
      .map(({ v, w, name }) => `${v} ${name} ${w}`)
      .sort(),
  ).toEqual(edges.sort());
  expect(alg.isAcyclic(graph)).toBe(true);
  expect(graph.node('gemm(k=0, i=2, j=1)')).toEqual({
    class: 'gemm',
    runs: 'gemm',
    indices: { k: 0, i: 2, j: 1 },
  });
});

test('a control flow is an edge of its own, and a value that a list takes twice one edge that counts', () => {
  const graph = planted((build) => {
    const { p, c } = build.declare({
      p: { runs: make, indices: [], controls: ['go'] },
      c: { runs: many, indices: ['i'], controls: ['come'] },
    });
    build.define(p, {
      ranges: {},
      flows: { x: { from: fresh, to: () => [c.all({ i: 0 }), c.all({ i: 0 }), c.all({ i: 1 })] } },
      controls: { go: { to: () => c.come({ i: 1 }) } },
    });
    build.define(c, {
      ranges: { i: () => range(0, 2) },
      flows: { all: { from: ({ i }) => (i === 0 ? [p.x({}), p.x({})] : [p.x({})]) } },
      controls: { come: { from: ({ i }) => i === 1 && p.go({}) } },
    });
  });
  expect(graph.verify().problems).toEqual([]);
  const classes = graph.classGraph();
  expect(classes.edge('p()', 'c(i)', 'x -> all')).toEqual({
    ...{ output: 'x', input: 'all', isControl: false, count: 3, unmatched: 0 },
  });
  expect(classes.edge('p()', 'c(i)', 'go -> come')).toEqual({
    ...{ output: 'go', input: 'come', isControl: true, count: 1, unmatched: 0 },
  });
  const tasks = graph.taskGraph();
  expect(tasks.edge('p()', 'c(i=0)', 'x -> all').count).toBe(2);
  expect(tasks.edge('p()', 'c(i=1)', 'x -> all').count).toBe(1);
  expect(tasks.edgeCount()).toBe(3);
});

test('an edge that only one of its ends names is there, and marked, whichever end it is', () => {
  const graph = planted((build) => {
    const { p, c } = build.declare({
      p: { runs: make, indices: ['i'], controls: ['go'] },
      c: { runs: change, indices: ['i'], controls: ['come'] },
    });
    const ranges = { i: () => range(0, 3) };
    // 0: both ends; 1: the sender alone; 2: the receiver alone; 3 is outside of the ranges.
    build.define(p, {
      ranges,
      flows: { x: { from: fresh, to: ({ i }) => (i === 2 ? c.y({ i: 3 }) : c.y({ i })) } },
      controls: { go: { to: ({ i }) => i === 0 && c.come({ i: 1 }) } },
    });
    build.define(c, {
      ranges,
      flows: { y: { from: ({ i }) => (i === 1 ? p.x({ i: 7 }) : p.x({ i })) } },
      controls: { come: { from: ({ i }) => i === 2 && p.go({ i: 0 }) } },
    });
  });
  expect(graph.verify().problems).toHaveLength(6);
  const tasks = graph.taskGraph();
  const unmatched = tasks
    .edges()
    .map(({ v, w, name }) => `${v} ${name} ${w} ${tasks.edge(v, w, name).unmatched}`);
  expect(unmatched.sort()).toEqual([
    'p(i=0) go -> come c(i=1) 1',
    'p(i=0) go -> come c(i=2) 1',
    'p(i=0) x -> y c(i=0) 0',
    'p(i=1) x -> y c(i=1) 1',
    'p(i=2) x -> y c(i=2) 1',
  ]);
  expect(graph.classGraph().edge('p(i)', 'c(i)', 'x -> y')).toMatchObject({
    ...{ count: 3, unmatched: 2 },
  });
});

test('classes without tasks are nodes, and names of properties of objects are names like others', () => {
  const graph = planted((build) => {
    const classes = build.declare({ constructor: { runs: change, indices: ['i'] } });
    const cls = classes.constructor;
    build.define(cls, {
      ranges: { i: () => range(0, 0) },
      flows: { y: { from: ({ i }) => cls.y({ i }) } },
    });
  });
  const classes = graph.classGraph();
  expect(classes.nodes()).toEqual(['constructor(i)']);
  expect(classes.node('constructor(i)').tasks).toBe(0);
  expect(graph.taskGraph().nodeCount()).toBe(0);
});

test('an end of another instance is a problem, not an edge', () => {
  let other: ((of: { readonly i: number }) => never) | undefined;
  const build = (graph: ClassBuilder): void => {
    const { c } = graph.declare({ c: { runs: change, indices: ['i'] } });
    other ??= c.y as never;
    const foreign = other;
    graph.define(c, {
      ranges: { i: () => range(0, 2) },
      flows: { y: { from: ({ i }) => foreign({ i }), to: ({ i }) => foreign({ i }) } },
    });
  };
  planted(build).verify();
  const { problems } = planted(build).verify();
  expect(problems.map(({ kind }) => kind)).toEqual(['edge', 'edge', 'edge', 'edge']);
  expect(problems[0].text).toBe("'y' of c(i=0) goes to c(i=0) of another instance");
  expect(planted(build).classGraph().edgeCount()).toBe(0);
});
