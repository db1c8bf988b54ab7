// Mistakes in the functions of a parameterised graph: the run and `verify` name the class, the function and the indices.
import { describe, expect, it } from 'vitest';
import {
  type Datum,
  HeadraceError,
  type ParameterisedGraph,
  parameterised,
  type Runtime,
  range,
  readWrite,
  TiledMatrix,
  task,
} from '../../../index.js';
import { HOSTS, nothingLeft, onMachine, soon } from '../../support/machines.js';

const work = task({ name: 'work', flows: { x: readWrite('f64') }, kernel: 'empty' });
const scaled = task({
  name: 'scaled',
  flows: { x: readWrite('f64') },
  params: { by: 'i32' },
  kernel: 'empty',
});
const { options } = HOSTS[0];

type Of = { readonly i: number };
type Functions = Readonly<Record<string, unknown>>;
type World = { readonly runtime: Runtime; readonly d: readonly Datum<'f64'>[] };

/** Four tasks, each on a datum of its own, with other functions. */
function four({ d }: World, x: Functions, more: Functions = {}): ParameterisedGraph {
  return parameterised('four', (graph) => {
    const runs = 'params' in more ? scaled : work;
    const { step } = graph.declare({ step: { runs, indices: ['i'], controls: ['c'] } });
    const flows = { x: { from: ({ i }: Of) => d[i], to: ({ i }: Of) => d[i], ...x } };
    graph.define(step, { ranges: { i: () => range(0, 4) }, flows, ...more } as never);
  });
}

interface Mistake {
  readonly name: string;
  readonly graph: (world: World) => ParameterisedGraph;
  readonly code: string;
  readonly text: string;
}

const MISTAKES: readonly Mistake[] = [
  {
    name: 'a row that is missing',
    graph: (world) => four(world, { from: ({ i }: Of) => [[world.d[0]]][i][0] }),
    code: 'ERR_GRAPH_CLASS',
    text: "`from` of flow 'x' of step(i=1) failed: Cannot read properties of undefined (reading '0')",
  },
  {
    name: 'a tile outside of the matrix',
    graph: (world) => {
      const A = new TiledMatrix(world.runtime, 'f64', { rows: 2, tile: 2, name: 'A' });
      const graph = four(world, { from: ({ i }: Of) => A.at(i, 0), to: ({ i }: Of) => A.at(i, 0) });
      setImmediate(() => A.close());
      return graph;
    },
    code: 'ERR_NO_TILE',
    text: "`from` of flow 'x' of step(i=1) failed: matrix 'A' has no tile (1, 0)",
  },
  {
    name: 'a datum that is closed',
    graph: (world) => {
      const gone = world.runtime.data(new Float64Array(2), { name: 'gone' });
      gone.close();
      return four(world, { from: ({ i }: Of) => (i === 2 ? gone : world.d[i]) });
    },
    code: 'ERR_DATUM_CLOSED',
    text: "`from` of flow 'x' of step(i=2) returns datum 'gone', which is closed",
  },
  {
    name: 'a datum of other elements',
    graph: (world) => {
      const narrow = world.runtime.data('f32', 2, { name: 'narrow' });
      setImmediate(() => narrow.close());
      return four(world, { from: ({ i }: Of) => (i === 3 ? narrow : world.d[i]) });
    },
    code: 'ERR_ARGUMENT_TYPE',
    text: "`from` of flow 'x' of step(i=3) returns datum 'narrow' of f32, and the flow takes f64",
  },
  {
    name: 'a parameter that is not whole',
    graph: (world) => four(world, {}, { params: ({ i }: Of) => ({ by: i / 2 }) }),
    code: 'ERR_ARGUMENT_TYPE',
    text: "`params` of step(i=1) returns 0.5 as 'by'; it must be an integer of 32 bits",
  },
  {
    name: 'a parameter that is misspelt',
    graph: (world) => four(world, {}, { params: () => ({ By: 1 }) }),
    code: 'ERR_ARGUMENT_TYPE',
    text: "`params` of step(i=0) returns undefined as 'by'; it must be an integer of 32 bits",
  },
  {
    name: 'a range of what is no number',
    graph: (world) => four(world, {}, { ranges: { i: () => range(0, Number.NaN) } }),
    code: 'ERR_ARGUMENT_TYPE',
    text: "range of 'i' of class 'step' failed: a range needs two integers, not 0 and NaN",
  },
  {
    name: 'an array in place of a range',
    graph: (world) => four(world, {}, { ranges: { i: () => ({ first: 0 }) } }),
    code: 'ERR_GRAPH_CLASS',
    text: "range of 'i' of class 'step' returns an object; it must be a range, such as range(0, 10)",
  },
  {
    name: 'a priority that is no integer',
    graph: (world) => four(world, {}, { priority: ({ i }: Of) => (i === 0 ? 1 : 1 / i - 0.5) }),
    code: 'ERR_GRAPH_CLASS',
    text: '`priority` of step(i=1) returns 0.5; it must be an integer of 32 bits',
  },
  {
    name: 'a control flow to a number',
    graph: (world) => four(world, {}, { controls: { c: { to: ({ i }: Of) => i } } }),
    code: 'ERR_GRAPH_EDGE',
    text: "`to` of control 'c' of step(i=0) returns 0; it must be control flows of other tasks",
  },
  {
    name: 'a home that is too short',
    graph: (world) => {
      const short = world.runtime.data(new Float64Array(1), { name: 'short' });
      setImmediate(() => short.close());
      return four(world, { to: ({ i }: Of) => (i === 1 ? [world.d[1], short] : world.d[i]) });
    },
    code: 'ERR_GRAPH_EDGE',
    text: "'x' of step(i=1) goes home to datum 'short' of 1 elements of f64, and has 2 elements of f64",
  },
];

async function inWorld(use: (world: World) => Promise<void>): Promise<void> {
  await onMachine(options, async (runtime) => {
    const d = [0, 1, 2, 3].map((i) => runtime.data(new Float64Array(2), { name: `d${i}` }));
    await use({ runtime, d });
    await nothingLeft(runtime, d);
  });
}

describe('a mistake in a function of a class', () => {
  it.each(MISTAKES)('$name: the run names it', async ({ graph, code, text }) => {
    await inWorld(async (world) => {
      const run = world.runtime.run(graph(world), undefined);
      const error = await soon(
        world.runtime,
        run.then(
          () => undefined,
          (e: unknown) => e,
        ),
      );
      expect(error).toBeInstanceOf(HeadraceError);
      expect(error).toMatchObject({ code, message: expect.stringContaining(text) });
      await new Promise((resolve) => setImmediate(resolve));
    });
  });

  it.each(MISTAKES)(
    '$name: verify reports it or throws the same error',
    async ({ graph, text }) => {
      await inWorld(async (world) => {
        const one = graph(world);
        let words: string;
        try {
          words = one
            .verify(undefined)
            .problems.map((problem) => problem.text)
            .join('\n');
        } catch (error) {
          words = (error as HeadraceError).message;
        }
        expect(words).toContain(text);
        await new Promise((resolve) => setImmediate(resolve));
      });
    },
  );

  it('`starts` that are too small: a checked run finds the tasks that would be left out', async () => {
    await inWorld(async (world) => {
      const graph = four(world, {}, { starts: { i: () => range(0, 3) } });
      expect(graph.verify(undefined).problems.map(({ kind }) => kind)).toEqual(['start']);
      const run = world.runtime.run(graph, undefined);
      await expect(soon(world.runtime, run)).rejects.toMatchObject({
        code: 'ERR_GRAPH_STALLED',
        message: expect.stringContaining(
          "1 of 4 tasks of 'step' got no input, and are not in its `starts`",
        ),
      });
    });
  });

  it('the arguments are wrong: the graph is named', async () => {
    await inWorld(async ({ runtime }) => {
      const graph = parameterised('solve', (_, { A }: { A: unknown }) => void A);
      const wrong = undefined as never;
      for (const use of [() => graph.verify(wrong), () => graph.whyNotLocal(wrong)])
        expect(use).toThrow(/graph 'solve' cannot be built from its arguments/);
      await expect(soon(runtime, runtime.run(graph, wrong))).rejects.toMatchObject({
        code: 'ERR_GRAPH_CLASS',
      });
    });
  });
});
