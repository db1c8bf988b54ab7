// A task class on the machine of one runtime: the engine's row of it, with the kernels of each device, and the facts
// that insertion checks. Each class is bound once, at its first use.

import { isAsyncFunction } from 'node:util/types';
import { HeadraceError } from '../../devices/errors.js';
import { FIRST_GPU, HOST, type SpaceId, type TaskId } from '../../devices/handles.js';
import { KernelLengths } from '../../stages/kernel-lengths.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import { AccessMode } from '../../trace/format.js';
import { shown } from '../checks.js';
import type { Engine } from '../engine/engine.js';
import type { RunState } from '../engine/run-state.js';
import type { Body } from '../engine/script-bodies.js';
import { type DataByFlow, type SpawningGraph, TaskContext } from './body-context.js';
import { shapeWith } from './class-shapes.js';
import type { CudaKernelSource } from './cuda-kernel.js';
import type { Datum } from './datum.js';
import { elementBytes } from './element-type.js';
import type { ProgramData } from './program-data.js';
import { withReadFlowsChecked } from './read-flows.js';
import { scriptClassOf } from './script-class.js';
import {
  argumentOf,
  isTaskClass,
  ParameterKind,
  type Parameters,
  type TaskClass,
} from './task-class.js';

/**
 * Number of insertions per class whose names of options and arguments are checked; all in checked runs. A misspelt name is
 * in the program's text, so one of the first insertions has it.
 */
const CHECKED_INSERTIONS = 16;

/** A task class, bound to one runtime. @internal */
export interface BoundClass {
  readonly row: TaskClassRow;
  readonly cls: TaskClass;
  /** The token that the datum of each flow must have (`Datum.token`). */
  readonly tokens: readonly object[];
  /** Flows that write, if another flow must not be the same datum. */
  readonly written: Uint16Array;
  readonly kinds: Uint8Array;
  /** Number of further insertions whose option names are checked, and of those whose argument names are. */
  unchecked: number;
  uncheckedArguments: number;
  /** Size of a task that surely fits every device on which the class can run. */
  readonly safeBytes: number;
}

/** Spaces of the devices on which a task of the class can run, if it names none: the GPUs with a kernel, or the host. */
export function possibleSpaces(row: TaskClassRow): SpaceId[] {
  const list: SpaceId[] = [];
  for (let s = FIRST_GPU; s < row.kernels.length; s++) if (row.kernels[s] >= 0) list.push(s);
  return list.length > 0 ? list : [HOST];
}

function commutingFlows({ definition, flowNames }: TaskClass): Uint8Array | undefined {
  const flows = Uint8Array.from(flowNames, (f) => (definition.flows[f].mode === 'commute' ? 1 : 0));
  return flows.includes(1) ? flows : undefined;
}

export class ClassBinder {
  private readonly engine: Engine;
  private readonly data: ProgramData;
  private readonly bound: WeakMap<object, BoundClass> = new WeakMap();

  constructor(engine: Engine, data: ProgramData) {
    this.engine = engine;
    this.data = data;
  }

  /**
   * Resolves the bodies of a task class on this machine.
   * @throws HeadraceError `ERR_ARGUMENT_TYPE`, `ERR_UNKNOWN_KERNEL`, `ERR_KERNEL_SOURCE`, `ERR_TASK_CLASS`
   */
  bind(cls: TaskClass): BoundClass {
    const known = this.bound.get(cls);
    if (known !== undefined) return known;
    if (!isTaskClass(cls)) {
      throw new HeadraceError('ERR_ARGUMENT_TYPE', `${shown(cls)} is no task class`, {
        remedy: 'make one with task({ ... })',
      });
    }
    if (cls.lists !== undefined) return this.bind(shapeWith(cls, []));
    const { definition } = cls;
    const { engine } = this;
    const { backend } = engine;
    const kernels = Int32Array.from(backend.spaces, (_, s) => this.kernelOf(cls, s as SpaceId));
    const onScriptWorkers =
      kernels[HOST] < 0 && definition.module !== undefined && backend.scripts !== undefined;
    const takesLengths = Uint8Array.from(kernels, (k) =>
      k >= 0 && backend.takesLengths(k) ? 1 : 0,
    );
    if (onScriptWorkers) takesLengths[HOST] = 1;
    const explain = definition.explain;
    const row: TaskClassRow = {
      id: engine.x.classes.length,
      name: cls.name,
      flowNames: cls.flowNames,
      paramNames: cls.paramNames,
      modes: cls.modes,
      pulls: cls.pulls,
      commutes: commutingFlows(cls),
      kernels,
      lengths: takesLengths.includes(1)
        ? new KernelLengths(backend, takesLengths, cls.elements.map(elementBytes))
        : undefined,
      body: this.scriptBody(cls),
      onScriptWorkers,
      spreads: false,
      beside: undefined,
      explain:
        explain === undefined
          ? undefined
          : (code, at) => explain(code, this.namesOf(cls, at) as never),
      failureCode: definition.failureCode,
      timed: 0,
    };
    this.checkBodies(cls, row);
    this.checkArguments(row, cls.declared !== undefined);
    if (onScriptWorkers) kernels[HOST] = this.defineScript(cls, definition.module);
    engine.addClass(row);
    if (isAsyncFunction(definition.body)) engine.bodies.isAsync(row.id);
    const capacity = Math.min(...possibleSpaces(row).map((s) => engine.spaces[s].zone.capacity));
    const bound: BoundClass = {
      row,
      cls,
      tokens: cls.elements.map((element) => this.data.tokens[element]),
      written:
        cls.modes.length > 1
          ? Uint16Array.from(cls.modes.keys()).filter((i) => cls.modes[i] !== AccessMode.read)
          : new Uint16Array(0),
      kinds: Uint8Array.from(
        cls.paramNames,
        (p) => ParameterKind[(definition.params as Parameters)[p]],
      ),
      unchecked: engine.checked ? Number.POSITIVE_INFINITY : CHECKED_INSERTIONS,
      uncheckedArguments: engine.checked ? Number.POSITIVE_INFINITY : CHECKED_INSERTIONS,
      // Rounding adds less than one alignment unit per flow.
      safeBytes: capacity - cls.flowNames.length * 512,
    };
    this.bound.set(cls, bound);
    return bound;
  }

  /** Id of the kernel of a class in a space, or -1. */
  private kernelOf(cls: TaskClass, space: SpaceId): number {
    const { definition, cuda, steered } = cls;
    const { backend } = this.engine;
    const { kind } = backend.spaces[space];
    const wanted = space === HOST ? definition.kernel : (definition.gpuKernel ?? definition.kernel);
    const kernel =
      kind === 'cuda' && cuda !== undefined
        ? this.cudaKernel(cuda, space)
        : wanted === undefined || wanted === false
          ? -1
          : backend.kernel(wanted, space);
    if (kernel < 0 || steered === undefined) return kernel;
    const made = backend.steered(kernel, space, steered);
    if (made < 0) throw steeredOnGpu(cls, this.engine.spaceName(space));
    return made;
  }

  /** Id of a CUDA kernel on a CUDA GPU; compiles the kernel if this process has not compiled it yet. */
  private cudaKernel(source: CudaKernelSource, space: SpaceId): number {
    const { name } = source.kernels[0];
    if (this.engine.backend.kernel(name, space) < 0) this.engine.backend.compileKernels(source);
    return this.engine.backend.kernel(name, space);
  }

  /** Number of a body for script workers. */
  private defineScript(cls: TaskClass, module: string | undefined): number {
    const { scripts } = this.engine.backend;
    return scripts === undefined || module === undefined
      ? -1
      : scripts.define(scriptClassOf(cls, module));
  }

  private checkBodies(cls: TaskClass, row: TaskClassRow): void {
    const { definition } = cls;
    if (row.body !== undefined || row.kernels.some((k) => k >= 0)) return;
    if (cls.cuda !== undefined) {
      throw new HeadraceError(
        'ERR_UNKNOWN_KERNEL',
        `task class '${cls.name}' has a CUDA kernel only, and this runtime has no CUDA GPU`,
        { remedy: "give it a `body` or a `kernel` too, or open the runtime with driver: 'cuda'" },
      );
    }
    const names = [definition.kernel, definition.gpuKernel].filter((n) => typeof n === 'string');
    throw new HeadraceError(
      'ERR_UNKNOWN_KERNEL',
      `task class '${cls.name}': no device of this runtime has kernel ${names.map((n) => `'${n}'`).join(' or ')}`,
      { remedy: 'load it with runtime.loadKernels, or check its name' },
    );
  }

  /** Throws if a task of the class would not fit an empty window and an empty queue. Such a task would wait for ever. */
  private checkArguments(
    { name, flowNames, paramNames, lengths }: TaskClassRow,
    isShape: boolean,
  ): void {
    const { tasks, submission } = this.engine;
    const [flows, params] = [flowNames.length, paramNames.length];
    const each = tasks.maxArguments;
    const limit = submission.mostArguments;
    const all = flows + params + (lengths === undefined ? 0 : flows);
    if (flows <= each && params <= each && all <= limit) return;
    throw new HeadraceError(
      isShape ? 'ERR_TASK_TOO_LARGE' : 'ERR_TASK_CLASS',
      `${isShape ? 'a task of class' : 'task class'} '${name}' has ${flows} data and ${params} parameters${lengths === undefined ? '' : ', and its kernel takes the lengths of the data'}; this runtime takes ${each} of each and ${limit} in all`,
      {
        limit,
        remedy: 'split the task, or open the runtime with a larger `window` and `runAhead`',
      },
    );
  }

  private scriptBody(cls: TaskClass): TaskClassRow['body'] {
    const given = cls.definition.body as
      | ((args: Record<string, unknown>, context: unknown) => unknown)
      | undefined;
    if (given === undefined) return undefined;
    const { flowNames, paramNames } = cls;
    const types = cls.definition.params as Parameters | undefined;
    const { engine } = this;
    const body = engine.checked ? withReadFlowsChecked(cls, given) : given;
    const contextOf = (started: Body, run: RunState): TaskContext =>
      new TaskContext(
        started,
        cls.name,
        () => run.graph as SpawningGraph,
        () => this.dataOf(started.task, flowNames),
      );
    return (_id, row) => {
      const { tasks, directory } = engine;
      const args: Record<string, unknown> = {};
      const first = tasks.flowStart[row];
      for (let i = 0; i < flowNames.length; i++) {
        args[flowNames[i]] = this.data.hostArray(
          directory.info[tasks.flowDatum[first + i]] as Datum,
        );
      }
      const params = tasks.paramStart[row];
      for (let i = 0; i < paramNames.length; i++) {
        args[paramNames[i]] = argumentOf(types?.[paramNames[i]], tasks.params[params + i]);
      }
      return body(args, contextOf(engine.bodies.started as Body, engine.runOf(row)));
    };
  }

  /** The data of a task that has not ended, by its flows. */
  private dataOf(task: TaskId, flowNames: readonly string[]): DataByFlow {
    const { tasks, directory } = this.engine;
    const first = tasks.flowStart[task & tasks.mask];
    return Object.fromEntries(
      flowNames.map((flow, i) => [flow, directory.info[tasks.flowDatum[first + i]]]),
    );
  }

  private namesOf(cls: TaskClass, row: number): Record<string, Record<string, unknown>> {
    const { tasks, directory } = this.engine;
    const params = tasks.paramStart[row];
    const flows = tasks.flowStart[row];
    return {
      params: Object.fromEntries(cls.paramNames.map((name, i) => [name, tasks.params[params + i]])),
      data: Object.fromEntries(
        cls.flowNames.map((name, i) => [name, directory.info[tasks.flowDatum[flows + i]]?.name]),
      ),
    };
  }
}

/** A launch on a real GPU passes parameters by value, and their values are not on the host. */
function steeredOnGpu({ name, steered, declared }: TaskClass, device: string): HeadraceError {
  const parameter = declared?.paramNames[steered?.[0].position ?? 0];
  return new HeadraceError(
    'ERR_ARGUMENT_TYPE',
    `task class '${name}': parameter '${parameter}' cannot be a datum on ${device}, whose kernels take parameters by value`,
    {
      task: name,
      remedy: `declare '${parameter}' as a flow read('${steered?.[0].element}') of the kernel, pass (await graph.value(datum)), or use a class without a kernel for GPUs (no cuda, gpuKernel: false)`,
    },
  );
}
