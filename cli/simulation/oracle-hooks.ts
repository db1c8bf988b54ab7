// Tells the serial oracle what is inserted on a rank and the weak memory what its engine thread touches, by standing in
// front of methods of one engine. The engine itself knows nothing of it and pays nothing for it.

import type { SerialOracle } from '../../devices/simulated/oracle.js';
import type { WeakMemory } from '../../devices/simulated/weak-memory.js';
import type { Runtime } from '../../scheduler/index.js';
import { AccessMode } from '../../trace/format.js';

type Engine = Runtime['engine'];
type RunState = Parameters<Engine['insert']>[1];

/** A receive is the one movement that writes. */
const RECEIVE_MODE = AccessMode.write;

/** Who is told what happens on a rank. */
export interface Told {
  /** A task that is no movement is about to be inserted; `own` names it if it is one of the runtime's own. */
  inserted(run: RunState, key: number, own: string): void;
  /** A row of the directory is used for a new datum. */
  fresh(row: number): void;
  /** A row of the directory is about to be given back. */
  removed(row: number): void;
}

export function attachOracle(
  rank: number,
  engine: Engine,
  oracle: SerialOracle,
  memory: WeakMemory,
  told: Told,
): void {
  const { dependencies, directory, tasks, x } = engine;
  /** Classes of the runtime's own: their bodies are not the program's. */
  const own = x.classes.length;
  const watched: Set<number> = new Set();
  const isMovement = (row: number): boolean => x.classes[tasks.classOf[row]].network !== undefined;
  const order = dependencies.order.bind(dependencies);
  dependencies.order = (id, row, d, mode) => {
    // Movements do not change versions: a receive brings the latest one here, a send reads it.
    if (!isMovement(row)) {
      // Making room for a `set` may have run bodies, which insert writers of their own.
      const isSet = tasks.classOf[row] < own && x.classes[tasks.classOf[row]].name === 'set';
      oracle.access(rank, oracle.keyOf(rank, id), d, mode, isSet);
    } else if (mode === RECEIVE_MODE) oracle.arrives(rank, d);
    order(id, row, d, mode);
  };
  const insert = engine.insert.bind(engine);
  engine.insert = (cls, run, ...rest) => {
    watchBody(cls.id);
    if (cls.network === undefined)
      told.inserted(run, oracle.keyOf(rank, tasks.next), cls.id < own ? cls.name : '');
    return insert(cls, run, ...rest);
  };
  const control = dependencies.control.bind(dependencies);
  dependencies.control = (predecessor, id, row) => {
    // Sends and receives have no body that could be seen to run.
    if (!tasks.contains(predecessor) || !isMovement(predecessor & tasks.mask))
      oracle.follows(oracle.keyOf(rank, id), oracle.keyOf(rank, predecessor));
    return control(predecessor, id, row);
  };
  const add = directory.add.bind(directory);
  directory.add = (bytes, info) => {
    const d = add(bytes, info);
    oracle.bind(rank, d, bytes);
    told.fresh(d);
    return d;
  };
  const remove = directory.remove.bind(directory);
  directory.remove = (d) => {
    told.removed(d);
    remove(d);
  };
  watchPayloads(rank, engine, memory);

  const watchBody = (cls: number): void => {
    if (watched.has(cls)) return;
    watched.add(cls);
    const row = x.classes[cls];
    const { body } = row;
    if (body === undefined || row.network !== undefined) return;
    const offsetsOf = (at: number): number[] =>
      row.modes.map(
        (_, i) => directory.block[tasks.flowDatum[tasks.flowStart[at] + i] * directory.spaces],
      );
    const watchedBody =
      cls < own
        ? (id: number, at: number): unknown => {
            const offsets = offsetsOf(at);
            if (row.name === 'restore') memory.tasks.hostRestores(rank, id, offsets[0]);
            else memory.tasks.hostActs(rank, id, offsets, offsets.length);
            return body(id, at);
          }
        : (id: number, at: number): unknown => {
            memory.tasks.bodyBegins(rank, id, offsetsOf(at), row.modes.length);
            return follow(memory, rank, id, () => body(id, at));
          };
    x.classes[cls] = { ...row, body: watchedBody };
  };
}

/** Runs a body and tells when it ends: before anything that waits for its end goes on. */
function follow(memory: WeakMemory, rank: number, id: number, body: () => unknown): unknown {
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

/** Small payloads are moved by the engine itself: whatever host memory a movement asks for, it reads or writes. */
function watchPayloads(rank: number, engine: Engine, memory: WeakMemory): void {
  const { backend, ranks, tasks, x } = engine;
  if (ranks === undefined) return;
  let writes: boolean | undefined;
  const start = ranks.start.bind(ranks);
  ranks.start = (row) => {
    const before = writes;
    writes = x.classes[tasks.classOf[row]].modes[0] === RECEIVE_MODE;
    try {
      return start(row);
    } finally {
      writes = before;
    }
  };
  const hostView = backend.hostView.bind(backend);
  backend.hostView = (offset, bytes) => {
    if (writes !== undefined) memory.hostMoves(rank, offset, bytes, writes);
    return hostView(offset, bytes);
  };
}
