// Mistakes of a parameterised graph end the run with an error that names the tasks, and a graph that cannot go on says who waits
// for what. The runtime stays usable.
import { expect, test } from 'vitest';
import {
  type ClassBuilder,
  type Datum,
  type Graph,
  type HeadraceError,
  parameterised,
  Runtime,
  range,
  read,
  readWrite,
  task,
  temporary,
  write,
} from '../../../index.js';

const make = task({ name: 'make', flows: { x: write('f64') }, body: () => {} });
const look = task({ name: 'look', flows: { x: read('f64') }, body: () => {} });
const change = task({ name: 'change', flows: { x: readWrite('f64') }, body: () => {} });
const join = task({ name: 'join', flows: { x: read('f64'), y: read('f64') }, body: () => {} });

/** The error of an instance, in its own words. */
async function errorOf(
  build: (graph: ClassBuilder, runtime: Runtime) => void,
): Promise<HeadraceError> {
  const runtime = await Runtime.create({ workers: 1, checked: true });
  try {
    const error: unknown = await runtime
      .run(
        parameterised<Runtime>('wrong', (graph, rt) => build(graph, rt)),
        runtime,
      )
      .done.then(
        () => undefined,
        (reason: unknown) => reason,
      );
    const data = runtime.data(Float64Array.of(1));
    await runtime.run((graph) => void graph.insert(change, { x: data }));
    expect([...(await data.read())]).toEqual([1]);
    return error as HeadraceError;
  } finally {
    await runtime.close();
  }
}

const one = { i: () => range(0, 1) };

test('an output that no input expects', async () => {
  const error = await errorOf((graph, runtime) => {
    const x = runtime.data('f64', 1);
    const y = runtime.data(new Float64Array(1));
    const { p, c } = graph.declare({
      p: { runs: make, indices: ['i'] },
      c: { runs: look, indices: ['i'] },
    });
    graph.define(p, { ranges: one, flows: { x: { from: () => x, to: () => c.x({ i: 0 }) } } });
    graph.define(c, { ranges: one, flows: { x: { from: () => y } } });
  });
  expect(error.code).toBe('ERR_GRAPH_EDGE');
  expect(error.message).toMatch(/p\(i=0\) sends 'x' to 'x' of c\(i=0\), which does not expect it/);
});

test('an input that no output sends', async () => {
  const error = await errorOf((graph, runtime) => {
    const x = runtime.data('f64', 1);
    const { p, c } = graph.declare({
      p: { runs: make, indices: ['i'] },
      c: { runs: join, indices: ['i'] },
    });
    graph.define(p, {
      ranges: { i: () => range(0, 2) },
      flows: { x: { from: () => temporary('f64', 1), to: ({ i }) => i === 0 && c.x({ i: 0 }) } },
    });
    graph.define(c, {
      ranges: one,
      flows: { x: { from: () => p.x({ i: 0 }) }, y: { from: () => p.x({ i: 1 }) } },
    });
    void x;
  });
  expect(error.code).toBe('ERR_GRAPH_STALLED');
  expect(error.message).toContain("c(i=0) waits for 'y' from 'x' of p(i=1)");
});

test('tasks that wait for each other', async () => {
  const error = await errorOf((graph) => {
    const { a, b } = graph.declare({
      a: { runs: change, indices: ['i'] },
      b: { runs: change, indices: ['i'] },
    });
    graph.define(a, {
      ranges: one,
      flows: { x: { from: () => b.x({ i: 0 }), to: () => b.x({ i: 0 }) } },
    });
    graph.define(b, {
      ranges: one,
      flows: { x: { from: () => a.x({ i: 0 }), to: () => a.x({ i: 0 }) } },
    });
  });
  expect(error.code).toBe('ERR_GRAPH_STALLED');
  expect(error.message).toContain("1 of 1 tasks of 'a' got no input");
});

test('an input that arrives twice', async () => {
  const error = await errorOf((graph) => {
    const { p, c } = graph.declare({
      p: { runs: make, indices: ['i'] },
      c: { runs: look, indices: ['i'] },
    });
    const twice = () => [c.x({ i: 0 }), c.x({ i: 0 })];
    graph.define(p, {
      ranges: one,
      flows: { x: { from: () => temporary('f64', 1), to: twice } },
    });
    graph.define(c, { ranges: one, flows: { x: { from: () => p.x({ i: 0 }) } } });
  });
  expect(error.code).toBe('ERR_GRAPH_EDGE');
  expect(error.message).toMatch(/p\(i=0\) sends 'x' twice to 'x' of c\(i=0\)/);
});

test('a target outside of its range', async () => {
  const error = await errorOf((graph) => {
    const { p, c } = graph.declare({
      p: { runs: make, indices: ['i'] },
      c: { runs: look, indices: ['i', 'j'] },
    });
    graph.define(p, {
      ranges: one,
      flows: { x: { from: () => temporary('f64', 1), to: () => c.x({ i: 0, j: 7 }) } },
    });
    graph.define(c, {
      ranges: { ...one, j: ({ i }) => range(i, i + 3) },
      flows: { x: { from: ({ i }) => p.x({ i }) } },
    });
  });
  expect(error.code).toBe('ERR_GRAPH_RANGE');
  expect(error.message).toMatch(/p\(i=0\) sends to c\(i=0, j=7\), whose j is outside of its range/);
});

test('two tasks that overwrite one version', async () => {
  const error = await errorOf((graph) => {
    const { p, c } = graph.declare({
      p: { runs: make, indices: ['i'] },
      c: { runs: change, indices: ['i'] },
    });
    graph.define(p, {
      ranges: one,
      flows: {
        x: { from: () => temporary('f64', 1), to: () => range(0, 2).map((i) => c.x({ i })) },
      },
    });
    graph.define(c, {
      ranges: { i: () => range(0, 2) },
      flows: { x: { from: () => p.x({ i: 0 }) } },
    });
  });
  expect(error.code).toBe('ERR_GRAPH_VERSION');
  expect(error.message).toMatch(/c\(i=0\) and c\(i=1\) both overwrite version 1/);
});

test('a read of a datum that another task has overwritten', async () => {
  const error = await errorOf((graph, runtime) => {
    const x = runtime.data(new Float64Array(1), { name: 'shared' });
    const { p, c } = graph.declare({
      p: { runs: change, indices: ['i'] },
      c: { runs: look, indices: ['i'] },
    });
    graph.define(p, { ranges: one, flows: { x: { from: () => x, to: () => x } } });
    graph.define(c, { ranges: one, flows: { x: { from: () => x } } });
  });
  expect(error.code).toBe('ERR_GRAPH_VERSION');
  expect(error.message).toMatch(/c\(i=0\) uses datum 'shared' .*but p\(i=0\) has overwritten it/);
});

test('sources and targets that are none, and a temporary that is read', async () => {
  const wrong = async (from: unknown, to: unknown): Promise<string> => {
    const error = await errorOf((graph) => {
      const { p } = graph.declare({ p: { runs: change, indices: ['i'] } });
      graph.define(p, { ranges: one, flows: { x: { from: () => from, to: () => to } } } as never);
    });
    expect(error.code).toBe('ERR_GRAPH_EDGE');
    return error.message;
  };
  expect(await wrong(undefined, false)).toMatch(/flow 'x' of p\(i=0\) comes from undefined/);
  expect(await wrong(temporary('f64', 1), false)).toMatch(/comes from a temporary/);
});

test('classes that are declared twice, not defined, or of other graphs', () => {
  const built = (build: (graph: ClassBuilder) => void) => () =>
    parameterised('wrong', build).instance();
  expect(built((graph) => void graph.declare({ p: { runs: make, indices: [] } }))).toThrow(
    /class 'p' of graph 'wrong' is declared and not defined/,
  );
  expect(built((graph) => void graph.declare({ p: { runs: make, indices: ['i', 'i'] } }))).toThrow(
    /two indices called 'i'/,
  );
  expect(
    built((graph) => void graph.declare({ p: { runs: make, indices: [], controls: ['x'] } })),
  ).toThrow(/two flows or controls called 'x'/);
  expect(built((graph) => graph.define({} as never, {} as never))).toThrow(/no declared class/);
  expect(
    built((graph) => {
      const { p } = graph.declare({ p: { runs: make, indices: ['i'] } });
      graph.define(p, { ranges: {}, flows: {} } as never);
    }),
  ).toThrow(/needs a function as its range of 'i'/);
});

test.each([
  async () => {},
  async () => {
    await null;
    throw new Error('nobody awaits this');
  },
])('a builder that returns a promise', async (build) => {
  const error = await errorOf(build);
  expect(error.code).toBe('ERR_GRAPH_CLASS');
  expect(error.message).toMatch(/the function that builds graph 'wrong' returns a promise/);
});

test.each([null, undefined, {}, 7])('an instance that is inserted into %j', (wrong) => {
  const empty = parameterised('empty', () => {});
  expect(() => empty.insertInto(wrong as never)).toThrow(
    expect.objectContaining({
      code: 'ERR_ARGUMENT_TYPE',
      message: expect.stringContaining("graph 'empty' is inserted into the graph of a run"),
    }),
  );
});

test('a mistake leaves the run with the tasks before it, and the first of two mistakes is reported', async () => {
  await using runtime = await Runtime.create({ workers: 1 });
  const closed = runtime.data(Float64Array.of(1), { name: 'gone' });
  closed.close();
  const pass = task({
    name: 'pass',
    flows: { x: readWrite('f64'), y: read('f64') },
    kernel: 'empty',
  });
  const [length, wrongEnd] = [100, 70];
  /** Task `wrongEnd` sends its output nowhere; task `usesClosed` uses a closed datum. */
  const broken = parameterised<{ usesClosed: number }>('broken', (graph, { usesClosed }) => {
    const { step } = graph.declare({ step: { runs: pass, indices: ['i'] } });
    graph.define(step, {
      ranges: { i: () => range(0, length) },
      starts: { i: () => range(0, 1) },
      flows: {
        x: {
          from: ({ i }) => (i === 0 ? x : step.x({ i: i - 1 })),
          to: ({ i }) => (i === wrongEnd ? ('nowhere' as never) : step.x({ i: i + 1 })),
        },
        y: { from: ({ i }) => (i === usesClosed ? closed : y) },
      },
    });
  });
  const [x, y] = [0, 1].map((value) => runtime.data(Float64Array.of(value)));
  for (const [usesClosed, code, tasks] of [
    [-1, 'ERR_GRAPH_EDGE', wrongEnd + 1],
    [wrongEnd + 1, 'ERR_GRAPH_EDGE', wrongEnd + 1],
    [wrongEnd, 'ERR_DATUM_CLOSED', wrongEnd],
    [wrongEnd - 3, 'ERR_DATUM_CLOSED', wrongEnd - 3],
    [5, 'ERR_DATUM_CLOSED', 5],
  ] as const) {
    let thrown: unknown;
    const report = await runtime.run((graph) => {
      try {
        broken.insertInto(graph, { usesClosed });
      } catch (error) {
        thrown = error;
      }
    });
    expect(thrown).toMatchObject({ code });
    expect(report.tasks, `task ${usesClosed} uses a closed datum`).toBe(tasks);
  }
});

test('a rank that does not exist, in a checked run on one rank', async () => {
  const error = await errorOf((graph, runtime) => {
    const x = runtime.data(new Float64Array(1));
    const { p } = graph.declare({ p: { runs: change, indices: ['i'] } });
    graph.define(p, { ranges: one, on: () => 7, flows: { x: { from: () => x, to: () => x } } });
  });
  expect(error).toMatchObject({ code: 'ERR_NO_RANK', details: { task: 'p(i=0)', limit: 1 } });
});

test('a part of a datum, whose other parts no edge shows', async () => {
  const error = await errorOf((graph, runtime) => {
    const x = runtime.data(new Float64Array(4), { name: 'x' });
    const { p } = graph.declare({ p: { runs: change, indices: ['i'] } });
    graph.define(p, {
      ranges: { i: () => range(0, 3) },
      flows: { x: { from: ({ i }) => x.part(i, 1) } },
    });
  });
  expect(error.code).toBe('ERR_PART');
  expect(error.message).toMatch(/class 'change' uses part 'x\[\d\.\.\d\]'.*parameterised graph/);
});

test('a part that a body has made', async () => {
  const pieces = parameterised<{ of: Datum<'f64'> }>('pieces', (graph, { of }) => {
    const { p } = graph.declare({ p: { runs: change, indices: ['i'] } });
    graph.define(p, {
      ranges: { i: () => range(0, 3) },
      flows: { x: { from: ({ i }) => of.part(i, 1) } },
    });
  });
  const parent = task({
    name: 'parent',
    flows: { x: readWrite('f64') },
    body: (_, { data, graph }) => void pieces.insertInto(graph as Graph, { of: data.x }),
  });
  const runtime = await Runtime.create({ workers: 1, checked: true });
  try {
    const x = runtime.data(new Float64Array(4), { name: 'x' });
    const run = runtime.run((graph) => void graph.insert(parent, { x }));
    await expect(run).rejects.toMatchObject({
      cause: { code: 'ERR_PART', message: expect.stringMatching(/uses part 'x\[0\.\.0\]'/) },
    });
  } finally {
    await runtime.close();
  }
});

test('a class that does not repeat as it promises, in a checked run', async () => {
  const error = await errorOf((graph, runtime) => {
    const x = runtime.data(new Float64Array(1), { name: 'x' });
    const { p } = graph.declare({ p: { runs: change, indices: ['i'] } });
    graph.define(p, {
      ranges: { i: () => range(0, 400) },
      starts: { i: () => range(0, 1) },
      repeats: { i: () => range(1, 400) },
      flows: {
        x: {
          from: ({ i }) => (i === 0 ? x : p.x({ i: i - 1 })),
          to: ({ i }) => (i === 399 ? x : p.x({ i: i + 1 })),
        },
      },
    });
  });
  expect(error).toMatchObject({ code: 'ERR_GRAPH_REPEAT', details: { task: 'p(i=399)' } });
  expect(error.message).toContain(
    "`to` of flow 'x' of p(i=399) returns datum 'x' and that of p(i=398) 'x' of p(i=399), which is not the same moved by one step",
  );
});

test('an index that repeats is one of the class, and its range has steps of 1', async () => {
  const codeOf = async (repeats: object): Promise<string> => {
    const { code, message } = await errorOf((graph, runtime) => {
      const x = runtime.data(new Float64Array(1));
      const { p } = graph.declare({ p: { runs: look, indices: ['i', 'j'] } });
      const ranges = { ...one, j: () => range(0, 1) };
      graph.define(p, { ranges, repeats: repeats as never, flows: { x: { from: () => x } } });
    });
    return `${code}: ${message}`;
  };
  expect(await codeOf({ k: () => range(0, 1) })).toMatch(/^ERR_OPTION: .*`repeats`.* have no 'k'/);
  expect(await codeOf({})).toMatch(/^ERR_GRAPH_CLASS: .* needs one index in its `repeats`, not 0/);
  const both = { i: () => range(0, 1), j: () => range(0, 1) };
  expect(await codeOf(both)).toMatch(/^ERR_GRAPH_CLASS: .* not 2/);
  expect(await codeOf({ i: 7 })).toMatch(/^ERR_GRAPH_CLASS: .* needs a function as its `repeats`/);
  for (const wrong of [() => range(0, 4, 2), () => [0, 1]])
    expect(await codeOf({ i: wrong })).toMatch(
      /^ERR_GRAPH_CLASS: `repeats` of 'i' of .*steps of 1/,
    );
});

test('values of parameters that a class gives once', async () => {
  const scale = task({
    name: 'scale',
    flows: { x: readWrite('f64') },
    params: { by: 'i32' },
    body: () => {},
  });
  const error = await errorOf((graph, runtime) => {
    const x = runtime.data(new Float64Array(1));
    const { p } = graph.declare({ p: { runs: scale, indices: ['i'] } });
    graph.define(p, { ranges: one, params: { by: 0.5 }, flows: { x: { from: () => x } } });
  });
  expect(error.code).toBe('ERR_ARGUMENT_TYPE');
  expect(error.message).toBe(
    "`params` of class 'p' have 0.5 as 'by'; it must be an integer of 32 bits",
  );
});
