// Carries out the program of a case, step by step, on all ranks.
//
// Every step is carried out on all ranks before the next one is, as a waiting rank lets all others go on.
// Invariant: a step is carried out on every live rank, or on none; a step whose needs are missing is omitted.

import { HeadraceError } from '../../../scheduler/index.js';
import { Settlement } from '../checkers/settlement.js';
import type { World } from '../machine/world.js';
import type { SerialOracle } from '../memory/oracle.js';
import type { SimulatedCase } from './case.js';
import type { CaseStep, CaseTask } from './program.js';
import type { RankPlayer } from './rank-player.js';

/** Lets time run until a condition is true; false when it never will be. */
type Drive = (isOver: () => boolean) => Promise<boolean>;

/** A run whose program has not ended. */
interface OpenRun {
  readonly end: () => void;
  /** Some rank takes no more tasks of it. */
  refused: boolean;
}

/** One run of all tasks, cancelled at the point that the case names. */
function oneRun({ tasks, cancelAt, ranks = 1 }: SimulatedCase): CaseStep[] {
  const steps: CaseStep[] = [['open', 0]];
  for (let i = 0; i < tasks.length; i++) {
    if (i === cancelAt) steps.push(['cancel', 0, i % ranks]);
    steps.push(['insert', 0, i]);
  }
  if (cancelAt === tasks.length) steps.push(['cancel', 0, 0]);
  steps.push(['end', 0]);
  return steps;
}

function insertsLater(t: CaseTask): boolean {
  return t.body === 'async' || t.inserts?.some(insertsLater) === true;
}

/** The body of the task fills rows of the window. */
function insertsMore(t: CaseTask): boolean {
  return t.inserts !== undefined || t.grows !== undefined;
}

export class Steps {
  private readonly c: SimulatedCase;
  private readonly ranks: readonly RankPlayer[];
  private readonly oracle: SerialOracle;
  private readonly world: World;
  private readonly drive: Drive;
  private readonly settlement: Settlement;
  private readonly open: Map<number, OpenRun> = new Map();
  private readonly there: Set<number> = new Set();
  /**
   * Insertion must not block while asynchronous bodies run: the program awaits room. On several ranks a blocked insertion
   * can wait for a task that another rank inserts in the same step, after this one: with bodies that fill the window the
   * program awaits room, too. Bodies that insert more than the window holds must be over, or they fill it while the next
   * insertion waits for an asynchronous body of another rank.
   */
  private readonly awaitsRoom: boolean;

  constructor(
    c: SimulatedCase,
    ranks: readonly RankPlayer[],
    oracle: SerialOracle,
    world: World,
    drive: Drive,
  ) {
    this.c = c;
    this.ranks = ranks;
    this.oracle = oracle;
    this.world = world;
    this.drive = drive;
    this.settlement = new Settlement(c, ranks, oracle);
    const mayFill = (t: CaseTask): boolean =>
      insertsLater(t) || (ranks.length > 1 && insertsMore(t));
    this.awaitsRoom = c.steps !== undefined && c.tasks.some(mayFill);
  }

  private get alive(): RankPlayer[] {
    return this.ranks.filter((rank) => !rank.isDead);
  }

  async play(): Promise<void> {
    const { c } = this;
    for (const [i, { later }] of c.data.entries()) if (later !== true) this.make(i);
    for (const step of c.steps ?? oneRun(c)) {
      if (this.awaitsRoom && !(await this.room())) return;
      if (!(await this.do(step))) return;
    }
    this.endAll();
  }

  private async settle(): Promise<boolean> {
    if (!(await this.drive(() => this.alive.every((rank) => rank.isThrough)))) return false;
    this.settlement.look();
    return true;
  }

  private endAll(): void {
    for (const { end } of this.open.values()) end();
    this.open.clear();
  }

  private async do(step: CaseStep): Promise<boolean> {
    const [what, n = 0] = step;
    this.settlement.lookAhead();
    switch (what) {
      case 'open':
        this.begin(n);
        break;
      case 'insert':
        this.insert(n, step[2]);
        break;
      case 'end':
        this.open.get(n)?.end();
        this.open.delete(n);
        break;
      case 'cancel':
        this.alive[step[2] % this.alive.length]?.runs[n]?.cancel();
        break;
      case 'make':
        this.make(n);
        break;
      case 'pass':
        return this.pass(n);
      case 'await':
        this.endAll();
        return this.settle();
      default:
        this.use(what, n);
    }
    return true;
  }

  /** Resolves when every rank has room for half a window of tasks, as `graph.space()` does. */
  private room(): Promise<boolean> {
    const { window } = this.c;
    const hasRoom = (): boolean =>
      this.alive.every(({ owed, engine: { tasks } }) => {
        const { live } = tasks;
        return live <= window >> 1 && (live === 0 || live + owed <= window);
      });
    return hasRoom() ? Promise.resolve(true) : this.drive(hasRoom);
  }

  private pass(micros: number): Promise<boolean> {
    let isOver = false;
    this.world.at(this.world.time + micros * 1000, () => {
      isOver = true;
    });
    return this.drive(() => isOver);
  }

  /**
   * A run that begins when all others are over on all ranks begins after their settlement. Any other run fails with the
   * failed ones.
   */
  private begin(run: number): void {
    if (this.alive.every((rank) => rank.isThrough)) this.settlement.look();
    let end: () => void = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.open.set(run, { end, refused: false });
    for (const rank of this.alive) rank.begin(run, ended);
  }

  private insert(r: number, i: number): void {
    const run = this.open.get(r);
    const task = this.c.tasks[i];
    if (run === undefined || run.refused || !this.canInsert(task)) return;
    const inserted = this.alive.filter((rank) => rank.insert(r, i, task));
    run.refused = inserted.length < this.alive.length;
    for (const [d, mode] of task.flows) {
      const stamp = this.oracle.uncommittedOf(d);
      if (mode !== 1) for (const rank of inserted) rank.known.set(d, stamp);
    }
    this.oracle.commit();
  }

  private canInsert({ flows }: CaseTask): boolean {
    return flows.every(([d, mode]) => this.there.has(d) && (mode === 2 || this.hasValue(d)));
  }

  /** Whether a task was to write the datum, on all ranks: of a failed run, they may have inserted more or fewer. */
  private hasValue(d: number): boolean {
    return this.oracle.latest(d) !== 0 && this.alive.every((rank) => rank.knows(d));
  }

  private make(i: number): void {
    let isThere = true;
    for (const rank of this.alive) {
      try {
        rank.make(i);
      } catch (error) {
        const isShort = error instanceof HeadraceError && error.code === 'ERR_OUT_OF_HOST_MEMORY';
        if (!isShort || !this.c.shortOfHost) throw error;
        isThere = false;
      }
    }
    if (isThere) this.there.add(i);
  }

  private use(what: 'set' | 'restore' | 'read' | 'close', i: number): void {
    if (!this.there.has(i)) return;
    if ((what === 'read' || what === 'restore') && !this.hasValue(i)) return;
    if (what === 'close') this.there.delete(i);
    const stamp = what === 'set' ? this.oracle.reserve(i) : 0;
    for (const rank of this.alive) {
      if (what === 'read') rank.read(i);
      else if (what === 'restore') rank.restore(i);
      else if (what === 'set') rank.set(i, stamp);
      else rank.close(i);
    }
    if (what === 'restore') {
      // Next to a failing run the owner may reject it.
      const restored = this.oracle.uncommittedOf(i);
      if (restored !== 0) for (const rank of this.alive) rank.known.set(i, restored);
    }
    this.oracle.commit();
  }

  /** Requests data when the program has ended and all runs are over. */
  readBack(list: readonly number[]): void {
    this.settlement.look();
    for (const d of list) this.use('read', d);
  }
}
