// The options and arguments of calls on a runtime, its data, runs, graphs and plans, as places for values that may be wrong.
import {
  type Datum,
  type Graph,
  list,
  type Plan,
  parseBytes,
  Runtime,
  read,
  readWrite,
  slot,
  task,
  write,
} from '../../index.js';
import {
  as,
  closing,
  each,
  type Give,
  type Place,
  places,
  type World,
  wide,
} from './hostile-place.js';
import { axpy, spin } from './tasks.js';

const RUNTIME = [
  ...['workers', 'scriptWorkers', 'gpus', 'driver', 'gpuMemory', 'hostMemory', 'pinnedMemory'],
  ...['computeStreams', 'window', 'overflow', 'watchdog', 'runAhead', 'checked', 'comm'],
  ...['inlineBytes', 'lanes', 'treeFrom', 'flush', 'plans', 'trace', 'name'],
];

const create: Place[] = places('Runtime.create', {
  'options of a runtime': async (_, value) => (await Runtime.create(as(value))).close(),
  ...each(RUNTIME, (name) => [
    new RegExp(name === 'hostMemory' ? 'hostMemory|host data' : name),
    async (_, value) => {
      const few = { workers: 1, scriptWorkers: 0, hostMemory: '1MiB', pinnedMemory: 0 };
      await (await Runtime.create({ ...few, [name]: value })).close();
    },
  ]),
  size: (_, value) => parseBytes(as(value), 'size'),
});

const data: Place[] = [
  ...places('runtime.data', {
    'data are made from': closing(({ runtime }, value) => runtime.data(as(value))),
    elements: closing(({ runtime }, value) => runtime.data('f64', as(value))),
    'options of a datum': closing(({ runtime }, value) => runtime.data('f64', 2, as(value))),
    ...each(['name', 'rank', 'rows'], (name) =>
      closing(({ runtime }, value) => runtime.data('f64', 2, as({ [name]: value }))),
    ),
    device: [/GPU/, closing(({ runtime }, value) => runtime.data('f64', 2, as({ device: value })))],
  }),
  ...places('datum.part', {
    from: closing(({ x }, value) => x.part(as(value), 1)),
    'of them': closing(({ x }, value) => x.part(0, as(value))),
  }),
  ...places('datum.block', {
    'options of a block': ({ x }, value) => {
      const block = x.block(as(value));
      if (block !== x) block.close();
    },
    ...each(['row', 'rows', 'column', 'columns'], (name) => ({ x }, value) => {
      const block = x.block(as({ [name]: value }));
      if (block !== x) block.close();
    }),
  }),
  ...places('datum', {
    GPU: ({ x }, value) => x.advise(as(value)),
    "'x' takes": ({ x }, value) => x.set(as(value)),
  }),
];

const sum = task({
  name: 'sum',
  flows: { parts: list(read('f64')), to: write('f64') },
  body: ({ parts, to }) => {
    to[0] = parts.length;
  },
});

/** What one task gets. */
type Insert = (cls: unknown, args: unknown, options?: unknown) => unknown;

function insertions(
  call: string,
  within: (world: World, use: (insert: Insert) => void) => unknown,
): Place[] {
  const give = (use: (insert: Insert, value: unknown, world: World) => unknown): Give => {
    return async (world, value) => {
      let refusal: unknown;
      let isRefused = false;
      await within(world, (insert) => {
        try {
          use(insert, value, world);
        } catch (error) {
          refusal = error;
          isRefused = true;
        }
      });
      if (isRefused) throw refusal;
    };
  };
  const full = { real: 1, whole: 1, yes: true };
  return places(call, {
    'task class': give((insert, value, { x }) => insert(value, { of: x })),
    "'wide'": give((insert, value) => insert(wide, value)),
    ...each(['real', 'whole', 'yes'], (name) =>
      give((insert, value, { x }) => insert(wide, { to: x, ...full, [name]: value })),
    ),
    "'to'": give((insert, value) => insert(wide, { to: value, ...full })),
    "'parts'": [
      /'parts'|'parts\[0\]'/,
      give((insert, value, { x }) => insert(sum, { parts: value, to: x })),
    ],
    'parts[0]': give((insert, value, { x }) => insert(sum, { parts: [value], to: x })),
    'options of a task': give((insert, value) => insert(spin, { microseconds: 1 }, value)),
    device: [/GPU/, give((insert, value) => insert(spin, { microseconds: 1 }, { device: value }))],
    ...each(['priority', 'rank', 'after'], (name) =>
      give((insert, value) => insert(spin, { microseconds: 1 }, { [name]: value })),
    ),
    'after[0]': give((insert, value) => insert(spin, { microseconds: 1 }, { after: [value] })),
  });
}

const graphs: Place[] = [
  ...insertions('graph.insert', async ({ runtime }, use) => {
    await runtime.run((graph) => use(graph.insert.bind(graph) as Insert));
  }),
  ...insertions('spawn', async ({ runtime, x, y }, use) => {
    const parent = task({
      name: 'parent',
      flows: { of: readWrite('f64'), other: readWrite('f64') },
      body: (_, { spawn }) => use(spawn as Insert),
    });
    await runtime.run((graph) => void graph.insert(parent, { of: x, other: y }));
  }),
  ...places('temporary of a body', {
    'element type': inBody(({ temporary: make }, value) => make(as(value), 1)),
    elements: inBody(({ temporary: make }, value) => make('f64', as(value))),
  }),
  ...places('graph', {
    'graph.value': inProgram((graph, value) => graph.value(as(value))),
    'graph.check': inProgram((graph, value) => graph.check(as(value), true)),
    'graph.owns': inProgram((graph, value) => graph.owns(as(value))),
  }),
];

function inProgram(use: (graph: Graph, value: unknown) => unknown): Give {
  return async ({ runtime }, value) => {
    let outcome: Promise<unknown> = Promise.resolve();
    await runtime.run((graph) => {
      outcome = (async () => use(graph, value))();
      return outcome.then(
        () => {},
        () => {},
      );
    });
    await outcome;
  };
}

function inBody(
  use: (context: { temporary(element: 'f64', length: number): Datum }, value: unknown) => unknown,
): Give {
  return async ({ runtime, x }, value) => {
    let outcome: Promise<unknown> = Promise.resolve();
    const parent = task({
      name: 'parent',
      flows: { of: readWrite('f64') },
      body: (_, context) => {
        outcome = (async () => use(context as never, value))();
        outcome.catch(() => {});
      },
    });
    await runtime.run((graph) => void graph.insert(parent, { of: x }));
    await outcome;
  };
}

const runs: Place[] = [
  ...places('runtime.run', {
    'a program': ({ runtime }, value) =>
      // What a function of the program throws is what the run rejects with.
      typeof value === 'function' ? undefined : runtime.run(as(value)),
    'options of a run': ({ runtime }, value) => runtime.run(() => {}, as(value)),
    ...each(
      ['signal', 'pruned', 'name'],
      (name) =>
        ({ runtime }, value) =>
          runtime.run(() => {}, as({ [name]: value })),
    ),
    cancelled: async ({ runtime }, value) => {
      const run = runtime.run(() => new Promise((resolve) => setImmediate(resolve)));
      run.cancel(value);
      await run;
    },
    task: async ({ runtime }, value) => {
      if (value === undefined) return;
      const run = runtime.run(() => {});
      try {
        run.explain(as(value));
      } finally {
        await run;
      }
    },
  }),
  ...places('runtime', {
    story: ({ runtime }, value) => runtime.story(as(value)),
    'task class': ({ runtime }, value) => runtime.prepare(as(value)),
    'kernel library': [
      /a kernel library|xxx/,
      ({ runtime }, value) => runtime.loadKernels(as(value)),
    ],
  }),
];

/** The options may be right but for the value of the open parameter. */
const NO_VALUE = /options of a play|values of plan|needs a value for 'n'/;

const plans: Place[] = [
  ...places('runtime.plan', {
    program: [
      /a plan is made|plan 'plan'/,
      ending(({ runtime }, value) => runtime.plan(as(value))),
    ],
    'options of a plan': ending(({ runtime }, value) => runtime.plan(() => {}, as(value))),
    ...each(['name', 'graph'], (name) =>
      ending(({ runtime }, value) => runtime.plan(() => {}, as({ [name]: value }))),
    ),
    "'n'": ending(({ runtime, x, y }, value) =>
      runtime.plan((graph) => void graph.insert(axpy, as({ y: x, x: y, n: value, a: 0 }))),
    ),
    slot: (_, value) => slot(as(value)),
  }),
  ...places('plan.run', {
    'options of a play': [NO_VALUE, ({ plan }, value) => plan.run(as(value))],
    times: ({ plan, x }, value) => played(plan, { times: value, while: { datum: x, above: 1e9 } }),
    'values of plan': [NO_VALUE, ({ plan }, value) => plan.run(as({ values: value }))],
    // A kernel refuses some numbers.
    "'n'": [/'n'|n = /, ({ plan }, value) => played(plan, { values: { n: value } })],
    while: ({ plan }, value) => played(plan, { while: value }),
    ...each(
      ['datum', 'above', 'below', 'every'],
      (name) =>
        ({ plan, x }, value) =>
          played(plan, {
            times: 1,
            while: { datum: x, ...(name === 'below' ? {} : { above: 1e9 }), [name]: value },
          }),
    ),
    signal: ({ plan }, value) => played(plan, { signal: value }),
  }),
  ...places('plan.save', {
    'file of a plan': ({ plan, file }, value) =>
      typeof value === 'string' && value !== '' && value !== 'a\0b'
        ? plan.save(file)
        : plan.save(as(value)),
  }),
  ...places('runtime.loadPlan', {
    'file of a plan': [
      /file of a plan|xxx/,
      ({ runtime }, value) => runtime.loadPlan(as(value), { data: [], classes: [] }),
    ],
    'options of loadPlan': [
      /the option(s of| data)/,
      ({ runtime, file }, value) => runtime.loadPlan(file, as(value)),
    ],
    data: ending(({ runtime, file }, value) =>
      runtime.loadPlan(file, as({ data: value, classes: [axpy] })),
    ),
    classes: ending(({ runtime, file, x, y }, value) =>
      runtime.loadPlan(file, as({ data: [x, y], classes: value })),
    ),
  }),
];

/** A plan is closed after its use. */
function ending(give: (world: World, value: unknown) => Promise<Plan>): Give {
  return async (world, value) => (await give(world, value)).close();
}

/** A play with a value for the open parameter. */
function played(plan: Plan, given: object): unknown {
  return plan.run(as({ values: { n: 4 }, ...given }));
}

export const RUNTIME_PLACES: readonly Place[] = [...create, ...data, ...graphs, ...runs, ...plans];
