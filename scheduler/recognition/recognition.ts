// Runs that insert the same tasks again. Their insertions are recorded; when runs with the same ones have come a few times, a
// plan is made of them. After that, the insertions are only compared, and the plan is played (held-run.ts). The same goes for a
// stretch that one run repeats (held-stretches.ts).
//
// On several ranks only whole runs are recognised, those that all ranks insert completely, and all ranks play them or none (agreed-plays.ts).
//
// Invariants: `holds` are in program order, and all but the last are complete. While there is one, nothing else is inserted before
// `settle`, and only the first one may play.
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import type { DatumId, TaskHandle, TaskId } from '../../devices/handles.js';
import { type TaskClassRow, TaskStage } from '../../stages/task-table.js';
import type { Engine } from '../engine/engine.js';
import type { HeldInsertions } from '../engine/held-insertions.js';
import { INTERNAL_RUN, type RunState } from '../engine/run-state.js';
import type { ProgramInsertion, TaskInsertion } from '../engine/task-insertion.js';
import type { Insertions } from '../plans/insertions.js';
import type { Plan } from '../plans/plan.js';
import type { PlanGraph } from '../plans/plan-graph.js';
import type { Datum } from '../program/datum.js';
import type { GivenTask, Graph, GraphRuntime } from '../program/graph.js';
import { reentered } from '../program/task-arguments.js';
import type { TaskClass } from '../program/task-class.js';
import { ANY_RANK } from '../ranks/insertion.js';
import { Account, Cost } from './account.js';
import { AgreedPlays } from './agreed-plays.js';
import { Attention } from './attention.js';
import { Expectation } from './expectation.js';
import { Glance } from './glance.js';
import { HeldRun } from './held-run.js';
import { HeldStretches } from './held-stretches.js';
import type { NoteTask } from './held-tasks.js';
import { insertAgain } from './insert-again.js';
import { KnownSequences } from './known-sequences.js';
import type { RecognitionReport } from './record.js';
import { type Held, MOST_TASKS, RunWatch, type Strayed } from './run-watch.js';
import type { PlannedSequence, Sequence } from './sequence.js';
import { Signatures } from './signatures.js';
import { StretchFinder } from './stretch-finder.js';

/** Runs with the same insertions after which a plan is made; more for a class whose plans were given up. */
const REPETITIONS = 4;
const MOST_REPETITIONS = 128;
/** The last ones of them are recorded and followed. */
const RECORDED = 2;
/** A run with fewer tasks takes as long as the begin and the end of a play. */
const LEAST_TASKS = 48;
/** Comparisons in a row that came to nothing, after which a plan is given up. */
const MOST_MISSES = 2;
/** The same on several ranks, where it takes only one that is not ready. */
const MOST_MISSES_ON_RANKS = 4;
/** Runs in a row that begin as one and are others, and new, after which that one is given up. */
const MOST_STRAYS = 4;
/** Outcomes of a run that nothing is done with. */
const PAUSED = 'recognition pauses: it has cost more than it saves';
const PASSED_OVER = 'it was not looked at: the runs before were all new';
const PRUNED = 'it is pruned';
const APART = 'not all ranks could play it';
const TRIED = 'it was inserted, to see how long that takes';
const NO_ROOM = 'there is no memory for its play, or data have no value';

/** Makes a plan of what `insert` inserts: these insertions again. */
type MakePlan = (insert: (graph: PlanGraph) => void, insertions: Insertions, name: string) => Plan;

/** A run that is over. */
interface EndedRun {
  /** Its tasks on this rank, and those of all ranks, which count for what is done with later runs, so that ranks do the same. */
  readonly own: number;
  readonly all: number;
  readonly hasFailed: boolean;
  readonly isPruned: boolean;
}

interface Hold {
  readonly held: Held;
  readonly watch: RunWatch;
}

export class Recognition implements HeldInsertions {
  private readonly engine: Engine;
  private readonly runtime: GraphRuntime;
  private readonly makePlan: MakePlan;
  /** Workers of the host. */
  private readonly workers: number;
  private readonly known: KnownSequences;
  private readonly holds: Hold[] = [];
  /** Runs that are open. */
  private readonly watches: Set<RunWatch> = new Set();
  private readonly givenUp: WeakMap<TaskClass, number> = new WeakMap();
  private readonly stretchesGivenUp: WeakMap<TaskClass, number> = new WeakMap();
  private readonly account: Account = new Account();
  private readonly attention: Attention = new Attention();
  private readonly signatures: Signatures = new Signatures();
  /** Of a run that is over. */
  private spareGlance: Glance | undefined;
  /** Open runs that are not watched: nothing is held back beside them. */
  private unwatched = 0;
  /** On several ranks. */
  private readonly agreed: AgreedPlays | undefined;

  constructor(engine: Engine, runtime: GraphRuntime, makePlan: MakePlan) {
    this.engine = engine;
    this.runtime = runtime;
    this.makePlan = makePlan;
    const settles = (sequence: Sequence): void => {
      if (this.holds.some(({ held }) => held.sequence === sequence)) this.settle();
    };
    const forgets = (sequence: Sequence): void => {
      for (const watch of this.watches)
        if (watch.sequence === sequence) watch.forget('others came');
    };
    this.known = new KnownSequences(settles, forgets);
    this.workers = engine.backend.queues.filter(({ kind }) => kind === 'worker').length;
    const { peers } = runtime;
    if (peers !== undefined)
      this.agreed = new AgreedPlays(engine, peers, (held, plays) => this.decided(held, plays));
  }

  // --- Runs ---------------------------------------------------------------------------------------------------

  report(): RecognitionReport {
    return this.known.record.report(this.known.all, !this.account.isOpen && !this.mayHoldNext);
  }

  /** Watches the insertions into the graph of a run; undefined for a run that nothing is done with. */
  watch(run: RunState, name: string, graph: Graph): RunWatch | undefined {
    const { agreed } = this;
    const isPruned = agreed?.isPruned(run) === true;
    if (isPruned) this.settle();
    if (isPruned || (!this.mayHoldNext && this.rests)) {
      agreed?.against(run);
      this.unwatched++;
      return undefined;
    }
    const watch = new RunWatch(this, run, name, graph);
    this.watches.add(watch);
    return watch;
  }

  /** The next insertion may be held back, or must come after others that are. */
  get mayHoldNext(): boolean {
    return this.holds.length > 0 || this.hasPlans;
  }

  private get rests(): boolean {
    if (!this.account.isOpen && guards.recognitionPauses) return true;
    return !this.attention.isDue && guards.looksRarely;
  }

  get nextTask(): number {
    return this.agreed?.inserted ?? this.engine.tasks.next;
  }

  get now(): number {
    return this.engine.backend.now();
  }

  get isOnRanks(): boolean {
    return this.agreed !== undefined;
  }

  inserts({ run }: RunWatch): void {
    this.agreed?.against(run);
  }

  reentered(cls: TaskClass): HeadraceError {
    return reentered(this.runtime.classes.bind(cls));
  }

  /** A run is over. Returns what came of it, for its report. */
  ended(watch: RunWatch | undefined, { own, all, hasFailed, isPruned }: EndedRun): string {
    this.known.record.ran(own);
    const tasks = watch !== undefined && this.agreed !== undefined ? watch.total : all;
    if (watch === undefined) {
      this.unwatched--;
      // A rank has inserted only some of its tasks: the ranks would find other figures.
      if (isPruned) return PRUNED;
      const why = this.attention.isDue ? PAUSED : PASSED_OVER;
      this.account.ran(tasks, false);
      this.attention.passed(tasks);
      return why;
    }
    this.watches.delete(watch);
    this.account.ran(tasks - watch.accounted, true);
    this.pays(watch);
    const isKnown = watch.isWhole && !hasFailed && this.came(watch, tasks);
    if (watch.strayed !== undefined) this.strayed(watch, watch.strayed, isKnown);
    if (isKnown || watch.played > 0 || watch.stretch !== undefined) this.attention.found();
    else this.attention.lookedInVain(tasks);
    if (watch.played === 0 && this.hasPlans) this.account.waitedForRun();
    this.waits(watch);
    this.spareGlance = watch.look ?? this.spareGlance;
    if (!hasFailed) this.judges(watch);
    if (watch.played === 0) return watch.outcome;
    return watch.played === tasks ? 'played' : `played ${watch.played} of ${tasks} tasks`;
  }

  /** A run that was played, or inserted for a trial, has succeeded. */
  private judges({ playing, trial, since, total }: RunWatch): void {
    const time = this.now - since;
    if (playing !== undefined) playing.trials.played(time);
    else if (trial?.planned !== undefined && total === trial.count && trial.trials.tried(time))
      this.givesUp(trial, 'its tasks take less time when they are inserted');
  }

  /** What it has cost to see the insertions of a run. */
  private pays(watch: RunWatch): void {
    this.account.pay(Cost.seen, watch.seen);
    watch.seen = 0;
  }

  /** A run was inserted whose insertions were all seen. Returns whether they have come before, and may be planned. */
  private came(watch: RunWatch, tasks: number): boolean {
    const { firstClass, look, sequence, isFollowing } = watch;
    if (isFollowing) return this.follows(watch, sequence as Sequence);
    if (tasks < LEAST_TASKS) watch.outcome = `fewer than ${LEAST_TASKS} tasks`;
    else if (tasks > MOST_TASKS) watch.outcome = `it has more than ${MOST_TASKS} tasks`;
    else if (look !== undefined) {
      const needed = this.neededFor(firstClass as TaskClass);
      const { run, first } = look;
      const times = this.signatures.came(run, first, tasks);
      const seen = Math.min(times, needed - 1);
      watch.outcome = `its tasks have come ${seen} of ${needed} times`;
      if (sequence !== undefined && times > 1) {
        sequence.seen = seen;
        sequence.firstNumber = first;
        this.keep(sequence);
      } else if (sequence !== undefined) this.signatures.forget(first, true);
      return times > 1;
    }
    return false;
  }

  /** A run has had the tasks of a sequence. Returns whether the sequence may be played. */
  private follows(watch: RunWatch, sequence: Sequence): boolean {
    sequence.seen++;
    sequence.came();
    if (sequence.planned !== undefined) return true;
    if (sequence.refused !== '') return false;
    const { seen, needed } = sequence;
    watch.outcome = `its tasks have come ${Math.min(seen, needed)} of ${needed} times`;
    if (seen >= needed && this.isQuiet()) {
      this.signatures.trust(sequence.firstNumber);
      this.plan(sequence, watch.name);
    }
    return sequence.refused === '';
  }

  private neededFor(cls: TaskClass): number {
    return Math.min(REPETITIONS * 2 ** (this.givenUp.get(cls) ?? 0), MOST_REPETITIONS);
  }

  mayRecord(first: number, cls: TaskClass): boolean {
    if (!guards.recordsOnEvidence) return true;
    const times = this.signatures.timesOf(first);
    return times > 0 && times >= this.neededFor(cls) - RECORDED && this.account.isOpen;
  }

  mayRecordStretch(watch: RunWatch): boolean {
    // A stretch of the tasks of several ranks is not played.
    if (this.agreed !== undefined) return false;
    const { inserted } = watch.run;
    this.account.inserted(inserted - watch.accounted);
    watch.accounted = inserted;
    this.pays(watch);
    return this.account.isOpen;
  }

  /** Insertions of a run were looked at for the begin of a stretch. Plans that are never played are given up. */
  waits(watch: RunWatch): void {
    const { account } = this;
    account.waited(watch.asked);
    watch.asked = 0;
    if (account.keepsPlans || !guards.idlePlans) return;
    account.letPlansGo();
    for (const sequence of this.known.all)
      if (sequence.planned !== undefined)
        this.givesUp(sequence, 'its tasks have not come for long');
  }

  get mustSee(): boolean {
    return this.holds.length > 0 || this.hasStretches;
  }

  // --- Sequences ----------------------------------------------------------------------------------------------

  /** A sequence that begins with that insertion. */
  like(insertion: TaskInsertion, rank: number | undefined, isStray: boolean): Sequence | undefined {
    if (!this.account.isOpen) return undefined;
    return this.known.like(insertion, rank, isStray);
  }

  private get hasPlans(): boolean {
    return this.known.hasPlans;
  }

  /** A run that follows a sequence is another one. It may be one of several that take turns. */
  differs(sequence: Sequence): void {
    if (++sequence.strays < MOST_STRAYS && guards.straysNoted) return;
    this.signatures.forget(sequence.firstNumber, true);
    this.known.forget(sequence, 'its tasks have changed');
  }

  get hasStretches(): boolean {
    return this.known.hasStretches;
  }

  /** Looks for stretches in a run. */
  finder(forRun: boolean, before: number): StretchFinder {
    const timesGivenUp = (cls: TaskClass): number => this.stretchesGivenUp.get(cls) ?? 0;
    const finder = new StretchFinder(timesGivenUp, forRun, before, this.workers);
    if (this.agreed !== undefined) finder.stop();
    return finder;
  }

  takeGlance(isClose: boolean): Glance {
    const glance = this.spareGlance ?? new Glance();
    this.spareGlance = undefined;
    glance.start(isClose);
    return glance;
  }

  /**
   * Whether it is known how long the tasks of a stretch take, of those that a run inserted last, so that they can be dealt out. It
   * does not matter for tasks of one class, and some are never measured.
   */
  isMeasured({ insertions }: Sequence, length: number): boolean {
    const { kernelTimes } = this.engine;
    if (!kernelTimes.isOpen || !guards.stretchMeasured) return true;
    const classes = new Set<TaskClassRow>();
    for (let n = insertions.count - length; n < insertions.count; n++)
      classes.add(insertions.classOf(n));
    return classes.size === 1 || [...classes].every((cls) => kernelTimes.knows(cls));
  }

  /** Plans a stretch of so many tasks that the run of `watch` repeats. Undefined if it is none, or has no plan. */
  stretch(watch: RunWatch, finder: StretchFinder, length: number): Sequence | undefined {
    if (!this.account.isOpen) return undefined;
    const stretch = finder.cut(length, watch.run);
    if (stretch === undefined) return undefined;
    const before = this.known.all.find((other) => other.isStretch && stretch.opensAs(other));
    if (before !== undefined)
      this.known.forget(before, 'the same tasks have come with other parameters');
    stretch.isStretch = true;
    for (const other of this.watches) other.sees();
    this.keep(stretch);
    this.plan(stretch, watch.name);
    if (stretch.planned !== undefined) return stretch;
    this.givesUp(stretch, stretch.refused);
    return undefined;
  }

  private keep(sequence: Sequence): void {
    sequence.needed = this.neededFor(sequence.classes[0]);
    this.known.keep(sequence);
  }

  private plan(sequence: Sequence, name: string): void {
    const { directory } = this.engine;
    const { insertions, classes } = sequence;
    this.account.pay(Cost.planned, sequence.count);
    sequence.name = name;
    try {
      // A program may close data behind its run, which is over only now.
      const isOpen = (d: DatumId): boolean =>
        (directory.info[d] as Datum | undefined)?.closed === false;
      if (!insertions.haveOnly(isOpen)) throw closedMeanwhile();
      const expectation = new Expectation(insertions, classes, (d) => directory.info[d] as Datum);
      let ranks: readonly number[] = [];
      const insert = (graph: PlanGraph): void => {
        insertAgain(graph, expectation);
        ranks = graph.rankOf;
      };
      const plan = this.makePlan(insert, insertions, name);
      sequence.planned = { plan, expectation, ranks };
    } catch (error) {
      if (!(error instanceof HeadraceError)) throw error;
      sequence.refused = `no plan could be made: ${error.message}`;
      this.known.record.givesUp(sequence, sequence.refused);
    }
  }

  // --- Holds --------------------------------------------------------------------------------------------------

  /**
   * The hold of a run whose next insertion is the first one of a plan: of any plan if `isFirst`, otherwise of a stretch.
   */
  hold(watch: RunWatch, given: GivenTask, isFirst: boolean): Held | undefined {
    const { agreed, holds, watches } = this;
    if (agreed === undefined) return this.begins(watch, given, isFirst);
    const isAlone = holds.length === 0 && watches.size === 1 && agreed.mayHold(watch.run);
    const held = isAlone && isFirst ? this.begins(watch, given, true) : undefined;
    // What is held back of another run comes first, when others no longer wait for this one.
    if (held === undefined) agreed.against(watch.run);
    return held;
  }

  private begins(watch: RunWatch, given: GivenTask, isFirst: boolean): Held | undefined {
    const { agreed, engine, holds } = this;
    const { cls, args, options, inOrder } = given;
    for (const sequence of this.known.all) {
      const { planned, classes, isStretch } = sequence;
      if (planned === undefined || classes[0] !== cls || !(isFirst || isStretch)) continue;
      if (this.usesParts(planned)) {
        this.known.forget(sequence, 'one of its data has parts');
        continue;
      }
      const { next } = engine.tasks;
      if (isStretch) {
        if (!planned.expectation.mayBegin(given) || !this.mayRepeat()) continue;
      } else if (!this.isQuiet()) {
        watch.outcome = 'other tasks were under way when it began';
        return undefined;
      }
      const isTrial = agreed?.peers.rank === 0 && sequence.trials.isDue;
      if (isTrial && planned.expectation.mayBegin(given)) {
        watch.trial = sequence;
        watch.outcome = TRIED;
        return undefined;
      }
      const base = holds.at(-1)?.held.end ?? engine.tasks.next;
      const held = isStretch
        ? this.stretches(watch, sequence, planned, base)
        : new HeldRun(engine, watch.run, sequence, planned, base, agreed);
      if (isStretch && engine.tasks.next !== next) continue;
      const now = engine.tasks.next;
      const accepts = held.comparison.accepts(cls, args, options, inOrder);
      if (!accepts || engine.tasks.next !== now) continue;
      if (!isStretch) watch.outcome = 'other tasks or reads came before it could be played';
      holds.push({ held, watch });
      for (const other of this.watches) other.sees();
      this.known.used(sequence);
      return held;
    }
    return undefined;
  }

  turns(watch: RunWatch, next: GivenTask | undefined): HeldRun | undefined {
    const last = this.holds.at(-1);
    if (last?.watch !== watch || !(last.held instanceof HeldRun) || this.isOnRanks)
      return undefined;
    if (!guards.straysNoted) return undefined;
    const { held } = last;
    const { compared } = held;
    const before = this.engine.tasks.next;
    for (const sequence of this.known.all) {
      const { planned } = sequence;
      if (planned === undefined || sequence.isStretch || sequence === held.sequence) continue;
      const other = this.usesParts(planned) ? undefined : held.turnInto(sequence, planned);
      if (other === undefined) continue;
      const { comparison } = other;
      const isIt =
        next === undefined
          ? comparison.next === other.count
          : comparison.accepts(next.cls, next.args, next.options, next.inOrder);
      // Arguments may have getters, which may run any code.
      const isReentered = before !== this.engine.tasks.next || compared !== held.compared;
      if (last !== this.holds.at(-1) || isReentered) return undefined;
      if (!isIt) continue;
      this.holds[this.holds.length - 1] = { held: other, watch };
      this.known.used(sequence);
      return other;
    }
    return undefined;
  }

  /** Data of a plan have got parts while its tasks were inserted, or by another plan. The plan knows them without. */
  private usesParts({ expectation }: PlannedSequence): boolean {
    const { parts } = this.runtime;
    if (!parts.isUsed || !guards.recognisedWhole) return false;
    for (const datum of expectation.used) if (parts.mayLack(datum)) return true;
    return false;
  }

  private stretches(
    watch: RunWatch,
    sequence: Sequence,
    planned: PlannedSequence,
    base: TaskId,
  ): HeldStretches {
    const { engine } = this;
    const isHeld = (): boolean => this.holds.some((hold) => hold.held === held);
    const settle = (): void => {
      if (isHeld()) this.settle();
    };
    const held: HeldStretches = new HeldStretches(engine, watch.run, sequence, planned, base, {
      mayStand: () => this.holds[0]?.held === held,
      began: () => {
        if (held.isComplete) this.leaves(held);
        else if (held.isSealed) queueMicrotask(settle);
      },
      played: (tasks) => {
        watch.played += tasks;
        this.account.played(tasks);
        this.known.record.plays(sequence, tasks);
        sequence.came();
      },
      refused: (error) => {
        watch.outcome = `it could not be played: ${error.message}`;
        queueMicrotask(() => {
          settle();
          this.missed(sequence);
        });
      },
      failed: () => this.leaves(held),
      settle,
    });
    return held;
  }

  /** Nothing is left of the first hold but its play. */
  private leaves(held: HeldStretches): void {
    const [first] = this.holds;
    if (first?.held !== held) return;
    this.holds.shift();
    first.watch.released();
    this.playNext();
  }

  /** The first hold may play now. */
  private playNext(): void {
    const [next] = this.holds;
    if (next === undefined) return;
    if (next.held instanceof HeldStretches) next.held.mayPlay();
    else if (next.held.isComplete) this.play(next.held, next.watch);
  }

  /**
   * No task is live, and no reduction is open. Plays may be under way. On several ranks tasks may be live that run no code of the program:
   * what is held back needs no numbers there.
   */
  private isQuiet(): boolean {
    const { agreed, engine, holds } = this;
    if (!this.mayHold()) return false;
    if (holds.length > 0) return true;
    if (engine.tasks.live > 0 && !engine.isUnderWay) engine.pump();
    return agreed === undefined ? engine.tasks.live === 0 : this.mayHold() && !this.bodyIsLive();
  }

  /** No one but the program inserts. */
  private mayHold(): boolean {
    const { engine, holds } = this;
    if (engine.inBody || engine.bodies.waiting > 0 || this.runtime.reductions.isOpen) return false;
    if (this.unwatched > 0 && guards.recognitionAlone) return false;
    return holds.every(({ held }) => held.isComplete);
  }

  /** As `isQuiet`, but tasks may be live that run no code on the engine's thread. */
  private mayRepeat(): boolean {
    const { engine, holds } = this;
    if (engine.isUnderWay || engine.bodies.queued.length > 0 || !this.mayHold()) return false;
    if (holds.length > 0 || !guards.stretchBodies) return true;
    if (!this.bodyIsLive()) return true;
    // It may be ready to run.
    engine.pump();
    return this.mayHold() && holds.length === 0 && !this.bodyIsLive();
  }

  private bodyIsLive(): boolean {
    const { tasks, x } = this.engine;
    for (let id = tasks.head; id !== tasks.next; id = ((id + 1) | 0) as TaskId) {
      const row = id & tasks.mask;
      if (tasks.stage[row] === TaskStage.done) continue;
      const { body, onScriptWorkers, network } = x.classes[tasks.classOf[row]];
      // Movements, the runtime's own tasks, and bodies on script workers run no code that inserts.
      if (network !== undefined || tasks.run[row] === INTERNAL_RUN) continue;
      if (body !== undefined && onScriptWorkers !== true) return true;
    }
    return false;
  }

  /** A comparison came to nothing. */
  missed(sequence: Sequence): void {
    const most = this.agreed === undefined ? MOST_MISSES : MOST_MISSES_ON_RANKS;
    if (++sequence.misses >= most) this.heldInVain(sequence, most);
  }

  /** A run was compared with a sequence and is another one. If that has come before, it has a plan soon, and takes turns with the first. */
  private strayed(watch: RunWatch, { sequence, why }: Strayed, isKnown: boolean): void {
    watch.outcome = why;
    if (isKnown || sequence.planned === undefined) return;
    if (++sequence.strays >= MOST_STRAYS) this.heldInVain(sequence, MOST_STRAYS);
  }

  private heldInVain(sequence: Sequence, times: number): void {
    this.givesUp(sequence, `its tasks were held back ${times} times in a row and then inserted`);
  }

  private givesUp(sequence: Sequence, why: string): void {
    const [cls] = sequence.classes;
    const counts = sequence.isStretch ? this.stretchesGivenUp : this.givenUp;
    counts.set(cls, (counts.get(cls) ?? 0) + 1);
    this.signatures.forget(sequence.firstNumber);
    this.known.forget(sequence, why);
  }

  /** The program of a hold has ended, with all insertions as expected. False if they are inserted after all. */
  complete(held: HeldRun, watch: RunWatch): boolean {
    const { agreed, engine } = this;
    if (agreed !== undefined && (watch.run.error !== undefined || !held.mayPlay)) {
      watch.outcome = NO_ROOM;
      this.settle();
      this.missed(held.sequence);
      return false;
    }
    held.complete();
    if (agreed !== undefined) agreed.supports(held, watch.run);
    else if (this.holds[0].held === held) this.playNext();
    if (!engine.isUnderWay) engine.pump();
    engine.wake();
    return true;
  }

  /** All ranks play the first hold, or none does. */
  private decided(held: HeldRun, plays: boolean): void {
    const { watch } = this.holds.shift() as Hold;
    watch.released();
    const { sequence } = held;
    if (plays) {
      watch.outcome = 'played';
      watch.playing = sequence;
      sequence.came();
      this.account.played(held.count);
      this.known.record.plays(sequence, held.tasks);
      held.playTogether();
      return;
    }
    watch.outcome = APART;
    this.account.pay(Cost.heldInVain, held.count);
    held.insert();
    this.missed(sequence);
  }

  passed(): void {
    this.agreed?.passed();
  }

  isHandle(handle: number): boolean {
    return this.agreed?.handles.isOne(handle) === true;
  }

  tasksOf(handles: readonly TaskHandle[]): readonly TaskHandle[] {
    return this.agreed?.tasksOf(handles) ?? handles;
  }

  /** Plays the first hold once it is alone. */
  private play(held: HeldRun, watch: RunWatch): void {
    const { sequence } = held;
    held.play({
      began: () => {
        this.holds.shift();
        watch.released();
        watch.outcome = 'played';
        this.account.played(held.count);
        this.known.record.plays(sequence, held.count);
        sequence.came();
        this.playNext();
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
    for (let [hold] = this.holds; hold !== undefined; [hold] = this.holds) {
      const { held, watch } = hold;
      const { agreed } = this;
      if (agreed?.isAwaited(held) === true) {
        // A report in a pass does not see what is held back.
        if (!agreed.decide()) return;
        continue;
      }
      if (held instanceof HeldStretches) held.tryPlay();
      if (this.holds[0] !== hold) continue;
      agreed?.against(watch.run);
      // A hold leaves the list first: what it inserts calls this, too.
      this.holds.shift();
      watch.released();
      const tasks = held instanceof HeldStretches ? held.heldBack : held.compared;
      this.account.pay(Cost.heldInVain, tasks);
      if (held instanceof HeldRun) held.insert(notesOf(watch));
      else held.insert();
    }
  }

  changed(d: DatumId): void {
    this.settle();
    for (const sequence of this.known.all)
      if (sequence.planned?.expectation.uses(d) === true)
        this.known.forget(sequence, 'one of its data was closed, or was advised another device');
    for (const watch of this.watches) watch.changed();
  }
}

function closedMeanwhile(): HeadraceError {
  return new HeadraceError('ERR_DATUM_CLOSED', 'one of its data was closed');
}

/** Sees the tasks that were held back, if the run turns out to be another one. */
function notesOf(watch: RunWatch): NoteTask | undefined {
  if (watch.strayed === undefined) return undefined;
  return (task, cls) => watch.notes(task as ProgramInsertion, cls, ANY_RANK);
}
