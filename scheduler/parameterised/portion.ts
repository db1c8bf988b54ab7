// The next tasks of an instance, on their way from the walk into the run. The code of the walk and that of the engine do not fit the
// cache of a core together. So tasks go through the one and then through the other in portions, which takes a quarter less time than one
// by one.
// Invariant: tasks are inserted in the order in which they were added, before anything else that the walk asks of the graph. So a
// mistake leaves the run with the tasks before it.

import type { Datum } from '../program/datum.js';
import type { Graph, Repetition, TaskOptions } from '../program/graph.js';
import type { TaskClass } from '../program/task-class.js';

/** Tasks of a portion: as many as the engine takes between two passes. */
const PORTION = 32;

/** The same before it is asked again whether a run repeats a stretch. */
const SELDOM = 64;

type Values = Readonly<Record<string, number | boolean>>;

/** A task that is not inserted yet. */
interface Prepared {
  cls: TaskClass | undefined;
  /** By flow; the array may be longer. */
  readonly data: Datum[];
  params: Values | undefined;
  options: TaskOptions | undefined;
}

/** @internal */
export class Portion {
  private readonly graph: Graph;
  private readonly records: readonly Prepared[];
  private count = 0;
  /** Tasks that come again and are not added. */
  private passed = 0;

  constructor(graph: Graph) {
    this.graph = graph;
    this.records = Array.from({ length: PORTION }, () => ({
      ...{ cls: undefined, data: [], params: undefined, options: undefined },
    }));
  }

  /** The data of the task that is added next, for the caller to fill. */
  get data(): Datum[] {
    return this.records[this.count].data;
  }

  /** Adds the task whose data are in `data`. @throws HeadraceError the errors of `Graph.insert` for a task of the portion */
  add(cls: TaskClass, params: Values | undefined, options: TaskOptions | undefined): void {
    if (this.passed > 0) {
      this.passed--;
      return;
    }
    const record = this.records[this.count];
    record.cls = cls;
    record.params = params;
    record.options = options;
    if (++this.count === PORTION) this.insert();
  }

  /** Tasks to be added before it is worth while to ask this again; 0 if it is worth while to call `again`. @throws as `add` */
  untilAgain(): number {
    const { graph } = this;
    if (!graph.mayComeAgain) return SELDOM;
    this.insert();
    return graph.untilStretch ?? SELDOM;
  }

  /** The tasks that were added last are added again and again, and need not be, up to the number that is returned (`Graph.again`). @throws as `add` */
  again(of: Repetition): number {
    return this.graph.again(of);
  }

  /** The next tasks that are added were added before, in this order. */
  pass(count: number): void {
    this.passed = count;
  }

  /**
   * Inserts all that were added. Those behind a mistake are dropped.
   * @throws HeadraceError the errors of `Graph.insert`
   */
  insert(): void {
    const { graph, records, count } = this;
    this.count = 0;
    for (let n = 0; n < count; n++) {
      const { cls, data, params, options } = records[n];
      graph.insertInOrder(cls as TaskClass, data, params, options);
    }
  }
}
