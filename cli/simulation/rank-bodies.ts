// What JavaScript bodies of a case do besides using their data: they take their time, insert tasks, and fail.
import type { World } from '../../devices/simulated/world.js';
import { HeadraceError } from '../../scheduler/index.js';
import type { CaseTask } from './case.js';
import type { RankPlayer } from './rank-player.js';
import type { RunPlayer } from './run-player.js';

/** Tasks that bodies insert have numbers from here on. */
const FIRST_INSERTED = 1 << 20;

interface Body {
  readonly task: CaseTask;
  readonly run: RunPlayer;
}

export class RankBodies {
  private readonly rank: RankPlayer;
  private readonly world: World;
  private readonly bodies: Map<number, Body> = new Map();
  private next = FIRST_INSERTED;

  constructor(rank: RankPlayer, world: World) {
    this.rank = rank;
    this.world = world;
  }

  /** Task number `n`, of a run, is about to be inserted. */
  add(n: number, task: CaseTask, run: RunPlayer): void {
    this.bodies.set(n, { task, run });
  }

  /** The body of task number `n` runs. */
  behave(n: number): unknown {
    const body = this.bodies.get(n);
    if (body === undefined) throw new Error(`no body ${n}`);
    if (body.task.body === 'async') return this.behaveLater(body);
    this.insert(body);
    if (body.task.fails === true) throw new Error('as the case says');
    return undefined;
  }

  private async behaveLater(body: Body): Promise<void> {
    const { micros, fails } = body.task;
    await this.pause(micros / 2);
    this.insert(body);
    await this.pause(micros / 2);
    if (fails === true) throw new Error('as the case says');
  }

  /** Resolves after so many virtual microseconds. */
  private pause(micros: number): Promise<void> {
    const { world } = this;
    return new Promise((resolve) => world.at(world.time + micros * 1000, resolve));
  }

  private insert({ task, run }: Body): void {
    const { rank } = this;
    for (const child of task.inserts ?? []) {
      if (!this.isThere(child)) continue;
      const mark = rank.oracle.uncommittedWrites;
      try {
        rank.insertInto(run, child, this.next++);
      } catch (error) {
        // Its run has failed, or other ranks would have to know of it.
        const isExpected =
          error instanceof HeadraceError &&
          (run.hasFailed || run.isOver || error.code === 'ERR_INSERT_ALONE');
        if (!isExpected) throw error;
        return;
      } finally {
        rank.oracle.commit(mark);
      }
    }
  }

  /** Whether a task's data are there and have a value. */
  private isThere(child: CaseTask): boolean {
    const { data, oracle } = this.rank;
    return child.flows.every(
      ([d, mode]) => data[d] !== undefined && (mode === 2 || oracle.latest(d) !== 0),
    );
  }
}
