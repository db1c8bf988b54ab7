// Random programs with all actions of a program, mixed: several runs at once, each cancelled or ended at any moment,
// bodies in JavaScript that take their time, fail or insert tasks, and `set`, `read`, `close` and new data in between.
//
// Invariant: the needs of a step may be missing (the run failed, a step before was left out). Then the player omits it.
import type { Random } from '../machine/random.js';
import type { SimulatedCase } from './case.js';
import { type CaseDatum, type CaseStep, type CaseTask, OWN } from './program.js';
import { largestTask, OWN_UNITS, ownUnits, unitsOf } from './sizes.js';

/** The features of these programs beyond tasks in one run. */
export type MixedKind = 'runs' | 'cancel' | 'fail' | 'grow' | 'async' | 'close' | 'set';

/** The frequencies of a program's actions, per inserted task. */
interface Habits {
  readonly passes: number;
  readonly changes: number;
  readonly fails: number;
  readonly grows: number;
  readonly asynchronous: number;
  readonly changing: readonly ('set' | 'restore' | 'read' | 'close')[];
}

class Writer {
  readonly steps: CaseStep[] = [];
  readonly tasks: CaseTask[] = [];
  readonly data: CaseDatum[];
  private readonly r: Random;
  private readonly habits: Habits;
  /** Datum that takes the place of another, which was closed. */
  private readonly now: number[];
  private readonly written: boolean[];
  private readonly mayNotFit: boolean;

  constructor(r: Random, c: SimulatedCase, habits: Habits, ranks: number) {
    this.r = r;
    this.habits = habits;
    this.mayNotFit = c.shortOfHost && ranks > 1;
    this.data = [...c.data];
    this.now = c.data.map((_, d) => d);
    this.written = c.data.map((d) => d.initial);
  }

  /** The task with data that exist, and with a body that does more. */
  task(t: CaseTask, depth: number): CaseTask {
    const { r, habits } = this;
    const flows = t.flows.map(([d, mode]) => {
      const at = this.now[d];
      const isRead = this.written[at] || mode === 2;
      if (mode !== 1 || !isRead) this.written[at] = true;
      return [at, isRead ? mode : 2] as const;
    });
    if (t.body === 'kernel' || t.body === 'host') return { ...t, flows };
    const body = r.chance(habits.asynchronous) ? ('async' as const) : t.body;
    const fails = r.chance(habits.fails);
    const made = { ...t, flows, body, ...(fails ? { fails } : {}) };
    if (depth >= 3 || !r.chance(habits.grows)) return made;
    if (depth === 0 && r.chance(0.2)) return { ...made, grows: r.between(1, 5) };
    const makes = r.chance(0.4) ? r.between(1, OWN_UNITS) : undefined;
    const inserts = Array.from({ length: r.between(1, 3) }, () => this.child(t, depth + 1));
    if (makes === undefined) return { ...made, inserts };
    return {
      ...made,
      makes,
      inserts: [
        { flows: [[OWN, 2]], body: 'script', micros: t.micros },
        ...inserts,
        { flows: [[OWN, r.pick([1, 3] as const)]], body: 'host', micros: t.micros },
      ],
    };
  }

  /** A task that a body inserts: on the same data or others. */
  private child(parent: CaseTask, depth: number): CaseTask {
    const { r } = this;
    const { after: _, device: __, ...rest } = parent;
    const flows = r.chance(0.5)
      ? parent.flows
      : ([[r.below(this.now.length), r.pick([1, 2, 3] as const)]] as const);
    const body = r.pick(['script', 'script', 'host', 'kernel'] as const);
    return this.task({ ...rest, flows, body }, depth);
  }

  /** An action other than inserting a task. */
  change(): void {
    const { r, habits } = this;
    const d = r.below(this.now.length);
    const at = this.now[d];
    const what = r.pick(habits.changing);
    switch (what) {
      case 'set':
        this.steps.push(['set', at]);
        this.written[at] = true;
        break;
      case 'restore':
      case 'read':
        this.steps.push([what, at]);
        break;
      default:
        this.steps.push(['close', at]);
        this.replace(d);
    }
  }

  /** A read or restore, which the program does not await. */
  use(): void {
    const { r } = this;
    const what = r.pick(['read', 'read', 'read', 'restore'] as const);
    this.steps.push([what, this.now[r.below(this.now.length)]]);
  }

  private replace(d: number): void {
    const { r } = this;
    const { later: _, ...old } = this.data[this.now[d]];
    const at = this.data.length;
    // If a value does not fit on one rank, the others would have a datum that this rank does not know.
    const initial = r.chance(0.5) && !this.mayNotFit;
    this.data.push({ ...old, initial, later: true });
    this.now[d] = at;
    this.written[at] = initial;
    if (r.chance(0.3)) this.pass();
    this.steps.push(['make', at]);
  }

  pass(): void {
    const { r } = this;
    this.steps.push(['pass', Math.ceil(r.real() * r.pick([1, 20, 500]))]);
  }
}

/** The runs that are open, in the order in which they were opened. */
class Runs {
  private readonly open: number[] = [];
  private next = 0;
  private readonly w: Writer;
  private readonly r: Random;
  private readonly most: number;
  private readonly ranks: number;

  constructor(w: Writer, r: Random, most: number, ranks: number) {
    this.w = w;
    this.r = r;
    this.most = most;
    this.ranks = ranks;
  }

  /** One of the open runs, or a new one. */
  pick(): number {
    const { open, r } = this;
    if (open.length === 0 || (open.length < this.most && r.chance(0.2))) {
      open.push(this.next);
      this.w.steps.push(['open', this.next++]);
    }
    return r.pick(open);
  }

  /** Some run is cancelled, or its program ends. */
  finish(cancels: boolean): void {
    const { open, r, w } = this;
    if (open.length === 0) return;
    const at = r.below(open.length);
    const run = open[at];
    // A run can be cancelled before its program ends, and after.
    const isFirst = r.chance(0.5);
    if (cancels && isFirst) w.steps.push(['cancel', run, r.below(this.ranks)]);
    if (cancels && r.chance(0.3)) return;
    w.steps.push(['end', run]);
    if (cancels && !isFirst) {
      if (r.chance(0.7)) w.pass();
      w.steps.push(['cancel', run, r.below(this.ranks)]);
    }
    open.splice(at, 1);
  }

  /** The programs of all runs end, and are awaited. */
  awaitAll(): void {
    for (const run of this.open.splice(0)) this.w.steps.push(['end', run]);
    this.w.steps.push(['await']);
  }
}

/** The case with a program of several runs in place of one run of all tasks. */
export function mixedProgram(
  c: SimulatedCase,
  r: Random,
  ranks: number,
  without: readonly MixedKind[] = [],
): SimulatedCase {
  const may = (kind: MixedKind): boolean => !without.includes(kind);
  const scripts = r.pick([0, 0.1, 0.3, 0.6]);
  const habits: Habits = {
    passes: r.pick([0, 0.05, 0.3]),
    changes: r.pick([0, 0.05, 0.2]),
    fails: may('fail') && r.chance(0.4) ? r.pick([0.02, 0.1]) : 0,
    grows: may('grow') && r.chance(0.3) ? r.pick([0.1, 0.4]) : 0,
    asynchronous: may('async') ? r.pick([0, 0.2, 0.7]) : 0,
    changing: (['set', 'restore', 'read', 'read', 'close'] as const).filter(
      (kind) => kind === 'restore' || kind === 'read' || may(kind),
    ),
  };
  const cancels = may('cancel') && r.chance(0.6) ? r.pick([0.02, 0.1]) : 0;
  const w = new Writer(r, c, habits, ranks);
  const runs = new Runs(w, r, may('runs') ? r.between(1, 4) : 1, ranks);
  // When a run fails on several ranks all data have the values of their owners again, for the whole program at once. So
  // most programs await the runs that may fail before they use data otherwise. The others read and restore data meanwhile:
  // each rank may do so before or after the end of the failed run.
  const mayFail = cancels > 0 || habits.fails > 0 || c.faults.length > 0 || c.shortOfHost;
  const inPhases = ranks > 1 && mayFail;
  const besides = inPhases && r.chance(0.5);
  for (const t of c.tasks) {
    const body = r.chance(scripts) ? ('script' as const) : t.body;
    const { device, ...rest } = t;
    const run = runs.pick();
    const made = w.task(body === 'script' ? { ...rest, body } : { ...t, body }, 0);
    w.steps.push(['insert', run, w.tasks.length]);
    w.tasks.push(made);
    if (besides && r.chance(0.2)) {
      w.use();
    } else if (r.chance(habits.changes)) {
      if (inPhases) runs.awaitAll();
      w.change();
      if (inPhases) runs.awaitAll();
    }
    if (r.chance(habits.passes)) w.pass();
    if (r.chance(cancels)) runs.finish(true);
    else if (r.chance(0.02)) runs.finish(false);
  }
  const { cancelAt: _, ...rest } = c;
  const { tasks, data, steps } = w;
  return {
    ...rest,
    data,
    tasks,
    steps,
    window: r.pick([4, 8, 16, 64, 256]),
    gpuUnits: Math.max(c.gpuUnits, largestTask(data, tasks)),
    // Even if the host is short of memory, each task by itself fits, also those on data of bodies.
    hostUnits: c.shortOfHost
      ? Math.max(c.hostUnits, largestTask(data, tasks, true))
      : unitsOf(data) * 2 + ownUnits(tasks) + 16,
    reads: data.flatMap((_, d) => (r.chance(0.3) ? [d] : [])),
  };
}
