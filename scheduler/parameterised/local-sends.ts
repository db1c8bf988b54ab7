// The versions that go from this rank to others, for a rank that looks at its own tasks only: an output goes to each other rank that
// runs one of its targets, once.
//
// A version goes along a tree if its flow does (local-trees.ts). A send is planned right behind the task that makes the version: so it knows all its destinations, and can use a tree. But it holds
// a row of the window until its readers are inserted elsewhere. While such sends hold a part of the window, further ones are planned
// as late as possible, in the place that the first reader on that rank has in the order.
// Invariant: whatever the ranks wait for, sends that were planned early leave the larger part of the window to tasks, and to movements
// in the order. A version is sent before the task is inserted that overwrites it, because its readers come before that task.

import type { Datum } from '../program/datum.js';
import { Datum as DatumClass } from '../program/datum.js';
import type { LocalRank } from '../ranks/local-rank.js';
import { type DueSend, DueSends } from './due-sends.js';
import { FlowEnd, type Targets } from './ends.js';
import type { GraphClass } from './graph-class.js';
import { positionOf } from './local-tasks.js';
import type { Portion } from './portion.js';

/** Sees the targets of an output. @internal */
export interface TargetVisitor {
  target(end: FlowEnd): void;
  home(datum: Datum): void;
}

/** @internal */
export class LocalSends {
  private readonly local: LocalRank;
  private readonly portion: Portion;
  private readonly due: DueSends = new DueSends();
  /** For each rank the number of the last output that went to it. */
  private readonly sentTo: Float64Array;
  private outputs = 0;
  /** The output that is being sent goes straight to each rank. */
  private isStraight = false;
  /** The sends of the output that are planned late, by rank. */
  private readonly late: Map<number, DueSend> = new Map();

  constructor(local: LocalRank, portion: Portion) {
    this.local = local;
    this.portion = portion;
    this.sentTo = new Float64Array(local.size);
  }

  /**
   * The latest version of the datum goes to the targets. `isStraight`: not along a tree.
   * @throws HeadraceError the errors of `Graph.insert`
   */
  send(datum: Datum, targets: Targets, isStraight: boolean, visitor: TargetVisitor): void {
    this.outputs++;
    this.isStraight = isStraight;
    this.visit(datum, targets, visitor);
    if (this.late.size === 0) return;
    for (const send of this.late.values()) this.due.add(send);
    this.late.clear();
  }

  private visit(datum: Datum, targets: Targets, visitor: TargetVisitor): void {
    if (targets instanceof FlowEnd) {
      visitor.target(targets);
      this.sendTo(datum, targets);
    } else if (Array.isArray(targets))
      for (let n = 0; n < targets.length; n++) this.visit(datum, targets[n], visitor);
    else if (targets instanceof DatumClass) visitor.home(targets);
  }

  private sendTo(datum: Datum, { cls, indices }: FlowEnd): void {
    const { local, sentTo, outputs, late, isStraight } = this;
    const target = cls as GraphClass;
    const rank = target.rankOf(indices) as number;
    if (rank === local.rank) return;
    if (sentTo[rank] === outputs) {
      const known = late.size === 0 ? undefined : late.get(rank);
      if (known !== undefined)
        known.position = Math.min(known.position, positionOf(target, indices));
      return;
    }
    sentTo[rank] = outputs;
    const priority = target.priority === undefined ? 0 : target.priority(indices);
    if (late.size > 0 || !local.mayPlanEarly)
      late.set(rank, {
        ...{ datum, rank, priority, isStraight },
        position: positionOf(target, indices),
      });
    else {
      this.portion.insert();
      local.goesTo(datum, rank, priority, isStraight);
    }
  }

  /** The task at a position is about to be inserted: plans the sends before it. @throws HeadraceError the errors of `Graph.insert` */
  before(position: number): void {
    const { due } = this;
    if (!due.isDue(position)) return;
    this.portion.insert();
    do {
      const { datum, rank, priority, isStraight } = due.take();
      this.local.goesTo(datum, rank, priority, isStraight);
    } while (due.isDue(position));
  }
}
