// `verify` finds each kind of mistake in an instance and names the tasks, without running any; and finds none in the algorithms.
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  choleskyGraph,
  gemmGraph,
  reduceGraph,
  stencilGraph,
  triangularSolveGraph,
} from '../../../algorithms/index.js';
import {
  type ClassBuilder,
  type GraphProblem,
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
beforeAll(async () => {
  runtime = await Runtime.create({ workers: 1 });
});
afterAll(() => runtime.close());

const make = task({ name: 'make', flows: { x: write('f64') }, body: () => {} });
const look = task({ name: 'look', flows: { x: read('f64') }, body: () => {} });
const change = task({ name: 'change', flows: { x: readWrite('f64') }, body: () => {} });
const both = task({ name: 'both', flows: { x: read('f64'), y: read('f64') }, body: () => {} });
const many = task({ name: 'many', flows: { x: list(read('f64')) }, body: () => {} });

const problems = (build: (graph: ClassBuilder) => void): readonly GraphProblem[] =>
  parameterised('planted', build).verify().problems;
const one = { i: () => range(0, 1) };
const three = { i: () => range(0, 3) };
const fresh = () => temporary('f64', 1);
const value = (name: string) => runtime.data(new Float64Array(1), { name });

test('the algorithms have no problems', () => {
  const matrix = (rows: number, columns = rows) =>
    new TiledMatrix(runtime, 'f64', { rows, columns, tile: 4 });
  const [A, B, C] = [matrix(22), matrix(22, 10), matrix(22, 10)];
  expect(choleskyGraph.verify({ A })).toEqual({ tasks: 56, problems: [] });
  expect(gemmGraph.verify({ A, B, C })).toEqual({ tasks: 6 * 6 * 3, problems: [] });
  expect(triangularSolveGraph.verify({ A, B })).toEqual({ tasks: 21 * 3, problems: [] });
  const blocks = [0, 1, 2, 3].map(() => value('block'));
  const scratch = [0, 1, 2, 3].map(() => value('scratch'));
  const weights = runtime.data(new Float64Array(3));
  for (const steps of [0, 1, 2, 3, 7]) {
    const given = { blocks, scratch, weights, beyond: value('beyond'), steps };
    expect(stencilGraph.verify(given)).toEqual({ tasks: 4 * steps, problems: [] });
  }
  for (const count of [2, 3, 7, 16]) {
    const inputs = Array.from({ length: count }, () => value('input'));
    const found = reduceGraph.verify({ inputs, result: value('result'), operation: 'sum' });
    expect(found).toEqual({ tasks: count - 1, problems: [] });
  }
});

test('an output that no input expects, and an input that no output sends', () => {
  const found = problems((graph) => {
    const { p, c } = graph.declare({
      p: { runs: make, indices: ['i'] },
      c: { runs: look, indices: ['i'] },
    });
    graph.define(p, { ranges: three, flows: { x: { from: fresh, to: ({ i }) => c.x({ i }) } } });
    graph.define(c, {
      ranges: three,
      flows: { x: { from: ({ i }) => p.x({ i: i === 1 ? 2 : i }) } },
    });
  });
  expect(found).toEqual([
    { kind: 'edge', text: "'x' of p(i=1) goes to 'x' of c(i=1), which does not expect it" },
    { kind: 'edge', text: "c(i=1) expects 'x' from 'x' of p(i=2), which does not send it" },
  ]);
});

test('an input that arrives twice', () => {
  const found = problems((graph) => {
    const { p, c } = graph.declare({
      p: { runs: make, indices: ['i'] },
      c: { runs: many, indices: ['i'] },
    });
    graph.define(p, {
      ranges: one,
      flows: { x: { from: fresh, to: () => range(0, 3).map(() => c.x({ i: 0 })) } },
    });
    // A list may take a value twice, not three times.
    graph.define(c, {
      ranges: one,
      flows: { x: { from: () => [p.x({ i: 0 }), p.x({ i: 0 })] } },
    });
  });
  expect(found).toEqual([{ kind: 'edge', text: "'x' of p(i=0) goes twice to 'x' of c(i=0)" }]);
});

test('control flows from one end only', () => {
  const found = problems((graph) => {
    const { p, c } = graph.declare({
      p: { runs: look, indices: ['i'], controls: ['go'] },
      c: { runs: look, indices: ['i'], controls: ['come'] },
    });
    const x = { from: () => value('x') };
    graph.define(p, {
      ranges: three,
      flows: { x },
      controls: { go: { to: ({ i }) => (i < 2 ? c.come({ i: 0 }) : undefined) } },
    });
    graph.define(c, {
      ranges: one,
      flows: { x },
      controls: { come: { from: () => [p.go({ i: 0 }), p.go({ i: 2 })] } },
    });
  });
  expect(found).toEqual([
    {
      kind: 'edge',
      text: "control 'go' of p(i=1) goes to 'come' of c(i=0), which does not expect it",
    },
    {
      kind: 'edge',
      text: "c(i=0) expects control 'come' from 'go' of p(i=2), which does not send it",
    },
  ]);
});

test('a target outside of the ranges, and a first task outside of `starts`', () => {
  const found = problems((graph) => {
    const { p, c } = graph.declare({
      p: { runs: make, indices: ['i'] },
      c: { runs: look, indices: ['i'] },
    });
    graph.define(p, {
      ranges: three,
      starts: { i: () => range(0, 2) },
      flows: { x: { from: fresh, to: ({ i }) => c.x({ i: i + 1 }) } },
    });
    graph.define(c, {
      ranges: { i: () => range(1, 3) },
      flows: { x: { from: ({ i }) => p.x({ i: i - 1 }) } },
    });
  });
  expect(found).toEqual([
    { kind: 'start', text: 'p(i=2) has no input from a task and is not in `starts`' },
    { kind: 'range', text: "'x' of p(i=2) goes to c(i=3), which is outside of its ranges" },
  ]);
});

test('a cycle', () => {
  const found = problems((graph) => {
    const { p } = graph.declare({ p: { runs: change, indices: ['i'] } });
    const next = (i: number) => p.x({ i: (i + 1) % 3 });
    const last = (i: number) => p.x({ i: (i + 2) % 3 });
    graph.define(p, {
      ranges: three,
      flows: { x: { from: ({ i }) => last(i), to: ({ i }) => next(i) } },
    });
  });
  expect(found).toHaveLength(1);
  expect(found[0].kind).toBe('cycle');
  expect(found[0].text).toMatch(
    /tasks wait for each other: (p\(i=(\d)\)) -> p\(i=\d\) -> p\(i=\d\) -> \1$/,
  );
});

test('a cycle through a reader that must come before the writer it waits for', () => {
  const found = problems((graph) => {
    const { p, w, r } = graph.declare({
      p: { runs: make, indices: [] },
      w: { runs: change, indices: [] },
      r: { runs: both, indices: [] },
    });
    graph.define(p, { ranges: {}, flows: { x: { from: fresh, to: () => [w.x({}), r.x({})] } } });
    graph.define(w, { ranges: {}, flows: { x: { from: () => p.x({}), to: () => r.y({}) } } });
    graph.define(r, {
      ranges: {},
      flows: { x: { from: () => p.x({}) }, y: { from: () => w.x({}) } },
    });
  });
  expect(found).toEqual([{ kind: 'cycle', text: 'tasks wait for each other: w() -> r() -> w()' }]);
});

test('two tasks that overwrite one version', () => {
  const found = problems((graph) => {
    const { p, c } = graph.declare({
      p: { runs: make, indices: [] },
      c: { runs: change, indices: ['i'] },
    });
    const x = value('x');
    graph.define(p, {
      ranges: {},
      flows: { x: { from: () => x, to: () => range(0, 2).map((i) => c.x({ i })) } },
    });
    graph.define(c, {
      ranges: { i: () => range(0, 2) },
      flows: { x: { from: () => p.x({}), to: () => x } },
    });
  });
  expect(found).toEqual([{ kind: 'race', text: "c(i=0) and c(i=1) both overwrite 'x' of p()" }]);
});

test('a datum that tasks use without an order', () => {
  const x = value('shared');
  const found = problems((graph) => {
    const { w, r } = graph.declare({
      w: { runs: change, indices: ['i'] },
      r: { runs: look, indices: ['i'] },
    });
    graph.define(w, {
      ranges: { i: () => range(0, 2) },
      flows: { x: { from: () => x, to: () => x } },
    });
    graph.define(r, { ranges: one, flows: { x: { from: () => x } } });
  });
  expect(found).toEqual([
    { kind: 'race', text: "w(i=0) writes datum 'shared' and w(i=1) writes it, in no order" },
    { kind: 'race', text: "w(i=0) writes datum 'shared' and r(i=0) reads it, in no order" },
    { kind: 'race', text: "w(i=1) writes datum 'shared' and r(i=0) reads it, in no order" },
  ]);
});

test('a read of an old value behind the task that overwrites it', () => {
  const x = value('shared');
  const found = problems((graph) => {
    const { w, r } = graph.declare({
      w: { runs: change, indices: [] },
      r: { runs: both, indices: [] },
    });
    graph.define(w, { ranges: {}, flows: { x: { from: () => x, to: () => [r.x({}), x] } } });
    graph.define(r, { ranges: {}, flows: { x: { from: () => w.x({}) }, y: { from: () => x } } });
  });
  expect(found).toEqual([
    { kind: 'race', text: "w() comes before r(), which needs an older value of datum 'shared'" },
  ]);
});

test('a temporary that no task reads, and a datum whose last version does not come home', () => {
  const found = problems((graph) => {
    const { p, c } = graph.declare({
      p: { runs: make, indices: ['i'] },
      c: { runs: change, indices: ['i'] },
    });
    const y = value('kept');
    graph.define(p, { ranges: one, flows: { x: { from: fresh } } });
    graph.define(c, {
      ranges: { i: () => range(0, 2) },
      flows: {
        x: {
          from: ({ i }) => (i === 0 ? y : c.x({ i: 0 })),
          to: ({ i }) => i === 0 && c.x({ i: 1 }),
        },
      },
    });
  });
  expect(found).toEqual([
    { kind: 'temporary', text: "no task reads the temporary that p(i=0) leaves, 'x' of p(i=0)" },
    {
      kind: 'home',
      text: "datum 'kept' gets its last version from 'x' of c(i=1), which does not send it home",
    },
  ]);
});

test('parameters that the task class does not have, and parts of data', () => {
  const scale = task({
    name: 'scale',
    flows: { x: readWrite('f64') },
    params: { by: 'f64' },
    body: () => {},
  });
  const found = (runs: unknown, more: object, x = value('x')): string => {
    try {
      return problems((graph) => {
        const { p } = graph.declare({ p: { runs: runs as typeof scale, indices: [] } });
        const flows = { x: { from: () => x, to: () => x } };
        graph.define(p, { ranges: {}, flows, ...more } as never);
      })
        .map(({ text }) => text)
        .join();
    } catch (error) {
      return (error as Error).message;
    }
  };
  const by = { by: 1 };
  expect(found(scale, { params: by })).toBe('');
  const unknown = "'Bye', which is no parameter of task class 'scale'";
  expect(found(scale, { params: { ...by, Bye: 2 } })).toContain(unknown);
  expect(found(scale, { params: () => ({ ...by, Bye: 2 }) })).toContain(unknown);
  expect(found(change, { params: by })).toMatch(/`params`.*'change' has no parameters/);
  const whole = runtime.data(new Float64Array(4), { name: 'whole' });
  const part = whole.part(0, 2);
  expect(found(change, {}, part)).toContain("part 'whole[0..1]'");
  expect(found(change, {}, whole)).toContain("datum 'whole', which has parts");
  part.close();
  expect(found(change, {}, whole)).toBe('');
});

test('an instance that is too large', () => {
  expect(() =>
    problems((graph) => {
      const { p } = graph.declare({ p: { runs: look, indices: ['i'] } });
      const x = value('x');
      graph.define(p, { ranges: { i: () => range(0, 10_001) }, flows: { x: { from: () => x } } });
    }),
  ).toThrow(/the instance has more than 10000 tasks \(verify or draw a smaller one\)/);
});

test('a class that does not repeat as it promises', () => {
  const [x, y] = [value('x'), value('y')];
  const found = (first: number, end: number) =>
    problems((graph) => {
      const { p } = graph.declare({ p: { runs: change, indices: ['i', 'j'] } });
      // Two chains, of six tasks and of four.
      const last = (j: number) => (j === 0 ? 5 : 3);
      const home = (j: number) => (j === 0 ? x : y);
      graph.define(p, {
        ranges: { i: () => range(0, 6), j: ({ i }) => range(0, i <= last(1) ? 2 : 1) },
        repeats: { i: () => range(first, end) },
        flows: {
          x: {
            from: ({ i, j }) => (i === 0 ? home(j) : p.x({ i: i - 1, j })),
            to: ({ i, j }) => (i === last(j) ? home(j) : p.x({ i: i + 1, j })),
          },
        },
      });
    });
  const ends = "which is not the same moved by one step, as `repeats` of 'i' promises";
  expect(found(1, 3)).toEqual([]);
  expect(found(9, 3)).toEqual([]);
  const begin = `\`from\` of flow 'x' of p(i=1, j=0) returns 'x' of p(i=0, j=0) and that of p(i=0, j=0) datum 'x', ${ends}`;
  expect(found(0, 3)).toEqual([
    { kind: 'repeat', text: begin },
    { kind: 'repeat', text: begin.replaceAll('j=0', 'j=1').replace("datum 'x'", "datum 'y'") },
  ]);
  const long = found(1, 6).map(({ kind, text }) => `${kind}: ${text}`);
  expect(long).toEqual([
    `repeat: \`to\` of flow 'x' of p(i=3, j=1) returns datum 'y' and that of p(i=2, j=1) 'x' of p(i=3, j=1), ${ends}`,
    `repeat: range of 'j' of p(i=4) returns range(0, 1) and that of p(i=3) range(0, 2), ${ends}`,
    `repeat: \`to\` of flow 'x' of p(i=5, j=0) returns datum 'x' and that of p(i=4, j=0) 'x' of p(i=5, j=0), ${ends}`,
  ]);
});
