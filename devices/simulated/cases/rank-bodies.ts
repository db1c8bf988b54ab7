// The further actions of JavaScript bodies of a case: they take their time, insert tasks, and fail.

import { type Datum, HeadraceError } from '../../../scheduler/index.js';
import { ALIGNMENT } from '../../memory/zone.js';
import type { World } from '../machine/world.js';
import { type CaseTask, OWN } from './program.js';
import type { RankPlayer } from './rank-player.js';
import type { RunPlayer } from './run-player.js';

/** Tasks that the body of a task inserts, and the bodies of those. */
function tasksOf({ grows = 0, inserts = [] }: CaseTask): number {
  const each = inserts.reduce((sum, child) => sum + 1 + tasksOf(child), 0);
  // A tree of such tasks: each inserts two, `grows` times.
  const nodes = 2 ** (grows + 1) - 1;
  return nodes - 1 + nodes * each;
}

/** Tasks that bodies insert have numbers from here on. */
const FIRST_INSERTED = 1 << 20;

/** Whether a body inserts task number `n`, and not the program. */
export function isOfBody(n: number): boolean {
  return n >= FIRST_INSERTED;
}

interface Body {
  readonly task: CaseTask;
  readonly run: RunPlayer;
  /** The datum that the inserting body has created, if any. */
  readonly own: Datum<'u8'> | undefined;
}

export class RankBodies {
  private readonly rank: RankPlayer;
  private readonly world: World;
  private readonly bodies: Map<number, Body> = new Map();
  private next = FIRST_INSERTED;
  /** Tasks that bodies of this rank may insert that have not begun. */
  private owed = 0;

  constructor(rank: RankPlayer, world: World) {
    this.rank = rank;
    this.world = world;
  }

  /** Task number `n`, of a run, is about to be inserted. It belongs to this rank or to another one. */
  add(
    n: number,
    task: CaseTask,
    run: RunPlayer,
    own: Datum<'u8'> | undefined,
    isHere: boolean,
  ): void {
    this.bodies.set(n, { task, run, own });
    if (isHere) this.owed += tasksOf(task);
  }

  /** Tasks that bodies may insert that have not begun, when so many tasks are live. */
  owedAmong(live: number): number {
    // Bodies of failed runs do not begin.
    if (live === 0) this.owed = 0;
    return this.owed;
  }

  /** The body of task number `n` runs. */
  behave(n: number): unknown {
    const body = this.bodies.get(n);
    if (body === undefined) throw new Error(`no body ${n}`);
    this.owed = Math.max(0, this.owed - tasksOf(body.task));
    if (body.task.body === 'async') return this.behaveLater(body);
    this.insert(body);
    if (body.task.fails === true) throw new Error('as the case says');
    return undefined;
  }

  private async behaveLater(body: Body): Promise<void> {
    const { micros, fails } = body.task;
    // On several ranks a body inserts before its first await: later insertions would count as the program's.
    const isAlone = this.rank.memory.ranks === 1;
    if (!isAlone) this.insert(body);
    await this.pause(micros / 2);
    if (isAlone) this.insert(body);
    await this.pause(micros / 2);
    if (fails === true) throw new Error('as the case says');
  }

  /** Resolves after so many virtual microseconds. */
  private pause(micros: number): Promise<void> {
    const { world } = this;
    return new Promise((resolve) => world.at(world.time + micros * 1000, resolve));
  }

  private insert({ task, run, own: given }: Body): void {
    const { grows = 0, inserts = [], makes } = task;
    const made = makes === undefined ? undefined : this.make(makes * ALIGNMENT);
    const own = made ?? given;
    const { makes: _, ...same } = { ...task, grows: grows - 1 };
    const children = grows > 0 ? [...inserts, same, same] : inserts;
    try {
      for (const child of children) if (this.isThere(child, own)) this.insertOne(run, child, own);
    } finally {
      // Also if a task is refused and the body fails because of it.
      made?.close();
    }
  }

  /** A datum that no case names, also while the program waits for the memory of one with a name. */
  private make(bytes: number): Datum<'u8'> {
    const { oracle, runtime } = this.rank;
    const { naming } = oracle;
    oracle.naming = undefined;
    try {
      return runtime.data('u8', bytes);
    } finally {
      oracle.naming = naming;
    }
  }

  private insertOne(run: RunPlayer, child: CaseTask, own: Datum<'u8'> | undefined): void {
    const { rank } = this;
    const mark = rank.oracle.uncommittedWrites;
    try {
      rank.insertInto(run, child, this.next++, own);
    } catch (error) {
      // Its run has failed, or other ranks would have to know it.
      const isExpected =
        error instanceof HeadraceError &&
        (run.hasFailed || run.isOver || error.code === 'ERR_INSERT_ALONE');
      if (!isExpected) throw error;
    } finally {
      rank.oracle.commit(mark);
    }
  }

  /**
   * Whether a task's data exist and have a value. A body does not write data that other ranks can see: the order against
   * their tasks would depend on the time.
   */
  private isThere(child: CaseTask, own: Datum<'u8'> | undefined): boolean {
    const { data, oracle, memory, rank } = this.rank;
    return child.flows.every(([d, mode]) => {
      const datum = d === OWN ? own : data[d];
      if (datum === undefined || datum.closed) return false;
      if (memory.ranks > 1 && d !== OWN && mode !== 1) return false;
      // Other ranks may have inserted more tasks of a failed run.
      if (mode !== 2 && d !== OWN && !this.rank.knows(d)) return false;
      return mode === 2 || oracle.latest(oracle.datumIn(rank, datum.row), rank) !== 0;
    });
  }
}
