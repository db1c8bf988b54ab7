// Runs that insert the same tasks again. Their insertions are recorded; when runs with the same ones have come a few times, a
// plan is made of them. After that, the insertions are only compared, and the plan is played (held-run.ts).
//
// Invariants: `holds` are in program order, and all but the last are complete. While there is one, no task is live but those of a
// play, and nothing else is inserted before `settle`.
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import type { DatumId, TaskId } from '../../devices/handles.js';
import type { Engine } from '../engine/engine.js';
import type { HeldInsertions } from '../engine/held-insertions.js';
import type { RunState } from '../engine/run-state.js';
import type { TaskInsertion } from '../engine/task-insertion.js';
import type { Plan } from '../plans/plan.js';
import type { PlanGraph } from '../plans/plan-graph.js';
import type { Datum } from '../program/datum.js';
import type { Graph, GraphRuntime, TaskOptions } from '../program/graph.js';
import { reentered } from '../program/task-arguments.js';
import type { TaskClass } from '../program/task-class.js';
import { Account, Cost } from './account.js';
import { Expectation } from './expectation.js';
import { HeldRun } from './held-run.js';
import { insertAgain } from './insert-again.js';
import { RunWatch } from './run-watch.js';
import type { Sequence } from './sequence.js';

/** Runs with the same insertions after which a plan is made; more for a class whose plans were given up. */
const REPETITIONS = 3;
const MOST_REPETITIONS = 96;
/** A run with fewer tasks takes as long as the begin and the end of a play. */
const LEAST_TASKS = 48;
/** Comparisons in a row that came to nothing, after which a plan is given up. */
const MOST_MISSES = 2;
/** Limits for the sequences that are kept: their number, and their tasks together. */
const MOST_SEQUENCES = 16;
const MOST_TASKS_IN_ALL = 2 ** 17;
/** Outcome of a run that nothing is done with. */
const PAUSED = 'recognition pauses: it has cost more than it saves';

/** Makes a plan of what `insert` inserts. */
type MakePlan = (insert: (graph: PlanGraph) => void, name: string) => Plan;

interface Hold {
  readonly held: HeldRun;
  readonly watch: RunWatch;
}

export class Recognition implements HeldInsertions {
  private readonly engine: Engine;
  private readonly runtime: GraphRuntime;
  private readonly makePlan: MakePlan;
  /** The last used first. */
  private sequences: Sequence[] = [];
  private readonly holds: Hold[] = [];
  /** Runs that are open. */
  private readonly watches: Set<RunWatch> = new Set();
  private readonly givenUp: WeakMap<TaskClass, number> = new WeakMap();
  private readonly account: Account = new Account();
  /** Open runs that are not watched: nothing is held back beside them. */
  private unwatched = 0;

  constructor(engine: Engine, runtime: GraphRuntime, makePlan: MakePlan) {
    this.engine = engine;
    this.runtime = runtime;
    this.makePlan = makePlan;
  }

  // --- Runs ---------------------------------------------------------------------------------------------------

  /** Watches the insertions into the graph of a run; undefined while recognition pauses. */
  watch(run: RunState, name: string, graph: Graph): RunWatch | undefined {
    // What others hold back must be inserted before the tasks of this run.
    if (!this.account.isOpen && this.holds.length === 0 && guards.recognitionPauses) {
      this.unwatched++;
      return undefined;
    }
    const watch = new RunWatch(this, run, name, graph);
    this.watches.add(watch);
    return watch;
  }

  get nextTask(): TaskId {
    return this.engine.tasks.next;
  }

  reentered(cls: TaskClass): HeadraceError {
    return reentered(this.runtime.classes.bind(cls));
  }

  /** The run of so many tasks is over, and has failed or not. Returns what came of it, for its report. */
  ended(watch: RunWatch | undefined, tasks: number, hasFailed: boolean): string {
    this.account.ran(tasks, watch !== undefined);
    if (watch === undefined) {
      this.unwatched--;
      return PAUSED;
    }
    this.watches.delete(watch);
    this.account.pay(Cost.seen, watch.seen);
    if (watch.sequence !== undefined && !hasFailed) this.came(watch, watch.sequence);
    return watch.outcome;
  }

  /** A run with the tasks of a sequence was inserted. */
  private came(watch: RunWatch, sequence: Sequence): void {
    if (sequence.seen++ === 0) this.keep(sequence);
    const { seen, needed, count, planned, refused } = sequence;
    if (planned !== undefined || refused !== '') return;
    watch.outcome = `its tasks have come ${seen} of ${needed} times`;
    if (count < LEAST_TASKS) sequence.refused = `fewer than ${LEAST_TASKS} tasks`;
    else if (seen >= needed && this.isQuiet()) this.plan(sequence, watch.name);
  }

  // --- Sequences ----------------------------------------------------------------------------------------------

  /** A sequence that begins with that insertion. */
  like(insertion: TaskInsertion): Sequence | undefined {
    return this.sequences.find((sequence) => sequence.isAt(0, insertion, []));
  }

  forget(sequence: Sequence): void {
    if (this.holds.some(({ held }) => held.sequence === sequence)) this.settle();
    this.sequences = this.sequences.filter((other) => other !== sequence);
    sequence.planned?.plan.close();
    sequence.planned = undefined;
    for (const watch of this.watches) if (watch.sequence === sequence) watch.forget('others came');
  }

  private keep(sequence: Sequence): void {
    const times = this.givenUp.get(sequence.classes[0]) ?? 0;
    sequence.needed = Math.min(REPETITIONS * 2 ** times, MOST_REPETITIONS);
    this.sequences.unshift(sequence);
    let tasks = 0;
    for (const [i, { count }] of this.sequences.entries()) {
      tasks += count;
      if (i > 0 && (i >= MOST_SEQUENCES || tasks > MOST_TASKS_IN_ALL))
        this.forget(this.sequences[i]);
    }
  }

  private used(sequence: Sequence): void {
    this.sequences = [sequence, ...this.sequences.filter((other) => other !== sequence)];
  }

  private plan(sequence: Sequence, name: string): void {
    const { directory } = this.engine;
    const { insertions, classes } = sequence;
    this.account.pay(Cost.planned, sequence.count);
    try {
      const expectation = new Expectation(insertions, classes, (d) => directory.info[d] as Datum);
      const plan = this.makePlan((graph) => insertAgain(graph, expectation), name);
      sequence.planned = { plan, expectation };
    } catch (error) {
      if (!(error instanceof HeadraceError)) throw error;
      sequence.refused = `no plan could be made: ${error.message}`;
    }
  }

  // --- Holds --------------------------------------------------------------------------------------------------

  /** The hold of a run whose first insertion is that of a plan. */
  hold(
    watch: RunWatch,
    cls: TaskClass,
    args: unknown,
    options: TaskOptions | undefined,
  ): HeldRun | undefined {
    const { engine, holds } = this;
    for (const sequence of this.sequences) {
      const { planned, classes } = sequence;
      if (planned === undefined || classes[0] !== cls) continue;
      if (!this.isQuiet()) {
        watch.outcome = 'other tasks were under way when it began';
        return undefined;
      }
      const { next } = engine.tasks;
      const base = holds.at(-1)?.held.end ?? next;
      const held = new HeldRun(engine, watch.run, sequence, planned, base);
      if (!held.comparison.accepts(cls, args, options) || engine.tasks.next !== next) continue;
      watch.outcome = 'other tasks or reads came before it could be played';
      holds.push({ held, watch });
      for (const other of this.watches) other.sees();
      this.used(sequence);
      return held;
    }
    return undefined;
  }

  /** No task is live, and no reduction is open. Plays may be under way. */
  private isQuiet(): boolean {
    const { engine, holds } = this;
    if (engine.inBody || engine.bodies.waiting > 0 || this.runtime.reductions.isOpen) return false;
    if (this.unwatched > 0 && guards.recognitionAlone) return false;
    if (holds.length > 0) return holds.every(({ held }) => held.isComplete);
    if (engine.tasks.live > 0 && !engine.isUnderWay) engine.pump();
    return engine.tasks.live === 0;
  }

  /** A comparison came to nothing. */
  missed(sequence: Sequence): void {
    if (++sequence.misses < MOST_MISSES) return;
    const [cls] = sequence.classes;
    this.givenUp.set(cls, (this.givenUp.get(cls) ?? 0) + 1);
    this.forget(sequence);
  }

  /** The program of a hold has ended, with all insertions as expected. */
  complete(held: HeldRun): void {
    const { engine } = this;
    held.complete();
    const [first] = this.holds;
    if (first.held === held) this.play(first);
    if (!engine.isUnderWay) engine.pump();
    engine.wake();
  }

  /** Plays the first hold once it is alone. */
  private play({ held, watch }: Hold): void {
    const { sequence } = held;
    held.play({
      began: () => {
        this.holds.shift();
        watch.released();
        watch.outcome = 'played';
        this.account.played(held.count);
        sequence.misses = 0;
        const [next] = this.holds;
        if (next?.held.isComplete) this.play(next);
      },
      refused: (error) => {
        watch.outcome = `it could not be played: ${error.message}`;
        // No task can be inserted in a pass. What is inserted before that settles first.
        queueMicrotask(() => {
          if (this.holds.some((hold) => hold.held === held)) this.settle();
          this.missed(sequence);
        });
      },
    });
  }

  settle(): void {
    // A hold leaves the list first: what it inserts calls this, too.
    for (let hold = this.holds.shift(); hold !== undefined; hold = this.holds.shift()) {
      hold.watch.released();
      this.account.pay(Cost.heldInVain, hold.held.compared);
      hold.held.insert();
    }
  }

  changed(d: DatumId): void {
    this.settle();
    for (const sequence of [...this.sequences])
      if (sequence.planned?.expectation.uses(d) === true) this.forget(sequence);
    for (const watch of this.watches) watch.changed();
  }
}
