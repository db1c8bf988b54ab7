// Task classes: the flows, the parameters and the bodies of a kind of task. Plain immutable data. The types of flows and
// parameters are inferred, so a wrong name or element type is a compile error.
import type { SteeredKernelParameter } from '../../devices/backend.js';
import { HeadraceError } from '../../devices/errors.js';
import { AccessMode } from '../../trace/format.js';
import { entriesOf, isRecord, shown } from '../checks.js';
import type { BodyContext } from './body-types.js';
import { type CudaKernel, type CudaKernelSource, cudaKernelSource } from './cuda-kernel.js';
import { FETCH_POLICIES, FLOW_PARTS } from './declare-flow.js';
import { type ElementType, isElementType } from './element-type.js';
import {
  type FetchPolicy,
  type Flow,
  type FlowArray,
  type FlowMode,
  type Flows,
  type OneOrList,
  ParameterKind,
  type Parameters,
  type ParameterType,
  type ParameterValue,
} from './flows.js';
import { ambiguousName } from './member-names.js';
import { type Reduction, reductionProblem } from './operator.js';

export {
  commute,
  list,
  type ReduceOptions,
  read,
  readWrite,
  reduce,
  write,
} from './declare-flow.js';
export {
  type FetchPolicy,
  type Flow,
  type FlowArray,
  type FlowMode,
  type Flows,
  type InputOptions,
  type ListFlow,
  type OneOrList,
  ParameterKind,
  type Parameters,
  type ParameterType,
} from './flows.js';

/** The value of a parameter for a body, from the number that the engine keeps. @internal */
export function argumentOf(type: ParameterType | undefined, value: number): number | boolean {
  return type === 'bool' ? value !== 0 : value;
}

/**
 * The arguments of a JavaScript body: an array per flow (for a list, an array of such arrays), valid until it returns (or its
 * promise settles), and the parameters.
 */
export type BodyArguments<F extends Flows, P extends Parameters> = {
  readonly [K in keyof F]: OneOrList<F[K], FlowArray<F[K]>>;
} & { readonly [K in keyof P]: ParameterValue<P[K]> };

/** Definition of a task class. At least one body is needed. */
export interface TaskClassDefinition<F extends Flows, P extends Parameters> {
  /** Shown in errors and traces. */
  readonly name: string;
  /** Data of a task, in the order of a kernel's arguments. */
  readonly flows: F;
  /** Scalars of a task, in the order of a kernel's arguments. */
  readonly params?: P;
  /**
   * JavaScript body; runs when the data are in host memory: on a script worker if the class has a `module`, else on the engine's
   * thread. May be asynchronous. On the engine's thread it also gets the graph and the data of its task, and `spawn`.
   */
  readonly body?: (
    args: BodyArguments<F, P>,
    context: BodyContext<NoInfer<F>>,
  ) => void | PromiseLike<void>;
  /**
   * URL of the module that exports this class under its name: `import.meta.url`. Script workers load it and run the body, so
   * bodies use all cores. They see what the module makes, and nothing that the program has made meanwhile.
   */
  readonly module?: string;
  /** Name of a native kernel for host workers (and for emulated GPUs, unless `gpuKernel` overrides it). */
  readonly kernel?: string;
  /** Name of a kernel for GPUs; `false` keeps the class on the host. */
  readonly gpuKernel?: string | false;
  /** Kernel in CUDA C, PTX or machine code for CUDA GPUs; there it precedes `gpuKernel` and `kernel`. */
  readonly cuda?: CudaKernel<NoInfer<F>, NoInfer<P>>;
  /** Explains a kernel's positive code for a task, from its parameters and the names of its data by flow. */
  readonly explain?: (
    code: number,
    task: {
      readonly params: { readonly [K in keyof P]: number };
      readonly data: { readonly [K in keyof F]: OneOrList<F[K], string> };
    },
  ) => string;
  /** `code` of the error raised when a kernel returns a positive code. */
  readonly failureCode?: string;
  /** Time at which inputs of other ranks are fetched, for flows without a value of their own; default `'push'`. */
  readonly fetch?: FetchPolicy;
}

/** A task class, ready to be inserted by any runtime. */
export interface TaskClass<F extends Flows = Flows, P extends Parameters = Parameters> {
  readonly definition: TaskClassDefinition<F, P>;
  readonly name: string;
  readonly flowNames: readonly string[];
  readonly paramNames: readonly string[];
  /** AccessMode per flow. */
  readonly modes: readonly number[];
  readonly elements: readonly ElementType[];
  /** Per flow, what it reduces by; undefined when no flow reduces. @internal */
  readonly reductions: readonly (Reduction | undefined)[] | undefined;
  /** The CUDA kernel with positions in place of names. @internal */
  readonly cuda: CudaKernelSource | undefined;
  /** 1 per flow whose input is pulled; undefined when none is. */
  readonly pulls: Uint8Array | undefined;
  /** 1 per flow that takes an array of data; undefined when none does. @internal */
  readonly lists: Uint8Array | undefined;
  /** The class of which this is a shape (class-shapes.ts). @internal */
  readonly declared: TaskClass | undefined;
  /**
   * Parameters of the declared class that are data, which are the last flows of this shape; undefined: there are none. @internal
   */
  readonly steered: readonly SteeredKernelParameter[] | undefined;
}

const MODES: Readonly<Record<FlowMode, number>> = {
  read: AccessMode.read,
  write: AccessMode.write,
  readWrite: AccessMode.readWrite,
  // To the engine it is a task that changes a partial result (reductions.ts).
  reduce: AccessMode.readWrite,
  // The class of the engine says which flows commute.
  commute: AccessMode.readWrite,
};

/** Parts of a definition. */
const PARTS: Readonly<Record<keyof TaskClassDefinition<Flows, Parameters>, true>> = {
  name: true,
  flows: true,
  params: true,
  body: true,
  module: true,
  kernel: true,
  gpuKernel: true,
  cuda: true,
  explain: true,
  failureCode: true,
  fetch: true,
};

/** Every class that `task` has made. */
const made: WeakSet<object> = new WeakSet();

/** Whether a value is a task class that `task` has made. @internal */
export function isTaskClass(value: unknown): value is TaskClass {
  return typeof value === 'object' && value !== null && made.has(value);
}

/**
 * Defines a task class. The definition is copied.
 *
 * @throws HeadraceError `ERR_TASK_CLASS` when it has no name or body, a part of it is unknown or has the wrong type, a flow and a
 *   parameter have the same name, or its CUDA kernel does not fit the class.
 */
export function task<const F extends Flows, const P extends Parameters = Record<never, never>>(
  definition: TaskClassDefinition<F, P>,
): TaskClass<F, P> {
  if (!isRecord(definition))
    throw new HeadraceError(
      'ERR_TASK_CLASS',
      `a task class needs a definition object, not ${shown(definition)}`,
    );
  const given = Object.fromEntries(
    entriesOf(definition, 'ERR_TASK_CLASS', 'the definition of a task class'),
  ) as unknown as TaskClassDefinition<F, P>;
  const { name } = given;
  if (typeof name !== 'string' || name === '') {
    throw new HeadraceError('ERR_TASK_CLASS', `a task class needs a name, not ${shown(name)}`);
  }
  const unknown = Object.keys(given).find((part) => !Object.hasOwn(PARTS, part));
  if (unknown !== undefined)
    throw wrong(name, `has ${shown(unknown)}`, `its parts are ${Object.keys(PARTS).join(', ')}`);
  const flows = checkedFlows(name, given.flows);
  const params = checkedParams(name, given.params);
  const flowNames = Object.keys(flows);
  const paramNames = Object.keys(params);
  const both = paramNames.find((p) => flowNames.includes(p));
  if (both !== undefined) throw wrong(name, `has a flow and a parameter named '${both}'`);
  checkBodies(name, given as unknown as TaskClassDefinition<Flows, Parameters>);
  const lists = flowNames.filter((f) => flows[f].list === true);
  const ambiguous = ambiguousName([...flowNames, ...paramNames], lists);
  if (ambiguous !== undefined)
    throw wrong(
      name,
      `has an argument '${ambiguous}' beside a list`,
      'rename it: members of the list have such names',
    );
  if (lists.length > 0 && given.cuda !== undefined)
    throw wrong(
      name,
      `has a CUDA kernel and the list '${lists[0]}'`,
      'pass lists to a kernel of a C library, or declare the flows one by one',
    );
  const whole = { ...given, flows, params } as unknown as TaskClassDefinition<F, P>;
  const { cuda } = whole;
  const source =
    cuda === undefined ? undefined : cudaKernelSource(whole, cuda as unknown as CudaKernel);
  return make(whole, { cuda: source, declared: undefined, steered: undefined });
}

function make<F extends Flows, P extends Parameters>(
  definition: TaskClassDefinition<F, P>,
  more: Pick<TaskClass, 'cuda' | 'declared' | 'steered'>,
): TaskClass<F, P> {
  const { name, flows } = definition;
  const flowNames = Object.keys(flows);
  const lists = Uint8Array.from(flowNames, (f) => (flows[f].list === true ? 1 : 0));
  const cls: TaskClass<F, P> = Object.freeze({
    definition,
    name,
    flowNames,
    paramNames: Object.keys(definition.params ?? {}),
    modes: flowNames.map((f) => MODES[flows[f].mode]),
    elements: flowNames.map((f) => flows[f].element),
    reductions: reductionsOf(flows),
    pulls: pullsOf(name, definition),
    lists: lists.includes(1) ? lists : undefined,
    ...more,
  });
  made.add(cls);
  return cls;
}

function reductionsOf(flows: Flows): (Reduction | undefined)[] | undefined {
  const all = Object.values(flows).map(({ operator, partials, deterministic = true }) =>
    operator === undefined || partials === undefined
      ? undefined
      : { operator, partials, deterministic },
  );
  return all.some((each) => each !== undefined) ? all : undefined;
}

/**
 * A class with other flows, parameters and functions in place of those of `cls`, which it stands for. The parameters named in `data`
 * are its last flows. @internal
 */
export function variantOf(
  cls: TaskClass,
  parts: Pick<TaskClassDefinition<Flows, Parameters>, 'flows' | 'params' | 'body' | 'explain'>,
  data: readonly string[],
): TaskClass {
  const steered = data.map((name) => ({
    position: cls.paramNames.indexOf(name),
    element: parts.flows[name].element as SteeredKernelParameter['element'],
  }));
  return make(
    { ...cls.definition, ...parts },
    { cuda: cls.cuda, declared: cls, steered: steered.length > 0 ? steered : undefined },
  );
}

function wrong(name: string, text: string, remedy?: string): HeadraceError {
  return new HeadraceError('ERR_TASK_CLASS', `task class '${name}' ${text}`, { remedy });
}

function checkedFlows(name: string, given: unknown): Record<string, Flow> {
  if (!isRecord(given)) throw wrong(name, `needs an object as its flows, not ${shown(given)}`);
  const flows: Record<string, Flow> = {};
  const of = `the flows of task class '${name}'`;
  for (const [key, value] of entriesOf(given, 'ERR_TASK_CLASS', of)) {
    const flow = flowOf(name, key, value);
    if (
      flow === undefined ||
      !isElementType(flow.element) ||
      typeof flow.mode !== 'string' ||
      !Object.hasOwn(MODES, flow.mode) ||
      (flow.list !== undefined && typeof flow.list !== 'boolean') ||
      key === '__proto__'
    ) {
      throw wrong(
        name,
        `declares '${key}' as a flow, but its value is no flow: ${flawOf(flow, value)}`,
        "write it like read('f64')",
      );
    }
    const unknown = Object.keys(flow).find((part) => !FLOW_PARTS.includes(part));
    if (unknown !== undefined) throw wrong(name, `has ${shown(unknown)} in its flow '${key}'`);
    const { mode, element, operator, partials, deterministic } = flow;
    const problem =
      mode === 'reduce' ? reductionProblem(element, operator, partials, deterministic) : undefined;
    if (problem !== undefined) throw wrong(name, `declares a flow '${key}' that ${problem}`);
    flows[key] = flow;
  }
  return flows;
}

/** A copy of a flow; undefined for a value that is no object. */
function flowOf(name: string, key: string, value: unknown): Flow | undefined {
  if (!isRecord(value)) return undefined;
  const of = `flow '${key}' of task class '${name}'`;
  return Object.fromEntries(entriesOf(value, 'ERR_TASK_CLASS', of)) as unknown as Flow;
}

/** Why a value is no flow. */
function flawOf(flow: Flow | undefined, value: unknown): string {
  if (flow === undefined) return shown(value);
  if (!isElementType(flow.element)) return `its element is ${shown(flow.element)}`;
  if (flow.list !== undefined && typeof flow.list !== 'boolean')
    return `its list is ${shown(flow.list)}`;
  return `its mode is ${shown(flow.mode)}`;
}

function checkedParams(name: string, given: unknown): Record<string, ParameterType> {
  if (given === undefined) return {};
  if (!isRecord(given)) throw wrong(name, `needs an object as its params, not ${shown(given)}`);
  const params: Record<string, ParameterType> = {};
  const of = `the params of task class '${name}'`;
  for (const [key, type] of entriesOf(given, 'ERR_TASK_CLASS', of)) {
    const value = type as ParameterType;
    if (typeof value !== 'string' || !Object.hasOwn(ParameterKind, value) || key === '__proto__') {
      throw wrong(
        name,
        `has a parameter '${key}' of type ${shown(value)}`,
        `the types are ${Object.keys(ParameterKind).join(', ')}`,
      );
    }
    params[key] = value;
  }
  return params;
}

function checkBodies(name: string, given: TaskClassDefinition<Flows, Parameters>): void {
  const { body, module, kernel, gpuKernel, cuda, explain, failureCode } = given;
  const check = (what: string, value: unknown, type: string): void => {
    if (value !== undefined && (typeof value !== type || value === null))
      throw wrong(name, `has ${shown(value)} as its \`${what}\`, not a ${type}`);
  };
  check('body', body, 'function');
  check('module', module, 'string');
  if (module !== undefined && body === undefined)
    throw wrong(name, 'has a `module` and no `body`', 'script workers run bodies');
  if (module !== undefined && !URL.canParse(module))
    throw wrong(name, `has ${shown(module)} as its \`module\``, 'write `module: import.meta.url`');
  check('kernel', kernel, 'string');
  check('gpuKernel', gpuKernel === false ? undefined : gpuKernel, 'string');
  check('cuda', cuda, 'object');
  check('explain', explain, 'function');
  check('failureCode', failureCode, 'string');
  const isEmpty =
    body === undefined &&
    kernel === undefined &&
    cuda === undefined &&
    (gpuKernel === undefined || gpuKernel === false);
  if (isEmpty) {
    throw wrong(
      name,
      'has no body',
      'give it a `body` function, the name of a `kernel` or a `cuda` kernel',
    );
  }
}

function pullsOf<F extends Flows, P extends Parameters>(
  name: string,
  { flows, fetch = 'push' }: TaskClassDefinition<F, P>,
): Uint8Array | undefined {
  const check = (of: string, policy: FetchPolicy): FetchPolicy => {
    if (FETCH_POLICIES.includes(policy)) return policy;
    throw wrong(name, `has fetch: ${shown(policy)}${of}; it must be 'push' or 'pull'`);
  };
  check('', fetch);
  const pulls = Uint8Array.from(Object.entries(flows), ([flowName, flow]: [string, Flow]) => {
    const policy = check(` in its flow '${flowName}'`, flow.fetch ?? fetch);
    return policy === 'pull' && flow.mode !== 'write' ? 1 : 0;
  });
  return pulls.includes(1) ? pulls : undefined;
}
