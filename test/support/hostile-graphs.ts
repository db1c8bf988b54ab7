// The parts of parameterised graphs, as places for values that may be wrong.
import { parameterised, range, temporary } from '../../index.js';
import { as, each, type Give, type Place, places, type World, wide } from './hostile-place.js';

type Definition = Record<string, unknown>;

/** A chain of two tasks with a part of its definition replaced. */
function chain(
  change: (definition: Definition, world: World) => Definition,
  declaration: object = {},
): (world: World) => unknown {
  return (world) => {
    const graph = parameterised('chain', (builder) => {
      const { step } = builder.declare(
        as({ step: { runs: wide, indices: ['i'], controls: ['c'], ...declaration } }),
      ) as unknown as { step: { to: (of: object) => never } };
      const definition: Definition = {
        ranges: { i: () => range(0, 2) },
        flows: {
          to: {
            from: ({ i }: { i: number }) => (i === 0 ? world.z : step.to({ i: 0 })),
            to: ({ i }: { i: number }) => (i === 0 ? step.to({ i: 1 }) : world.z),
          },
        },
        params: () => ({ real: 1, whole: 1, yes: true }),
      };
      builder.define(step as never, as(change(definition, world)));
    });
    graph.verify(undefined as never);
    graph.classGraph(undefined as never);
    graph.whyNotLocal(undefined as never);
    return world.runtime.run(graph, undefined as never);
  };
}

/** The chain with a part of its definition that the value replaces. */
function defined(change: (value: unknown) => object): Give {
  return (world, value) => chain((definition) => ({ ...definition, ...change(value) }))(world);
}

function inFlow(change: (value: unknown) => object): Give {
  return (world, value) =>
    chain((definition) => {
      const { to } = definition['flows'] as { to: object };
      return { ...definition, flows: { to: { ...to, ...change(value) } } };
    })(world);
}

export const GRAPH_PLACES: readonly Place[] = [
  ...places('parameterised', {
    'name of a graph': (_, value) => parameterised(as(value), () => {}),
    build: [
      /graph 'g'/,
      async ({ runtime }, value) => runtime.run(parameterised('g', as(value)), undefined as never),
    ],
    declarations: [
      /declar/,
      async ({ runtime }, value) =>
        runtime.run(
          parameterised('g', (builder) => void builder.declare(as(value))),
          undefined as never,
        ),
    ],
    "'step'": async ({ runtime }, value) =>
      runtime.run(
        parameterised('g', (builder) => void builder.declare(as({ step: value }))),
        undefined as never,
      ),
    ...each(['runs', 'indices', 'controls'], (name) => [
      new RegExp(`${name}|range`),
      (world, value) => chain((definition) => definition, { [name]: value })(world),
    ]),
    'declared class': async ({ runtime }, value) =>
      runtime.run(
        parameterised('g', (builder) => builder.define(as(value), as({}))),
        undefined as never,
      ),
    'parts of class': [
      /parts of class 'step'|class 'step' needs/,
      (world, value) => chain(() => value as Definition)(world),
    ],
    ranges: [/range/, defined((value) => ({ ranges: value }))],
    repeats: defined((value) => ({ repeats: value })),
    "`repeats` of 'i'": [/`repeats`/, defined((value) => ({ repeats: { i: value } }))],
    flows: [/flow/, defined((value) => ({ flows: value }))],
    ...each(['starts', 'order', 'own', 'on', 'controls', 'params', 'priority', 'device'], (name) =>
      defined((value) => ({ [name]: value })),
    ),
    "range of 'i'": defined((value) => ({ ranges: { i: value } })),
    "`starts` of 'i'": defined((value) => ({ starts: { i: value } })),
    "`own` of 'i'": defined((value) => ({ own: { i: value } })),
    "flow 'to'": defined((value) => ({ flows: { to: value } })),
    ...each(['from', 'to', 'datum'], (name) => [
      new RegExp(`\`${name}\` of flow 'to'`),
      inFlow((value) => ({ [name]: value })),
    ]),
    "control 'c'": defined((value) => ({ controls: { c: value } })),
    ...each(['from', 'to'], (name) => [
      new RegExp(`\`${name}\` of control 'c'`),
      defined((value) => ({ controls: { c: { [name]: value } } })),
    ]),
    share: async ({ runtime }, value) =>
      runtime.run(
        parameterised('g', (builder) => builder.share(as(value))),
        undefined as never,
      ),
    inputs: async ({ runtime }, value) =>
      runtime.run(
        parameterised('g', (builder) => builder.inputs(as(value))),
        undefined as never,
      ),
  }),
  ...places('what functions of a class return', {
    // An array of arrays is an array of indices that no task has.
    '`repeats`': defined((value) => ({ repeats: { i: () => value } })),
    range: [/range|got no input/, defined((value) => ({ ranges: { i: () => value } }))],
    ...each(['from', 'to'], (name) => [
      // Without targets the graph stands still.
      new RegExp(
        `\`${name}\` of flow 'to' of step\\(i=|flow 'to' of step\\(i=|step\\(i=0\\) sends 'to'|got no input`,
      ),
      inFlow((value) => ({ [name]: () => value })),
    ]),
    ...each(['control from', 'control to'], (name) => [
      new RegExp(`\`${name.slice(8)}\` of control 'c' of step\\(i=`),
      defined((value) => ({ controls: { c: { [name.slice(8)]: () => value } } })),
    ]),
    ...each(['params', 'priority', 'device'], (name) => [
      new RegExp(`${name}|parameter|step|GPU`),
      defined((value) => ({ [name]: () => value })),
    ]),
  }),
  ...places('range', {
    'a range needs': (_, value) => [range(as(value), 1), range(0, as(value))],
    steps: (_, value) => range(0, 1, as(value)),
  }),
  ...places('temporary', {
    element: (_, value) => temporary(as(value), 1),
    elements: (_, value) => temporary('f64', as(value)),
    'options of a temporary': (_, value) => temporary('f64', 1, as(value)),
    ...each(['rows', 'device'], (name) => (_, value) => temporary('f64', 2, as({ [name]: value }))),
  }),
];
