// A run: one program function that inserts tasks, and the handle to follow, await or cancel it.

import { EventEmitter } from 'eventemitter3';
import { HeadraceError, RunAbortedError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import type { TaskHandle } from '../../devices/handles.js';
import { describeThrown, isError } from '../../trace/thrown.js';
import { checkText, checkTruth, optionsOf, reading, shown } from '../checks.js';
import type { Engine } from '../engine/engine.js';
import type { RunState } from '../engine/run-state.js';
import { promiseOf } from '../engine/thenable.js';
import type { Ranks } from '../ranks/ranks.js';
import type { Recognition } from '../recognition/recognition.js';
import type { RunWatch } from '../recognition/run-watch.js';
import { explainAll, explainTask, type TaskExplanation } from '../reports/explain.js';
import { difference, type EngineTotals, type RunReport, totals } from '../reports/run-report.js';
import { progressOf, type RunProgress, type RunStatus, StatusSampler } from '../reports/status.js';
import { RunSpan } from '../reports/telemetry.js';
import { Graph, type GraphRuntime } from './graph.js';
import { runChannels } from './run-channels.js';

/**
 * Events of a run, with their arguments. A listener that throws causes a process warning (`HEADRACE_LISTENER`); later
 * listeners do not receive that event, and the run continues. The same events are published on the channels
 * `headrace:run:start`, `:progress`, `:end` and `:error` of node:diagnostics_channel.
 */
export interface RunEvents {
  /** At most every 50 ms while tasks complete, and at the end. */
  progress: [RunStatus];
  /** The run succeeded. */
  end: [RunReport];
  /** The run failed or was aborted. */
  error: [Error];
}

/** Options of `Runtime.run`. */
export interface RunOptions {
  /** Aborts the run: queued tasks are dropped, running ones end, then the run rejects with an AbortError. */
  readonly signal?: AbortSignal;
  /**
   * Several ranks: the program skips tasks that do not concern its rank (`graph.owns`), so the graphs of the ranks are
   * not compared task by task.
   */
  readonly pruned?: boolean;
  /** Name on channels and of the OpenTelemetry span; default `run`. */
  readonly name?: string;
}

/** A program: a function, possibly asynchronous, that inserts tasks into its graph. */
export type Program = (graph: Graph) => void | PromiseLike<void>;

const PROGRESS_MS = 50;
const RUN_OPTIONS: readonly string[] = ['signal', 'pruned', 'name'];

/** The options of a run, each read once and checked. @internal */
export function checkRunOptions(options: RunOptions): RunOptions {
  const given = optionsOf(options, RUN_OPTIONS, 'the options of a run');
  const { signal, pruned = false, name = 'run' } = given;
  checkTruth(pruned, 'pruned');
  checkText(name, 'name');
  if (signal === undefined) return { pruned, name };
  const isSignal = reading(
    'ERR_OPTION',
    'signal',
    () =>
      typeof signal === 'object' &&
      typeof signal?.aborted === 'boolean' &&
      typeof signal.addEventListener === 'function',
  );
  if (!isSignal) {
    throw new HeadraceError('ERR_OPTION', `signal must be an AbortSignal, not ${shown(signal)}`);
  }
  return { signal, pruned, name };
}

/** Handle of a run. Await it (or `done`) for the report. */
export class Run implements PromiseLike<RunReport> {
  readonly events: EventEmitter<RunEvents> = new EventEmitter<RunEvents>();
  /** Resolves with the report; rejects with the first failure, or an AbortError. */
  readonly done: Promise<RunReport>;
  private readonly engine: Engine;
  private readonly peers: Ranks | undefined;
  private readonly state: RunState;
  private readonly before: EngineTotals;
  private resolve: (report: RunReport) => void = () => {};
  private reject: (error: Error) => void = () => {};
  private thrown: Error | undefined;
  private lastProgress = 0;
  private readonly name: string;
  /** The same on all ranks, where there are several. */
  private readonly number: number;
  private readonly sampler: StatusSampler;
  private readonly span: RunSpan;
  private readonly endReductions: () => void;
  private detach: () => void = () => {};
  private readonly recognition: Recognition | undefined;
  private readonly watch: RunWatch | undefined;
  private readonly isPruned: boolean;
  /** Tasks of all ranks. */
  private total = 0;

  /** @internal Use `runtime.run`. */
  constructor(
    runtime: GraphRuntime & { readonly rank: number; readonly ranks: number },
    engine: Engine,
    program: Program,
    options: RunOptions,
    recognition?: Recognition,
  ) {
    this.engine = engine;
    this.peers = runtime.peers;
    this.state = engine.openRun();
    this.before = totals(engine);
    this.name = options.name ?? 'run';
    this.sampler = new StatusSampler(engine, this.state, this.before);
    this.span = new RunSpan(this.name, runtime.rank, runtime.ranks);
    this.done = new Promise<RunReport>((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    // A run that is not awaited still reports its failure through the event, without an unhandled rejection.
    this.state.onOver = () => this.over();
    this.state.onProgress = () => this.progressed();
    engine.observer?.runBegan(this.state);
    const { signal, pruned = false } = options;
    // Other ranks learn of the failure of a run by its number. A signal may be aborted already.
    if (!guards.abortNumbered) this.follow(signal);
    this.number = this.peers?.runs.begin(this.state, this.name, pruned) ?? 0;
    if (guards.abortNumbered) this.follow(signal);
    this.isPruned = pruned && this.peers !== undefined;
    this.publish('start', {});
    this.recognition = recognition;
    const graph = new Graph(runtime, engine, this.state);
    this.endReductions = () => runtime.reductions.endAll(graph);
    this.watch = recognition?.watch(this.state, this.name, graph);
    this.start(program, graph);
  }

  /** The present progress of the run. */
  get progress(): RunProgress {
    this.engine.callbacks.check('run.progress');
    this.engine.held?.settle();
    return progressOf(this.state);
  }

  /**
   * The present state of the run: progress, rates, memory per device, and the reasons for which its tasks wait. For a
   * timer: the events report nothing of a run in which nothing moves.
   */
  status(): RunStatus {
    this.engine.callbacks.check('run.status()');
    this.engine.held?.settle();
    return this.sampler.sample();
  }

  /**
   * The reason for which a task of this run waits: its stage, the reason, its predecessors, and the places of its data.
   * @throws HeadraceError `ERR_UNKNOWN_TASK` when the run has inserted no such task on this rank
   */
  explain(task: TaskHandle): TaskExplanation;
  /** The same for every live task of the run, with the holders of the memory, as text. */
  explain(): string;
  explain(task?: TaskHandle): TaskExplanation | string {
    const { engine, state } = this;
    engine.callbacks.check('run.explain()');
    engine.held?.settle();
    // The slot of a run that is over may belong to another run now.
    const slot = state.over ? -1 : state.slot;
    if (task === undefined) return explainAll(engine, slot);
    const [handle] = engine.held?.tasksOf([task]) ?? [task];
    return explainTask(engine, handle, slot);
  }

  /** Drops queued tasks, lets running ones end; the run then rejects with an AbortError. */
  cancel(reason?: unknown): void {
    if (this.state.over) return;
    // It may be called by whatever aborts a signal, and takes effect between two tasks anyway.
    if (this.engine.callbacks.refuses) {
      setImmediate(() => this.cancel(reason));
      return;
    }
    this.engine.held?.settle();
    // What was held back may be played and over by now, on all ranks.
    if (this.state.over && guards.overStaysOver) return;
    const words = reason === undefined ? '' : describeThrown(reason);
    const text = words === '' ? 'the run was cancelled' : `the run was cancelled: ${words}`;
    this.engine.failRun(this.state, new RunAbortedError(text, reason));
  }

  then<A = RunReport, B = never>(
    onDone?: ((report: RunReport) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.done.then(onDone, onError);
  }

  private follow(signal: AbortSignal | undefined): void {
    if (signal !== undefined) this.guarded('the signal', () => this.listen(signal));
  }

  private listen(signal: AbortSignal): void {
    const abort = (): void => {
      let reason: unknown;
      this.guarded('the signal', () => {
        ({ reason } = signal);
      });
      this.cancel(reason);
    };
    if (signal.aborted) {
      abort();
      return;
    }
    signal.addEventListener('abort', abort, { once: true });
    this.detach = () => signal.removeEventListener('abort', abort);
  }

  private start(program: Program, graph: Graph): void {
    let result: unknown;
    try {
      const ranks = this.peers;
      const call = (): unknown => this.span.within(() => program(graph));
      result = ranks === undefined ? call() : ranks.calls.within(this.number, call);
    } catch (error) {
      this.programFailed(error);
      return;
    }
    const later = promiseOf(result);
    if (later === undefined) this.seal();
    else {
      const { watch } = this;
      if (watch !== undefined) setImmediate(() => watch.awaits());
      later.then(
        () => this.seal(),
        (error: unknown) => this.programFailed(error),
      );
    }
  }

  private programFailed(error: unknown): void {
    this.failed(error);
    this.seal();
  }

  private failed(error: unknown): void {
    this.engine.held?.settle();
    if (isError(error)) this.thrown = error;
    const known = isError(error) && error instanceof HeadraceError;
    this.engine.failRun(
      this.state,
      known
        ? error
        : new HeadraceError('ERR_PROGRAM', `the program failed: ${describeThrown(error)}`, {
            cause: error,
          }),
    );
  }

  private seal(): void {
    try {
      this.endReductions();
    } catch (error) {
      this.failed(error);
      this.endReductions();
    }
    this.engine.observer?.insertionEnded(this.state);
    this.peers?.runs.programEnded(this.state);
    if (this.watch?.seals() === true) return;
    this.total = this.peers?.runs.graphEnded(this.state) ?? 0;
    this.engine.seal(this.state);
    this.engine.wake();
  }

  private progressed(): void {
    if (!this.isFollowed) return;
    const now = Date.now();
    if (now - this.lastProgress < PROGRESS_MS) return;
    this.lastProgress = now;
    this.reportProgress();
  }

  private get isFollowed(): boolean {
    return this.events.listenerCount('progress') > 0 || runChannels.progress.hasSubscribers;
  }

  private reportProgress(): void {
    // What recognition holds back stays held back.
    const status = this.sampler.sample(this.watch?.heldBack);
    this.tell('progress', status);
    this.publish('progress', { status });
  }

  private tell<E extends keyof RunEvents>(event: E, fact: RunEvents[E][0]): void {
    const emit = this.events.emit.bind(this.events) as (event: E, fact: RunEvents[E][0]) => boolean;
    this.guarded(`a listener of event '${event}'`, () => void emit(event, fact));
  }

  /** Calls code of the program. Its failure must not keep the run from ending. */
  private guarded(what: string, call: () => void): void {
    try {
      call();
    } catch (cause) {
      const text = `${what} of run '${this.name}' threw: ${describeThrown(cause)}`;
      process.emitWarning(text, { type: 'HeadraceWarning', code: 'HEADRACE_LISTENER' });
    }
  }

  private publish(what: keyof typeof runChannels, facts: Record<string, unknown>): void {
    const channel = runChannels[what];
    if (channel.hasSubscribers) channel.publish({ run: this, name: this.name, ...facts });
  }

  private over(): void {
    const { engine, state } = this;
    this.guarded('the signal', this.detach);
    engine.observer?.runEnded(state);
    engine.closeRun(state);
    const tasks = state.retired - state.movements;
    const { isPruned, peers } = this;
    const hasFailed = state.error !== undefined;
    const all = peers === undefined ? tasks : this.total;
    const ended = { own: tasks, all, hasFailed, isPruned };
    const recognition = this.recognition?.ended(this.watch, ended);
    if (state.error !== undefined) {
      const error = this.thrown ?? state.error;
      this.guarded('the telemetry', () => this.span.failed(error));
      this.tell('error', error);
      this.publish('error', { error });
      this.reject(error);
      return;
    }
    const report = difference(engine, this.before, totals(engine), tasks, recognition);
    this.guarded('the telemetry', () => this.span.ended(report));
    if (this.isFollowed) this.reportProgress();
    this.tell('end', report);
    this.publish('end', { report });
    this.resolve(report);
  }
}
