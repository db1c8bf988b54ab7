/// <reference lib="esnext.disposable" preserve="true" />
// The runtime: opens the machine, owns data and runs, closes everything in order. The public entry point.

import { hostname } from 'node:os';
import { isAsyncFunction } from 'node:util/types';
import type { Backend } from '../devices/backend.js';
import { CopyEvent } from '../devices/coherency.js';
import { NO_HOME } from '../devices/directory.js';
import { HeadraceError } from '../devices/errors.js';
import { makeRoom } from '../devices/eviction.js';
import { openNativeBackend } from '../devices/native-backend.js';
import type { NetworkPort } from '../devices/network-port.js';
import { leastRing } from '../devices/submission.js';
import { ANY_DEVICE, type TaskClassRow } from '../stages/task-table.js';
import { AccessMode } from '../trace/format.js';
import { FileSink } from '../trace/sinks.js';
import { checkOptions, checkText, shown } from './checks.js';
import type { CudaKernelSource } from './cuda-kernel.js';
import { Datum } from './datum.js';
import {
  type AnyElementArray,
  type ElementArray,
  type ElementType,
  elementBytes,
  elementTypeOf,
  isElementType,
  newArray,
  viewAs,
} from './element-type.js';
import { Engine, INTERNAL_RUN } from './engine.js';
import { EngineTracer } from './engine-tracer.js';
import type { BoundClass } from './graph.js';
import { raiseInliningBudget } from './inlining.js';
import { type DeviceMemory, memoryReport } from './memory-report.js';
import {
  MOST_BYTES,
  type ResolvedOptions,
  type RuntimeOptions,
  resolveOptions,
} from './options.js';
import { ownCores } from './own-cores.js';
import { firstGpu, openRanks, spinNanoseconds } from './rank-open.js';
import { Ranks } from './ranks.js';
import { checkRunOptions, type Program, Run, type RunOptions } from './run.js';
import type { RunState } from './run-state.js';
import {
  type Flows,
  isTaskClass,
  ParameterKind,
  type Parameters,
  type TaskClass,
} from './task-class.js';
import { loadTelemetry } from './telemetry.js';
import { traceHeader } from './trace-header.js';

/** Options of a datum. */
export interface DatumOptions {
  /** Shown in errors and traces; default `data-N`. */
  readonly name?: string;
  /** Device on which tasks that write it should run: a GPU number from 0, or 'host'. */
  readonly device?: number | 'host';
  /** Rank that owns it, where there are several; default 0. The owner's values count, the others' are ignored. */
  readonly rank?: number;
  /** Rows of the column-major matrix that its elements form; must divide their number. Default: one column. */
  readonly rows?: number;
}

const DATUM_OPTIONS: readonly string[] = ['name', 'device', 'rank', 'rows'];

/** What a new datum is to be: checked options. */
interface DatumWish {
  readonly name: string;
  readonly owner: number;
  readonly home: number;
  readonly rows: number | undefined;
}

/** One step of the runtime's own tasks. */
interface InternalJob {
  readonly run: () => void;
  readonly fail: (error: HeadraceError) => void;
}

/** Insertions per class whose options' names are checked: a misspelt name stands in the program's text. */
const CHECKED_INSERTIONS = 16;
/** Record slack per ring: waits and long argument lists count as records too. */
const RING_FACTOR = 4;

/** Records per ring: a power of two with room for what runs ahead, and for a command that waits for every queue. */
function ringRecords(options: ResolvedOptions): number {
  const { workers, gpus, computeStreams, runAhead } = options;
  // Each GPU has streams for kernels, for copies to and from the host, and for copies from each other GPU.
  const queues = workers + gpus * (computeStreams + 2 + gpus);
  let records = Math.max(1024, runAhead * RING_FACTOR);
  while (records < 2 * leastRing(queues)) records *= 2;
  return records;
}

/** An opened machine: its devices, the data in their memory, and the runs on them. */
export class Runtime {
  /** Effective options. */
  readonly options: ResolvedOptions;
  /** @internal */
  readonly engine: Engine;
  private readonly backend: Backend;
  private readonly bound: WeakMap<object, BoundClass> = new WeakMap();
  private readonly jobs: Map<number, InternalJob> = new Map();
  private readonly readClass: TaskClassRow;
  private readonly writeClass: TaskClassRow;
  private readonly restoreClass: TaskClassRow;
  private readonly closeClass: TaskClassRow;
  private readonly sink: FileSink | undefined;
  private readonly openRuns: Set<Run> = new Set();
  private nextJob = 1;
  private nextName = 1;
  private closing: Promise<void> | undefined;
  /** Carried by open data of this runtime, by element type. @internal */
  readonly tokens: Readonly<Record<ElementType, object>> = {
    f64: {},
    f32: {},
    i32: {},
    u32: {},
    u8: {},
  };
  private readonly internalArgs: Int32Array = new Int32Array(1);
  private readonly internalParams: Float64Array = new Float64Array(1);

  /**
   * Opens the machine: host workers and, if asked for, GPUs.
   *
   * @throws HeadraceError `ERR_OPTION` for options out of range, `ERR_NATIVE_MISSING` when the native addon is not
   *   built or cannot be loaded, `ERR_NO_GPU` when the driver or that many GPUs are not there; under mpirun
   *   `ERR_MPI_MISSING`, `ERR_MPI_MISMATCH`, `ERR_MPI_START`, and `ERR_COMM_UNAVAILABLE` when the way asked for with
   *   `comm` is not there.
   */
  static async create(options: RuntimeOptions = {}): Promise<Runtime> {
    const resolved = resolveOptions(options);
    await loadTelemetry();
    const backend = openNativeBackend({
      driver: resolved.driver,
      gpus: resolved.gpus,
      firstGpu: firstGpu(resolved),
      gpuBytes: resolved.gpuBytes,
      hostBytes: resolved.hostBytes,
      pinnedBytes: resolved.pinnedBytes,
      workers: resolved.workers,
      cores: ownCores(),
      spinNanoseconds: spinNanoseconds(resolved),
      computeStreams: resolved.computeStreams,
      ringRecords: ringRecords(resolved),
      checked: resolved.checked,
    });
    let port: NetworkPort | undefined;
    try {
      port = await openRanks(backend, resolved);
    } catch (error) {
      backend.close();
      throw error;
    }
    return new Runtime(backend, resolved, port);
  }

  /** @internal A runtime over any backend; tests and the simulator use it. */
  static over(backend: Backend, options: RuntimeOptions = {}, port?: NetworkPort): Runtime {
    return new Runtime(backend, resolveOptions(options), port);
  }

  private constructor(backend: Backend, options: ResolvedOptions, port: NetworkPort | undefined) {
    raiseInliningBudget();
    this.backend = backend;
    this.options = options;
    this.engine = new Engine(backend, options);
    this.engine.onInternalFailure = (row, error) => this.jobFailed(row, error);
    this.readClass = this.internalClass('read', [AccessMode.read]);
    this.writeClass = this.internalClass('set', [AccessMode.write]);
    this.restoreClass = this.internalClass('restore', [AccessMode.readWrite], true);
    this.closeClass = this.internalClass('close', []);
    if (port !== undefined) {
      this.engine.ranks = new Ranks(this.engine, port, {
        comm: options.comm === 'off' ? 'auto' : options.comm,
        flush: options.flush,
        inlineBytes: options.inlineBytes,
        treeFrom: options.treeFrom,
      });
    }
    if (options.trace !== undefined) {
      this.sink = new FileSink(options.trace);
      const { name, trace: _, ...rest } = options;
      this.engine.tracer = new EngineTracer(
        this.engine,
        this.sink,
        traceHeader(this.engine, name, hostname(), rest),
      );
    }
  }

  // --- Data ---------------------------------------------------------------------------------------------------

  /** A datum with the values of an array, which is copied. */
  data(values: Float64Array, options?: DatumOptions): Datum<'f64'>;
  data(values: Float32Array, options?: DatumOptions): Datum<'f32'>;
  data(values: Int32Array, options?: DatumOptions): Datum<'i32'>;
  data(values: Uint32Array, options?: DatumOptions): Datum<'u32'>;
  data(values: Uint8Array, options?: DatumOptions): Datum<'u8'>;
  data<E extends ElementType>(values: ElementArray<E>, options?: DatumOptions): Datum<E>;
  /** A datum of `length` elements that exists nowhere until a task writes it. */
  data<E extends ElementType>(element: E, length: number, options?: DatumOptions): Datum<E>;
  data(
    first: unknown,
    second?: number | DatumOptions,
    third?: DatumOptions,
    // biome-ignore lint/suspicious/noExplicitAny: the overloads above say which datum it is.
  ): Datum<any> {
    this.checkOpen();
    if (isElementType(first)) {
      const wish = this.datumWish(third);
      const length = second as number;
      if (!Number.isSafeInteger(length) || length < 1) {
        throw new HeadraceError(
          'ERR_OPTION',
          `datum '${wish.name}' needs a whole number of elements of at least 1, not ${shown(length)}`,
          { datum: wish.name },
        );
      }
      return this.newDatum(first, length, wish);
    }
    const element = elementTypeOf(first);
    if (element === undefined) {
      throw new HeadraceError(
        'ERR_ARGUMENT_TYPE',
        `data are made from a typed array or an element type, not from ${shown(first)}`,
        {
          remedy: 'Float64Array, Float32Array, Int32Array, Uint32Array or Uint8Array',
        },
      );
    }
    const wish = this.datumWish(second as DatumOptions | undefined);
    const values = first as AnyElementArray;
    if (values.length === 0) {
      throw new HeadraceError('ERR_OPTION', `datum '${wish.name}' needs at least one element`, {
        datum: wish.name,
      });
    }
    const datum = this.newDatum(element, values.length, wish);
    if (datum.rank !== this.rank) {
      this.valueIsElsewhere(datum);
      return datum;
    }
    try {
      this.fillAtHome(datum, values);
    } catch (error) {
      datum.token = undefined;
      this.engine.directory.remove(datum.row);
      throw error;
    }
    return datum;
  }

  /** The options of a datum, each read once and checked. */
  private datumWish(options: DatumOptions = {}): DatumWish {
    checkOptions(options, DATUM_OPTIONS, 'the options of a datum');
    const { device, rank, rows } = options;
    const name = checkText(options.name ?? `data-${this.nextName++}`, 'name');
    const { inBody } = this.engine;
    // A body runs on one rank only: what it creates is that rank's.
    const owner = rank ?? (inBody ? this.rank : 0);
    if (!Number.isInteger(owner) || owner < 0 || owner >= this.ranks) {
      throw new HeadraceError(
        'ERR_NO_RANK',
        `datum '${name}': there is no rank ${shown(owner)}, there are ${this.ranks}`,
        {
          datum: name,
          limit: this.ranks,
        },
      );
    }
    if (inBody && owner !== this.rank) {
      throw new HeadraceError(
        'ERR_INSERT_ALONE',
        `datum '${name}' of rank ${owner} is created by a body on rank ${this.rank}, of which the other ranks do not know`,
        { datum: name, remedy: 'create it in the program, on all ranks' },
      );
    }
    return { name, owner, rows, home: device === undefined ? NO_HOME : this.homeOf(device) };
  }

  private newDatum(element: ElementType, length: number, wish: DatumWish): Datum {
    const { name, owner, home, rows = length } = wish;
    if (!Number.isSafeInteger(rows) || rows < 1 || length % rows !== 0) {
      throw new HeadraceError(
        'ERR_OPTION',
        `datum '${name}': ${length} elements do not form columns of ${shown(rows)} rows`,
        { datum: name },
      );
    }
    if (length * elementBytes(element) > MOST_BYTES) {
      throw new HeadraceError(
        'ERR_OPTION',
        `datum '${name}' of ${length} elements has more than 2^53 bytes`,
        { datum: name, limit: MOST_BYTES },
      );
    }
    const datum = new Datum(this, name, element, length, rows, (d) =>
      this.engine.addDatum(d.bytes, d),
    );
    this.engine.ranks?.addDatum(datum.row, owner);
    this.engine.directory.home[datum.row] = home;
    return datum;
  }

  /** This process's number among `ranks`. */
  get rank(): number {
    return this.engine.ranks?.rank ?? 0;
  }

  /** Processes that run this program together: those that mpirun started, 1 without it. */
  get ranks(): number {
    return this.engine.ranks?.size ?? 1;
  }

  /** @internal */
  rankOf(datum: Datum): number {
    return this.engine.ranks?.ownerOf(datum.row) ?? 0;
  }

  /** The first value of a datum is that of another rank. @internal */
  valueIsElsewhere(datum: Datum): void {
    this.engine.directory.written[datum.row] = 1;
  }

  /** Gives a new datum its first value in host memory, without a task. */
  private fillAtHome(datum: Datum, values: AnyElementArray): void {
    const { engine } = this;
    const host = engine.spaces[0];
    const dir = engine.directory;
    const d = datum.row;
    let offset = makeRoom(host, engine.x.counters, datum.bytes);
    const since = offset < 0 ? engine.backend.now() : 0;
    while (offset < 0 && engine.waitForTransfers(since))
      offset = makeRoom(host, engine.x.counters, datum.bytes);
    if (offset < 0) {
      throw new HeadraceError(
        'ERR_OUT_OF_HOST_MEMORY',
        `datum '${datum.name}' needs ${datum.bytes} bytes, but host memory is full (${host.zone.used} of ${host.zone.capacity} bytes in use)`,
        {
          datum: datum.name,
          bytes: datum.bytes,
          limit: host.zone.capacity,
          remedy: 'raise hostMemory or close data that are no longer needed',
          report: engine.memoryText(),
        },
      );
    }
    dir.block[d * dir.spaces] = offset;
    dir.apply(d, 0, CopyEvent.write);
    dir.written[d] = 1;
    this.hostArray(datum).set(values as never);
  }

  /** Array over the host copy of a datum. Only while the copy is in use or nothing runs. @internal */
  hostArray<E extends ElementType>(datum: Datum<E>): ElementArray<E> {
    const dir = this.engine.directory;
    const offset = dir.block[datum.row * dir.spaces];
    if (datum.hostOffset !== offset || datum.hostArray === undefined) {
      datum.hostArray = viewAs(datum.element, this.backend.hostView(offset, datum.bytes));
      datum.hostOffset = offset;
    }
    return datum.hostArray;
  }

  /** @internal */
  readDatum<E extends ElementType>(datum: Datum<E>): Promise<ElementArray<E>> {
    return new Promise((resolve, reject) => {
      this.checkDatum(datum);
      const { ranks } = this.engine;
      ranks?.calls.made('read', datum);
      if (this.engine.directory.written[datum.row] === 0 && ranks?.mustKnow(datum.row) !== false) {
        ranks?.refuseRead(datum.row);
        throw neverWritten(datum);
      }
      ranks?.read(datum.row);
      this.internal(this.readClass, datum, undefined, {
        run: () => {
          const copy = newArray(datum.element, datum.length);
          copy.set(this.hostArray(datum) as never);
          resolve(copy);
        },
        fail: (error) => reject(ranks?.failureOf(datum.row) ?? error),
      });
    });
  }

  /** @internal */
  setDatum<E extends ElementType>(datum: Datum<E>, values: ElementArray<E>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.checkDatum(datum);
      if (elementTypeOf(values) !== datum.element || values.length !== datum.length) {
        throw new HeadraceError(
          'ERR_ARGUMENT_TYPE',
          `datum '${datum.name}' takes ${datum.length} elements of ${datum.element}`,
          { datum: datum.name },
        );
      }
      const { ranks } = this.engine;
      ranks?.calls.made('set', datum);
      ranks?.plan.written(datum.row, datum.rank);
      if (datum.rank !== this.rank) {
        resolve();
        return;
      }
      const copy = newArray(datum.element, datum.length);
      copy.set(values as never);
      this.internal(this.writeClass, datum, undefined, {
        run: () => {
          this.hostArray(datum).set(copy as never);
          resolve();
        },
        fail: reject,
      });
    });
  }

  /** @internal */
  restoreDatum(datum: Datum): Promise<void> {
    return new Promise((resolve, reject) => {
      this.checkDatum(datum);
      const { ranks } = this.engine;
      ranks?.calls.made('restore', datum);
      if (this.engine.directory.written[datum.row] === 0 && ranks?.mustKnow(datum.row) !== false)
        throw neverWritten(datum);
      ranks?.plan.planRestore(datum.row, this.engine.runs[INTERNAL_RUN] as RunState);
      if (datum.rank === this.rank)
        this.internal(this.restoreClass, datum, undefined, {
          run: resolve,
          fail: (error) => reject(ranks?.failureOf(datum.row) ?? error),
        });
      else resolve();
    });
  }

  /** @internal */
  adviseDatum(datum: Datum, device: number | 'host'): void {
    this.checkDatum(datum);
    this.engine.directory.home[datum.row] = this.homeOf(device);
  }

  private homeOf(device: number | 'host'): number {
    const s = this.spaceOf(device);
    return s === 0 ? NO_HOME : s;
  }

  /** @internal */
  locationsOf(datum: Datum): string[] {
    this.checkDatum(datum);
    const dir = this.engine.directory;
    const owner = dir.owner(datum.row);
    const list: string[] = [];
    for (let s = 0; s < dir.spaces; s++) {
      if ((dir.validMask[datum.row] >> s) & 1) {
        if (s === owner) list.unshift(this.engine.spaceName(s));
        else list.push(this.engine.spaceName(s));
      }
    }
    return list;
  }

  /** @internal */
  closeDatum(datum: Datum): void {
    if (datum.closed || this.closing !== undefined) return;
    this.engine.ranks?.calls.made('close', datum);
    datum.token = undefined;
    datum.hostArray = undefined;
    const users = this.engine.dependencies.users(datum.row);
    this.internal(this.closeClass, undefined, users, {
      run: () => this.engine.forgetDatum(datum.row),
      fail: () => this.engine.forgetDatum(datum.row),
    });
  }

  // --- Runs ---------------------------------------------------------------------------------------------------

  /**
   * Runs a program: calls it with a graph to insert tasks into, and executes them as they come. Returns at once (or
   * when a synchronous program has inserted everything); await the handle for the report.
   *
   * @throws HeadraceError `ERR_ARGUMENT_TYPE` when the program is no function, `ERR_OPTION`, `ERR_TOO_MANY_RUNS`,
   *   `ERR_RUNTIME_CLOSED`. What the program throws rejects the run.
   */
  run(program: Program, options: RunOptions = {}): Run {
    this.checkOpen();
    if (typeof program !== 'function') {
      throw new HeadraceError(
        'ERR_ARGUMENT_TYPE',
        `a program is a function that gets a graph, not ${shown(program)}`,
      );
    }
    const run = new Run(this, this.engine, program, checkRunOptions(options));
    this.openRuns.add(run);
    const forget = (): void => {
      this.openRuns.delete(run);
    };
    run.done.then(forget, forget);
    return run;
  }

  /**
   * Who holds the memory of each device: bytes in use, the tasks in line for room, and every copy with its state, pins
   * and holder. The host comes first, then the GPUs. Looks at all data and live tasks, so it is for questions, not for
   * every task. The same as text is part of `explain()` and of out-of-memory errors.
   */
  memory(): DeviceMemory[] {
    return memoryReport(this.engine);
  }

  /** Names of the GPUs, by number. */
  get gpus(): string[] {
    return this.backend.spaces.slice(1).map((s) => s.name);
  }

  /** What every live task waits for, and who holds the memory, as text. */
  explain(): string {
    return this.engine.explain();
  }

  /**
   * Finds and compiles the bodies of a task class now rather than when its first task is inserted: compiling takes a
   * while, and loading device code may wait for kernels that run.
   *
   * @throws HeadraceError `ERR_UNKNOWN_KERNEL`, or `ERR_KERNEL_SOURCE` with the compiler's log
   */
  prepare<F extends Flows, P extends Parameters>(cls: TaskClass<F, P>): void {
    this.checkOpen();
    this.bind(cls as unknown as TaskClass);
  }

  /**
   * Loads native kernels from a shared object (docs/kernels.md).
   * @returns the names it registered
   */
  loadKernels(path: string): string[] {
    this.checkOpen();
    return this.backend.loadKernels(path);
  }

  /**
   * Waits for open runs, then stops all threads and frees everything. Idempotent. On several ranks every rank must call
   * it, and it waits for all of them.
   *
   * Rejects, when everything is closed, with `ERR_PROGRAM_MISMATCH` if the ranks did not make the same calls and nothing
   * else has said so on this rank.
   */
  close(): Promise<void> {
    this.closing ??= this.closeInOrder();
    return this.closing;
  }

  /** `await using runtime = await Runtime.create()` closes it at the end of the block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  private async closeInOrder(): Promise<void> {
    const { ranks } = this.engine;
    ranks?.calls.closes();
    await Promise.allSettled([...this.openRuns].map((run) => run.done));
    await this.engine.quiet();
    await ranks?.close();
    this.engine.tracer?.recorder.finish();
    this.backend.close();
    if (ranks !== undefined && !ranks.calls.told) ranks.calls.check();
  }

  // --- Classes ------------------------------------------------------------------------------------------------

  /** Resolves the bodies of a task class on this machine. @internal */
  bind(cls: TaskClass): BoundClass {
    const known = this.bound.get(cls);
    if (known !== undefined) return known;
    if (!isTaskClass(cls)) {
      throw new HeadraceError('ERR_ARGUMENT_TYPE', `${shown(cls)} is no task class`, {
        remedy: 'make one with task({ ... })',
      });
    }
    const { definition } = cls;
    const { backend, engine } = this;
    const kernels = Int32Array.from(backend.spaces, ({ kind }, s) => {
      if (kind === 'cuda' && cls.cuda !== undefined) return this.cudaKernel(cls.cuda, s);
      const wanted = s === 0 ? definition.kernel : (definition.gpuKernel ?? definition.kernel);
      return wanted === undefined || wanted === false ? -1 : backend.kernel(wanted, s);
    });
    const explain = definition.explain;
    const row: TaskClassRow = {
      id: engine.x.classes.length,
      name: cls.name,
      flowNames: cls.flowNames,
      paramNames: cls.paramNames,
      modes: cls.modes,
      pulls: cls.pulls,
      kernels,
      body: this.scriptBody(cls),
      explain:
        explain === undefined
          ? undefined
          : (code, at) => explain(code, this.namesOf(cls, at) as never),
      failureCode: definition.failureCode,
    };
    this.checkBodies(cls, row);
    this.checkArguments(row);
    engine.x.classes.push(row);
    if (isAsyncFunction(definition.body)) engine.bodies.isAsync(row.id);
    const gpus = this.gpuSpaces(row);
    const spaces = gpus.length > 0 ? gpus : [0];
    const capacity = Math.min(...spaces.map((s) => engine.spaces[s].zone.capacity));
    const bound: BoundClass = {
      row,
      cls,
      tokens: cls.elements.map((element) => this.tokens[element]),
      written:
        cls.modes.length > 1
          ? Uint8Array.from(cls.modes.keys()).filter((i) => cls.modes[i] !== AccessMode.read)
          : new Uint8Array(0),
      kinds: Uint8Array.from(
        cls.paramNames,
        (p) => ParameterKind[(definition.params as Parameters)[p]],
      ),
      unchecked: CHECKED_INSERTIONS,
      // Rounding adds less than one alignment unit per flow.
      safeBytes: capacity - cls.flowNames.length * 512,
    };
    this.bound.set(cls, bound);
    return bound;
  }

  /** GPUs on which a class can run. @internal */
  gpuSpaces(row: TaskClassRow): number[] {
    const list: number[] = [];
    for (let s = 1; s < row.kernels.length; s++) if (row.kernels[s] >= 0) list.push(s);
    return list;
  }

  /** Memory space of a device in the user's words. @internal */
  spaceOf(device: number | 'host'): number {
    if (device === 'host') return 0;
    const gpus = this.backend.spaces.length - 1;
    if (!Number.isInteger(device) || device < 0 || device >= gpus) {
      throw new HeadraceError(
        'ERR_NO_DEVICE',
        `there is no GPU ${shown(device)}: this runtime has ${gpus === 0 ? 'none' : `GPUs 0 to ${gpus - 1}`}`,
      );
    }
    return device + 1;
  }

  /** Id of a CUDA kernel on a CUDA GPU; compiled when this process has not seen it yet. */
  private cudaKernel(source: CudaKernelSource, space: number): number {
    const { name } = source.kernels[0];
    if (this.backend.kernel(name, space) < 0) this.backend.compileKernels(source);
    return this.backend.kernel(name, space);
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

  /** Throws when a task of the class would not fit an empty window and an empty queue: it would wait for ever. */
  private checkArguments({ name, flowNames, paramNames }: TaskClassRow): void {
    const { tasks, submission } = this.engine;
    const [flows, params] = [flowNames.length, paramNames.length];
    const each = tasks.maxArguments;
    const limit = submission.mostArguments;
    if (flows <= each && params <= each && flows + params <= limit) return;
    throw new HeadraceError(
      'ERR_TASK_CLASS',
      `task class '${name}' has ${flows} data and ${params} parameters; this runtime takes ${each} of each and ${limit} in all`,
      {
        limit,
        remedy: 'split the task, or open the runtime with a larger `window` and `runAhead`',
      },
    );
  }

  private scriptBody(cls: TaskClass): TaskClassRow['body'] {
    const body = cls.definition.body as ((args: Record<string, unknown>) => unknown) | undefined;
    if (body === undefined) return undefined;
    const { flowNames, paramNames } = cls;
    const types = cls.definition.params as Parameters | undefined;
    const { engine } = this;
    return (_id, row) => {
      const { tasks, directory } = engine;
      const args: Record<string, unknown> = {};
      const first = tasks.flowStart[row];
      for (let i = 0; i < flowNames.length; i++) {
        args[flowNames[i]] = this.hostArray(directory.info[tasks.flowDatum[first + i]] as Datum);
      }
      const params = tasks.paramStart[row];
      for (let i = 0; i < paramNames.length; i++) {
        const value = tasks.params[params + i];
        args[paramNames[i]] = types?.[paramNames[i]] === 'bool' ? value !== 0 : value;
      }
      return body(args);
    };
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

  // --- The runtime's own tasks --------------------------------------------------------------------------------

  private internalClass(name: string, modes: readonly number[], restores = false): TaskClassRow {
    const { engine } = this;
    const row: TaskClassRow = {
      id: engine.x.classes.length,
      name,
      flowNames: modes.map(() => 'datum'),
      paramNames: ['job'],
      modes: [...modes],
      kernels: new Int32Array(this.backend.spaces.length).fill(-1),
      body: (_id, at) => {
        const key = engine.tasks.params[engine.tasks.paramStart[at]];
        // A job that throws is a task that fails, and `jobFailed` looks for it.
        this.jobs.get(key)?.run();
        this.jobs.delete(key);
      },
      explain: undefined,
      failureCode: undefined,
      restores,
    };
    engine.x.classes.push(row);
    return row;
  }

  private internal(
    cls: TaskClassRow,
    datum: Datum | undefined,
    after: readonly number[] | undefined,
    job: InternalJob,
  ): void {
    this.engine.reserveRow(cls);
    const key = this.nextJob++;
    this.jobs.set(key, job);
    if (datum !== undefined) this.internalArgs[0] = datum.row;
    this.internalParams[0] = key;
    const run = this.engine.runs[INTERNAL_RUN] as RunState;
    this.engine.insert(cls, run, this.internalArgs, this.internalParams, 0, ANY_DEVICE, after);
    this.engine.wake();
  }

  private jobFailed(row: number, error: HeadraceError): void {
    const { tasks } = this.engine;
    const key = tasks.params[tasks.paramStart[row]];
    const job = this.jobs.get(key);
    this.jobs.delete(key);
    job?.fail(error);
  }

  private checkOpen(): void {
    if (this.closing !== undefined) {
      throw new HeadraceError('ERR_RUNTIME_CLOSED', 'the runtime is closed');
    }
  }

  private checkDatum(datum: Datum): void {
    this.checkOpen();
    if (datum.closed) {
      throw new HeadraceError('ERR_DATUM_CLOSED', `datum '${datum.name}' is closed`, {
        datum: datum.name,
      });
    }
  }
}

function neverWritten(datum: Datum): HeadraceError {
  return new HeadraceError('ERR_NEVER_WRITTEN', `datum '${datum.name}' was never written`, {
    datum: datum.name,
  });
}
