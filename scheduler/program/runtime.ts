/// <reference lib="esnext.disposable" preserve="true" />
// The runtime: opens the machine, owns data and runs, closes everything in order. The public entry point.

import { hostname } from 'node:os';
import type { Backend } from '../../devices/backend.js';
import { HeadraceError } from '../../devices/errors.js';
import type { TaskHandle, TaskId } from '../../devices/handles.js';
import type { NetworkPort } from '../../devices/network/port.js';
import type { FileSink } from '../../trace/sinks.js';
import { checkFile, isInstance, shown } from '../checks.js';
import { Engine } from '../engine/engine.js';
import { ParameterisedGraph } from '../parameterised/parameterised-graph.js';
import { type LoadPlanOptions, loadPlan } from '../plans/load-plan.js';
import { makePlan, type PlanOptions, planAtOnce } from '../plans/make-plan.js';
import type { Plan } from '../plans/plan.js';
import type { PlanGraph } from '../plans/plan-graph.js';
import { isElsewhere } from '../ranks/cross-rank-order.js';
import { Ranks } from '../ranks/ranks.js';
import { Recognition } from '../recognition/recognition.js';
import type { RecognitionReport } from '../recognition/record.js';
import { EngineTracer } from '../reports/engine-tracer.js';
import { type DeviceMemory, memoryReport } from '../reports/memory.js';
import { finishTrace, keepOpen, openTraceFile } from '../reports/open-traces.js';
import { loadTelemetry } from '../reports/telemetry.js';
import { traceHeader } from '../reports/trace-header.js';
import { ClassBinder } from './bound-class.js';
import { Datum } from './datum.js';
import type { DatumOptions } from './datum-options.js';
import { type ElementArray, type ElementType, isElementType } from './element-type.js';
import { environmentOptions, reportOverridden } from './environment-options.js';
import type { Graph } from './graph.js';
import { raiseInliningBudget } from './inlining.js';
import { Lifetime } from './lifetime.js';
import { openMachine } from './machine.js';
import { type ResolvedOptions, type RuntimeOptions, resolveOptions } from './options.js';
import { OwnTasks } from './own-tasks.js';
import { Partials } from './partials.js';
import { BodyParts } from './parts/body-parts.js';
import { PartsOnRanks } from './parts/on-ranks.js';
import { Parts } from './parts/parts.js';
import { ProgramData } from './program-data.js';
import { Reductions } from './reductions.js';
import { checkRunOptions, type Program, Run, type RunOptions } from './run.js';
import { isScriptWorker, refusedOnWorker } from './script-class.js';
import type { Flows, Parameters, TaskClass } from './task-class.js';

/** An opened machine: its devices, the data in their memory, and the runs on them. */
export class Runtime {
  /** Effective options. */
  readonly options: ResolvedOptions;
  /** @internal */
  readonly engine: Engine;
  /** The other ranks, if there are several. @internal */
  readonly peers: Ranks | undefined;
  /** @internal */
  readonly programData: ProgramData;
  /** @internal */
  readonly classes: ClassBinder;
  /** Of its runs. @internal */
  readonly reductions: Reductions;
  /** Of its data. @internal */
  readonly parts: Parts;
  /** @internal */
  readonly bodyParts: BodyParts;
  private readonly backend: Backend;
  /** With the option `plans: 'auto'`. */
  private readonly recognition: Recognition | undefined;
  private readonly tracer: EngineTracer | undefined;
  private readonly lifetime: Lifetime = new Lifetime();
  private readonly openRuns: Set<Run> = new Set();
  private closed: Promise<void> | undefined;

  /**
   * Opens the machine: host workers and, if asked for, GPUs. HEADRACE_TRACE, HEADRACE_GPUS and HEADRACE_DRIVER are
   * defaults for options that the program does not give (docs/inspecting.md).
   *
   * @throws HeadraceError `ERR_SCRIPT_RUNTIME` on a script worker, `ERR_OPTION` for options out of range, `ERR_NATIVE_MISSING` when the native addon is not built
   *   or cannot be loaded, `ERR_NO_GPU` when the driver or that many GPUs are not there; under mpirun `ERR_MPI_MISSING`,
   *   `ERR_MPI_MISMATCH`, `ERR_MPI_START`, and `ERR_COMM_UNAVAILABLE` when the way of the option `comm` is not
   *   available.
   */
  static async create(options: RuntimeOptions = {}): Promise<Runtime> {
    if (isScriptWorker()) throw refusedOnWorker();
    const outside = environmentOptions();
    const resolved = resolveOptions(options, outside);
    reportOverridden(resolved, outside);
    await loadTelemetry();
    // Before the machine: if the file cannot be written, nothing is open.
    const sink = resolved.trace === undefined ? undefined : openTraceFile(resolved.trace, true);
    try {
      const { backend, port } = await openMachine(resolved);
      return new Runtime(backend, resolved, port, sink);
    } catch (error) {
      sink?.close();
      throw error;
    }
  }

  /** @internal A runtime over any backend; tests and the simulator use it. */
  static over(backend: Backend, options: RuntimeOptions = {}, port?: NetworkPort): Runtime {
    return new Runtime(backend, resolveOptions(options), port);
  }

  private constructor(
    backend: Backend,
    options: ResolvedOptions,
    port: NetworkPort | undefined,
    file?: FileSink,
  ) {
    raiseInliningBudget();
    this.backend = backend;
    this.options = options;
    this.engine = new Engine(backend, options);
    const own = new OwnTasks(this.engine);
    if (port !== undefined) {
      this.peers = new Ranks(this.engine, port, {
        comm: options.comm === 'off' ? 'auto' : options.comm,
        flush: options.flush,
        inlineBytes: options.inlineBytes,
        treeFrom: options.treeFrom,
      });
      this.engine.remote = this.peers;
    }
    if (options.trace !== undefined) {
      const sink = file ?? openTraceFile(options.trace, backend.kind !== 'simulated');
      const { name, trace: _, ...rest } = options;
      const header = traceHeader(this.engine, name, hostname(), rest);
      this.tracer = new EngineTracer(this.engine, sink, header);
      this.engine.observe(this.tracer);
      keepOpen(this.tracer.recorder);
    }
    this.programData = new ProgramData(this.engine, this.peers, own, this.lifetime);
    this.classes = new ClassBinder(this.engine, this.programData);
    this.parts = new Parts({
      engine: this.engine,
      bind: (cls) => this.classes.bind(cls),
      makeDatum: (whole, region) => this.programData.makePart(whole, region),
      closeDatum: (datum) => this.programData.end(datum),
      endPart: (datum) => this.programData.closeQuietly(datum),
      mend: {
        cls: own.mend,
        insert: (datum, fail) => own.insert(own.mend, datum, undefined, { run: () => {}, fail }),
      },
      ranks: this.partsOnRanks(),
    });
    this.bodyParts = new BodyParts({
      engine: this.engine,
      bind: (cls) => this.classes.bind(cls),
      makeDatum: (task, whole, region) => this.programData.makeBodyPart(task, whole, region),
      closeDatum: (datum) => this.programData.end(datum),
      noteSize: (cls, flows) => void this.peers?.plan.noteSize(cls, flows),
    });
    this.programData.bodyParts = this.bodyParts;
    this.engine.retirement.onInternalLoss = (row, error) => this.parts.lost(row, error);
    this.programData.parts = this.parts;
    const { engine, peers, programData, classes } = this;
    const partials = new Partials(programData, peers, engine.backend.spaces[0].bytes);
    this.reductions = new Reductions({ engine, peers, programData, classes, partials });
    programData.reductions = this.reductions;
    // On several ranks, messages of plays start and end in host memory.
    const hasGpus = backend.spaces.length > 1;
    if (options.plans === 'off' || (port !== undefined && hasGpus)) return;
    const isOver = (): boolean => this.lifetime.isOver;
    this.recognition = new Recognition(this.engine, this, (insert, insertions, name) =>
      planAtOnce(this, this.engine, insert, insertions, name, isOver),
    );
    this.engine.held = this.recognition;
  }

  private partsOnRanks(): PartsOnRanks | undefined {
    const { engine, peers } = this;
    if (peers === undefined) return undefined;
    const ranks = new PartsOnRanks(engine, peers);
    peers.whenEraBegins = () => ranks.beginEra();
    return ranks;
  }

  /** A datum with the values of an array, which is copied. */
  data(values: Float64Array, options?: DatumOptions): Datum<'f64'>;
  data(values: Float32Array, options?: DatumOptions): Datum<'f32'>;
  data(values: Int32Array, options?: DatumOptions): Datum<'i32'>;
  data(values: Uint32Array, options?: DatumOptions): Datum<'u32'>;
  data(values: Uint8Array, options?: DatumOptions): Datum<'u8'>;
  data<E extends ElementType>(values: ElementArray<E>, options?: DatumOptions): Datum<E>;
  /** A datum of `length` elements that has no copy until a task writes it. */
  data<E extends ElementType>(element: E, length: number, options?: DatumOptions): Datum<E>;
  data(
    first: unknown,
    second?: number | DatumOptions,
    third?: DatumOptions,
    // biome-ignore lint/suspicious/noExplicitAny: the overloads above say which datum it is.
  ): Datum<any> {
    this.lifetime.check();
    return isElementType(first)
      ? this.programData.empty(first, second as number, third)
      : this.programData.from(first, second as DatumOptions | undefined);
  }

  /** This process's number among `ranks`. */
  get rank(): number {
    return this.programData.rank;
  }

  /** Number of processes that run this program together: the processes of mpirun, 1 without it. */
  get ranks(): number {
    return this.programData.ranks;
  }

  /** Runs an instance of a parameterised graph, as a program that inserts it. */
  run<A>(graph: ParameterisedGraph<A>, args: NoInfer<A>, options?: RunOptions): Run;
  /**
   * Runs a program: calls it with a graph for its tasks, and executes the tasks as they are inserted. Returns at once
   * (or when a synchronous program has inserted everything); await the handle for the report.
   *
   * @throws HeadraceError `ERR_ARGUMENT_TYPE` when the program is no function, `ERR_OPTION`, `ERR_TOO_MANY_RUNS`,
   *   `ERR_RUNTIME_CLOSED`. An error of the program rejects the run.
   */
  run(program: Program, options?: RunOptions): Run;
  run(first: Program | ParameterisedGraph<unknown>, second?: unknown, third?: RunOptions): Run {
    this.calls('run');
    const isGraph = isInstance(first, ParameterisedGraph);
    const program = isGraph ? (graph: Graph) => void first.insertInto(graph, second) : first;
    const options = (isGraph ? third : (second as RunOptions | undefined)) ?? {};
    if (typeof program !== 'function') {
      throw new HeadraceError(
        'ERR_ARGUMENT_TYPE',
        `a program is a function that gets a graph, not ${shown(program)}`,
      );
    }
    const { recognition } = this;
    const run = new Run(this, this.engine, program, checkRunOptions(options), recognition);
    this.openRuns.add(run);
    const forget = (): void => {
      this.openRuns.delete(run);
    };
    run.done.then(forget, forget);
    return run;
  }

  /** Plans an instance of a parameterised graph. Its temporaries live until the plan is closed. */
  plan<A>(graph: ParameterisedGraph<A>, args: NoInfer<A>, options?: PlanOptions): Promise<Plan>;
  /**
   * Plans a program: calls it with a graph for its tasks, and decides their order, devices, memory and copies once. No task
   * runs. `run` of the result plays them, as often as asked, without the JavaScript thread.
   *
   * Rejects with the errors of `Graph.insert` and of the program; with `ERR_PLAN_BODY` for a class whose body runs on this thread;
   * with `ERR_OUT_OF_HOST_MEMORY` when the data do not fit; with `ERR_RUNTIME_CLOSED` when the runtime is closed meanwhile. On
   * several ranks all ranks call it, with the same tasks; it rejects with the failure of another rank, with `ERR_GRAPH_MISMATCH`.
   */
  plan(
    program: (graph: PlanGraph) => void | PromiseLike<void>,
    options?: PlanOptions,
  ): Promise<Plan>;
  plan(
    first: ((graph: PlanGraph) => void | PromiseLike<void>) | ParameterisedGraph<unknown>,
    second?: unknown,
    third?: PlanOptions,
  ): Promise<Plan> {
    return this.engine.callbacks.refusal('runtime.plan()') ?? this.makePlan(first, second, third);
  }

  private async makePlan(
    first: ((graph: PlanGraph) => void | PromiseLike<void>) | ParameterisedGraph<unknown>,
    second?: unknown,
    third?: PlanOptions,
  ): Promise<Plan> {
    this.lifetime.check();
    const isGraph = isInstance(first, ParameterisedGraph);
    const program = isGraph ? (graph: PlanGraph) => void first.insertInto(graph, second) : first;
    const options = (isGraph ? third : (second as PlanOptions | undefined)) ?? {};
    return makePlan(
      this,
      this.engine,
      program as (graph: PlanGraph) => void,
      options,
      () => this.lifetime.isOver,
    );
  }

  /**
   * Loads a plan that `Plan.save` has written, on a machine of the same shape: as many workers, GPUs and streams, and the memory
   * that the plan needs. Data and task classes are found by name among those given; others are ignored. The plan is the one
   * that was saved, with the data and the kernels of this program. On several ranks all ranks call it, each with the file that
   * this rank has saved; `data` has the data of the whole plan.
   *
   * Rejects with `ERR_PLAN_FILE` for a file that cannot be read, is damaged or has another format; with `ERR_PLAN_MISMATCH`, which
   * says what differs, for another machine, or a datum or class that is missing or differs; with `ERR_NEVER_WRITTEN` for a
   * datum without a value that the plan reads; with `ERR_OUT_OF_HOST_MEMORY`, `ERR_UNKNOWN_KERNEL`, `ERR_FOREIGN_DATUM`,
   * `ERR_DATUM_CLOSED`, `ERR_ARGUMENT_TYPE`, `ERR_OPTION`. On several ranks it rejects on all ranks when it does so on one: there
   * with the error itself, which names the file, and on the others with `ERR_PEER_FAILED`, which names the rank; with
   * `ERR_PLAN_MISMATCH` when the files are parts of different plans.
   */
  loadPlan(file: string, options: LoadPlanOptions): Promise<Plan> {
    const load = async (): Promise<Plan> => {
      this.lifetime.check();
      return await loadPlan(this, this.engine, file, options, () => this.lifetime.isOver);
    };
    return this.engine.callbacks.refusal('runtime.loadPlan()') ?? load();
  }

  /** @throws HeadraceError `ERR_CALLBACK`, `ERR_RUNTIME_CLOSED` */
  private calls(call: string): void {
    this.engine.callbacks.check(`runtime.${call}()`);
    this.lifetime.check();
  }

  /**
   * The holders of the memory of each device: bytes in use, the tasks that wait for room, and every copy with its state,
   * pins and holder. The host comes first, then the GPUs. The call scans all data and live tasks, so do not call it for
   * every task. `explain()` and out-of-memory errors contain the same as text.
   */
  memory(): DeviceMemory[] {
    this.engine.callbacks.check('runtime.memory()');
    this.engine.held?.settle();
    return memoryReport(this.engine);
  }

  /**
   * What recognition has made of the runs so far: the plans that it keeps, what was played, and what was given up and why
   * (docs/plans.md). Undefined with `plans: 'off'`.
   */
  recognised(): RecognitionReport | undefined {
    this.engine.callbacks.check('runtime.recognised()');
    return this.recognition?.report();
  }

  /** Names of the GPUs, by number. */
  get gpus(): string[] {
    return this.backend.spaces.slice(1).map((s) => s.name);
  }

  /** The reason for which each live task waits, and the holders of the memory, as text. */
  explain(): string {
    this.engine.callbacks.check('runtime.explain()');
    this.engine.held?.settle();
    return this.engine.explain();
  }

  /**
   * The history of a task or a datum, in order, as text: insertion, stages, waits, copies and the end; a line each, with
   * the time since the oldest stimulus that is kept. The engine keeps its last 16384 stimuli with the option `checked`
   * and in the simulated machine; otherwise the text says that nothing is kept.
   *
   * @throws HeadraceError `ERR_ARGUMENT_TYPE` for any other value
   */
  story(of: TaskHandle | Datum): string {
    this.engine.callbacks.check('runtime.story()');
    this.engine.held?.settle();
    const { story } = this.engine;
    if (story === undefined)
      return 'nothing is kept: open the runtime with the option checked: true';
    if (isInstance(of, Datum)) return this.told(story.ofDatum(of.row), `datum '${of.name}'`);
    if (typeof of !== 'number')
      throw new HeadraceError(
        'ERR_ARGUMENT_TYPE',
        `a story needs a task or a datum, not ${shown(of)}`,
      );
    const [task] = this.engine.held?.tasksOf([of]) ?? [of];
    if (isElsewhere(task, this.ranks)) return 'the task runs on another rank, which has its story';
    return this.told(story.ofTask(task as TaskId), `task #${task}`);
  }

  private told(lines: readonly string[], name: string): string {
    return lines.length === 0 ? `nothing is kept of ${name}` : lines.join('\n');
  }

  /**
   * Finds and compiles the bodies of a task class now instead of at the insertion of its first task. Compiling takes
   * time, and loading device code may wait for running kernels.
   *
   * @throws HeadraceError `ERR_UNKNOWN_KERNEL`, or `ERR_KERNEL_SOURCE` with the compiler's log
   */
  prepare<F extends Flows, P extends Parameters>(cls: TaskClass<F, P>): void {
    this.calls('prepare');
    this.classes.bind(cls as unknown as TaskClass);
  }

  /**
   * Loads native kernels from a shared object (docs/kernels.md).
   * @returns the names it registered
   * @throws HeadraceError `ERR_OPTION`, `ERR_KERNEL_LIBRARY`
   */
  loadKernels(path: string): string[] {
    this.calls('loadKernels');
    checkFile(path, 'a kernel library');
    return this.backend.loadKernels(path);
  }

  /**
   * Waits for open runs, then stops all threads and frees everything. Idempotent. On several ranks every rank must call
   * it, and it waits for all of them.
   *
   * Rejects, after everything is closed, with `ERR_TRACE_WRITE` if the trace is incomplete, and with `ERR_PROGRAM_MISMATCH` if the
   * ranks made different calls and no other promise of this rank has reported it.
   */
  close(): Promise<void> {
    const refusal = this.engine.callbacks.refusal('runtime.close()');
    if (refusal !== undefined) return refusal;
    this.closed ??= this.closeInOrder();
    this.lifetime.isOver = true;
    return this.closed;
  }

  /** `await using runtime = await Runtime.create()` closes it at the end of the block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  private async closeInOrder(): Promise<void> {
    const ranks = this.peers;
    ranks?.calls.closes();
    await Promise.allSettled([...this.openRuns].map((run) => run.done));
    await this.engine.quiet();
    await ranks?.close();
    try {
      if (this.tracer !== undefined) finishTrace(this.tracer.recorder);
    } finally {
      await this.backend.scripts?.close();
      this.backend.close();
    }
    if (ranks !== undefined && !ranks.calls.told) ranks.calls.check();
  }
}
