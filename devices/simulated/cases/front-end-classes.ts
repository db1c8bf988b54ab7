// The task classes of the random programs of front-end-program.ts, their kernels on bytes, and how a step is inserted.
import {
  type BodyContext,
  commute,
  type Datum,
  type Graph,
  list,
  read,
  readWrite,
  reduce,
  type TaskClass,
  type TaskHandle,
  task,
  write,
} from '../../../scheduler/index.js';
import type { KernelCall, SimulatedKernel } from '../machine/backend.js';
import {
  FAILS,
  type FrontEndProgram,
  type Kin,
  OPERATORS,
  type TaskStep,
} from './front-end-program.js';
import { commuted, contribute, listed, mix, scaled } from './front-end-reference.js';

const AS_ASKED = 'as asked for';
/** The code of a kernel that fails. */
const CODE = 7;

/** By the numbers of the operators. */
const COMBINATIONS: readonly ((a: number, b: number) => number)[] = [
  (a, b) => a + b,
  (a, b) => a * b,
  Math.min,
  Math.max,
];

type Arrays = Record<'x' | 'y', Float64Array> & { readonly plus: number };

const arraysOf = ({ memory, flows }: KernelCall, length: number): Float64Array[] =>
  flows.map((at) => new Float64Array(memory.buffer, memory.byteOffset + at, length));

/** The kernels. The body of a class with a module is a kernel with the name of the class. */
export function frontEndKernels(length: number): Readonly<Record<string, SimulatedKernel>> {
  return {
    scaled_f64: (call) => {
      const [x, y] = arraysOf(call, length);
      scaled(x, y, call.params[0]);
      return 0;
    },
    scaled_part: (call) => {
      const [x, y] = arraysOf(call, call.params[1]);
      scaled(x, y, call.params[0]);
      return 0;
    },
    scripted: (call) => {
      const [x, y] = arraysOf(call, length);
      mix(x, y, call.params[0]);
      return 0;
    },
    // The kernels of reductions (native/kernels/combine.cpp).
    reduce_identity: (call) => {
      arraysOf(call, call.params[1])[0].fill(call.params[2]);
      return 0;
    },
    reduce_combine: (call) => {
      const [to, from] = arraysOf(call, call.params[1]);
      const combine = COMBINATIONS[call.params[2]];
      for (let i = 0; i < to.length; i++) to[i] = combine(to[i], from[i]);
      return 0;
    },
    fail: () => CODE,
    // Of the messages of plans.
    empty: () => 0,
    fill: (call) => {
      arraysOf(call, length)[0].fill(call.params[0]);
      return 0;
    },
    commuted: (call) => {
      const [x, y] = arraysOf(call, length);
      commuted(x, y, call.params[0]);
      return 0;
    },
    contributed: (call) => {
      const [x, y] = arraysOf(call, call.params[1]);
      contribute('sum', x, y, call.params[0]);
      return 0;
    },
    check: ({ params: [plus] }) => (plus < FAILS ? 0 : CODE),
  };
}

const xy = { x: readWrite('f64'), y: read('f64') };
const plus = { plus: 'f64' } as const;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const classOf = (given: object): TaskClass => task(given as never) as unknown as TaskClass;
const body = ({ x, y, plus }: Arrays): void => mix(x, y, plus);

/** The body of a class with a module: on script workers or, without them, here. */
export const scripted: TaskClass = classOf({
  ...{ name: 'scripted', module: import.meta.url, flows: xy, params: plus, body },
});

const identity = classOf({
  name: 'identity',
  flows: { x: write('f64') },
  body: ({ x }: Arrays) => void x.fill(0),
});
const combine = classOf({
  name: 'combine',
  flows: xy,
  body: ({ x, y }: Arrays) => contributeAll(x, y),
});

function contributeAll(x: Float64Array, y: Readonly<Float64Array>): void {
  for (let i = 0; i < x.length; i++) x[i] = (x[i] + y[i]) % 1_000_003;
}

const reducing = Object.fromEntries(
  OPERATORS.map((operator, i) => [
    operator,
    classOf({
      name: `reduce ${operator}`,
      flows: {
        x: reduce('f64', operator === 'own' ? { identity, combine } : operator, {
          partials: [8, 1, 2, 3][i],
          // The results are whole numbers, whatever the order.
          deterministic: i % 2 === 0,
        }),
        y: read('f64'),
      },
      params: plus,
      body: ({ x, y, plus }: Arrays) => contribute(operator, x, y, plus),
    }),
  ]),
);

const reduceKernel = classOf({
  name: 'reduce kernel',
  flows: { x: reduce('f64', 'sum', { partials: 2 }), y: read('f64') },
  params: { plus: 'f64', count: 'i32' },
  kernel: 'contributed',
});

const kernel = classOf({ name: 'kernel', flows: xy, params: plus, kernel: 'scaled_f64' });
const partKernel = classOf({
  name: 'part kernel',
  flows: xy,
  params: { plus: 'f64', count: 'i32' },
  kernel: 'scaled_part',
});
const init = classOf({
  name: 'init',
  flows: { x: write('f64') },
  params: plus,
  body: ({ x, plus }: Arrays) => void x.fill(plus),
});
const initKernel = classOf({
  name: 'init kernel',
  flows: { x: write('f64') },
  params: plus,
  kernel: 'fill',
});
const check = classOf({
  name: 'check',
  flows: { x: readWrite('f64') },
  params: plus,
  kernel: 'check',
});
const plain = classOf({ name: 'plain', flows: xy, params: plus, body });
const async = classOf({
  name: 'async',
  flows: xy,
  params: plus,
  // No async function: it is known late that it returns a promise.
  body: ({ x, y, plus }: Arrays) => turn().then(() => mix(x, y, plus)),
});
const commuting = classOf({
  name: 'commute',
  flows: { x: commute('f64'), y: read('f64') },
  params: plus,
  body: ({ x, y, plus }: Arrays) => commuted(x, y, plus),
});
const commuteKernel = classOf({
  name: 'commute kernel',
  flows: { x: commute('f64'), y: read('f64') },
  params: plus,
  kernel: 'commuted',
});
const listing = classOf({
  name: 'list',
  flows: { x: readWrite('f64'), parts: list(read('f64')) },
  params: plus,
  body: ({ x, parts, plus }: { x: Float64Array; parts: Float64Array[]; plus: number }) =>
    listed(x, parts, plus),
});

const fail = (): never => {
  throw new Error(AS_ASKED);
};
const failing: Readonly<Record<TaskStep['how'], TaskClass>> = {
  body: classOf({ name: 'fails', flows: xy, body: fail }),
  promise: classOf({ name: 'fails later', flows: xy, body: () => turn().then(fail) }),
  kernel: classOf({ name: 'fails on a device', flows: xy, kernel: 'fail' }),
  child: classOf({
    name: 'fails in a child',
    flows: xy,
    body: (_: unknown, { data, spawn }: BodyContext) => void spawn(failing.body, data as never),
  }),
};

/** The classes of the families of one program: their bodies look their node up by its number. */
export class FrontEndFamilies {
  private readonly length: number;
  private readonly now: TaskClass;
  private readonly later: TaskClass;

  constructor({ length, kin }: Pick<FrontEndProgram, 'length' | 'kin'>) {
    this.length = length;
    const params = { plus: 'f64', node: 'i32' };
    type Args = Arrays & { readonly node: number };
    const grow = ({ x, y, plus, node }: Args, context: BodyContext): void => {
      mix(x, y, plus);
      this.spawnChildren(kin[node], context);
    };
    this.now = classOf({ name: 'family', flows: xy, params, body: grow });
    this.later = classOf({
      name: 'later family',
      flows: xy,
      params,
      body: async (args: Args, context: BodyContext) => {
        await turn();
        grow(args, context);
        await turn();
      },
    });
  }

  /** The class and the arguments of a task of a family. */
  of(kin: Kin, data: readonly Datum[]): [TaskClass, never] {
    const { kind, plus, isAsync, range } = kin;
    const [x, y] = [data[kin.x], data[kin.y]];
    if (range !== undefined) {
      const { count } = range;
      const parts = { x: x.part(range.x, count), y: y.part(range.y, count), plus };
      return kind === 'plain'
        ? [plain, parts as never]
        : [partKernel, { ...parts, count } as never];
    }
    if (kind === 'init') return [init, { x, plus } as never];
    if (kind !== 'family') {
      const cls = { plain, kernel, sum: reducing['sum'] }[kind];
      return [cls, { x, y, plus } as never];
    }
    return [isAsync ? this.later : this.now, { x, y, plus, node: kin.number } as never];
  }

  private spawnChildren(kin: Kin, { data, spawn, temporary }: BodyContext): void {
    const { x, y } = data as Record<string, Datum>;
    const temporaries = Array.from({ length: kin.temporaries }, () =>
      temporary('f64', this.length),
    );
    for (const child of kin.children) spawn(...this.of(child, [x, ...temporaries, y]));
  }
}

const SIMPLE = {
  ...{ plain, async, kernel, commuteKernel },
  ...{ commute: commuting, script: scripted },
} as const;
/** Classes with one datum. */
const ALONE = { init, initKernel, check } as const;
/** Whether a class has a kernel for GPUs. */
const ON_GPUS: readonly TaskStep['kind'][] = [
  ...(['kernel', 'steeredKernel', 'partKernel'] as const),
  ...(['initKernel', 'commuteKernel', 'check', 'reduceKernel', 'reducePartKernel'] as const),
];

/** Inserts the task of a step. */
export function insertStep(
  graph: Pick<Graph, 'insert'>,
  families: FrontEndFamilies,
  step: TaskStep,
  data: readonly Datum[],
  handles: readonly (TaskHandle | undefined)[],
): TaskHandle {
  const { kind, plus } = step;
  const [x, y, alpha] = [data[step.x], data[step.y], data[step.alpha]];
  const { after, device, ...others } = step.options;
  const follows = after === undefined ? undefined : handles[after];
  const isPossible = device === 'host' || (device !== undefined && ON_GPUS.includes(kind));
  const options = {
    ...others,
    ...(isPossible && kind !== 'script' ? { device } : {}),
    ...(follows === undefined ? {} : { after: [follows] }),
  };
  const put = (cls: TaskClass, args: object): TaskHandle =>
    graph.insert(cls, args as never, options);
  switch (kind) {
    case 'family':
      return graph.insert(...families.of(step.root as Kin, [x, y]), options);
    case 'fails':
      return graph.insert(failing[step.how], { x, y } as never);
    case 'reduce':
      return put(reducing[step.operator], { x, y, plus });
    case 'list':
      return put(listing, { x, parts: step.parts.map((d) => data[d]), plus });
    case 'steered':
      return put(plain, { x, y, plus: alpha });
    case 'steeredKernel':
      return put(kernel, { x, y, plus: alpha });
    case 'reduceKernel':
      return put(reduceKernel, { x, y, plus, count: x.length });
    case 'part':
    case 'partKernel':
    case 'reducePart':
    case 'reducePartKernel': {
      const { count } = step.range;
      const parts = { x: x.part(step.range.x, count), y: y.part(step.range.y, count), plus };
      if (kind === 'part') return put(plain, parts);
      if (kind === 'reducePart') return put(reducing[step.operator], parts);
      return put(kind === 'partKernel' ? partKernel : reduceKernel, { ...parts, count });
    }
    case 'init':
    case 'initKernel':
    case 'check':
      return put(ALONE[kind], { x, plus });
    default:
      return put(SIMPLE[kind], { x, y, plus });
  }
}
