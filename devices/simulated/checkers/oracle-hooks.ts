// Reports the insertions of a rank to the serial oracle, and the bytes that its engine thread touches to the weak memory.

import { EngineObserver } from '../../../scheduler/engine/observer.js';
import type { RunState } from '../../../scheduler/engine/run-state.js';
import type { Runtime } from '../../../scheduler/index.js';
import type { TaskClassRow } from '../../../stages/task-table.js';
import { AccessMode } from '../../../trace/format.js';
import type { Column, DatumId, TaskId } from '../../handles.js';
import type { SerialOracle } from '../memory/oracle.js';
import type { WeakMemory } from '../memory/weak-memory.js';

type Engine = Runtime['engine'];

/** A receive is the one movement that writes. */
const RECEIVE_MODE = AccessMode.write;

/** The listener for the events of a rank. */
export interface Told {
  /** A task that is not a movement is about to be inserted; `own` names it if it is one of the runtime's own. */
  inserted(run: RunState, key: number, own: string): void;
  /** A row of the directory is used for a new datum. */
  fresh(row: number): void;
  /** A row of the directory is about to be returned. */
  removed(row: number): void;
}

/** Reports to oracle and memory. Attach it before the first task. */
export class OracleObserver extends EngineObserver {
  private readonly rank: number;
  private readonly engine: Engine;
  private readonly oracle: SerialOracle;
  private readonly memory: WeakMemory;
  private readonly told: Told;
  /** Classes of the runtime's own: their bodies are not the program's. */
  private readonly own: number;
  private readonly watched: Set<number> = new Set();

  constructor(rank: number, engine: Engine, oracle: SerialOracle, memory: WeakMemory, told: Told) {
    super();
    this.rank = rank;
    this.engine = engine;
    this.oracle = oracle;
    this.memory = memory;
    this.told = told;
    this.own = engine.x.classes.length;
  }

  override inserted(
    id: number,
    _row: number,
    cls: TaskClassRow,
    run: RunState,
    flows: Column<Int32Array, DatumId>,
    after: readonly number[] | undefined,
  ): void {
    const { rank, oracle, engine } = this;
    this.watchBody(cls.id);
    const key = oracle.keyOf(rank, id);
    const isMovement = cls.network !== undefined;
    const own = cls.id < this.own ? cls.name : '';
    if (!isMovement) this.told.inserted(run, key, own);
    cls.modes.forEach((mode, i) => {
      // Movements do not change versions: a receive brings the latest one here, a send reads it.
      if (!isMovement) oracle.access(rank, key, flows[i], mode, own === 'set');
      else if (mode === RECEIVE_MODE) oracle.arrives(rank, flows[i]);
    });
    for (const predecessor of after ?? []) {
      // Sends and receives have no visible body.
      if (engine.tasks.contains(predecessor) && engine.isMovement(predecessor & engine.tasks.mask))
        continue;
      oracle.follows(key, oracle.keyOf(rank, predecessor));
    }
  }

  override datumAdded(d: number, bytes: number): void {
    this.oracle.bind(this.rank, d, bytes);
    this.told.fresh(d);
  }

  override datumRemoved(d: number): void {
    this.told.removed(d);
  }

  private offsetsOf(row: TaskClassRow, at: number): number[] {
    const { directory, tasks } = this.engine;
    return row.modes.map(
      (_, i) => directory.block[tasks.flowDatum[tasks.flowStart[at] + i] * directory.spaces],
    );
  }

  /** Wraps the body of a class, so that its begin and end are reported. */
  private watchBody(cls: number): void {
    if (this.watched.has(cls)) return;
    this.watched.add(cls);
    const { rank, memory } = this;
    const { classes } = this.engine.x;
    const row = classes[cls];
    const { body } = row;
    if (body === undefined || row.network !== undefined) return;
    const ownBody = (id: TaskId, at: number): unknown => {
      const offsets = this.offsetsOf(row, at);
      if (row.name === 'restore') memory.tasks.hostRestores(rank, id, offsets[0]);
      else memory.tasks.hostActs(rank, id, offsets, offsets.length);
      return body(id, at);
    };
    const programsBody = (id: TaskId, at: number): unknown => {
      memory.tasks.bodyBegins(rank, id, this.offsetsOf(row, at), row.modes.length);
      return follow(memory, rank, id, () => body(id, at));
    };
    classes[cls] = { ...row, body: cls < this.own ? ownBody : programsBody };
  }
}

/** Runs a body and reports its end before any code that waits for the end goes on. */
function follow(memory: WeakMemory, rank: number, id: TaskId, body: () => unknown): unknown {
  let result: unknown;
  try {
    result = body();
  } catch (error) {
    memory.tasks.bodyEnds(rank, id, false);
    throw error;
  }
  if (!(result instanceof Promise)) {
    memory.tasks.bodyEnds(rank, id, true);
    return result;
  }
  return result.then(
    () => memory.tasks.bodyEnds(rank, id, true),
    (error: unknown) => {
      memory.tasks.bodyEnds(rank, id, false);
      throw error;
    },
  );
}
