// Tells the serial oracle what is inserted on a rank and the weak memory what its engine thread touches, by standing in
// front of methods of one engine. The engine itself knows nothing of it and pays nothing for it.

import type { SerialOracle } from '../../devices/simulated/oracle.js';
import type { WeakMemory } from '../../devices/simulated/weak-memory.js';
import type { Runtime } from '../../scheduler/index.js';
import { AccessMode } from '../../trace/format.js';

type Engine = Runtime['engine'];

/** A receive is the one movement that writes. */
const RECEIVE_MODE = AccessMode.write;

export function attachOracle(
  rank: number,
  engine: Engine,
  oracle: SerialOracle,
  memory: WeakMemory,
  onFresh: (d: number) => void,
): void {
  const { dependencies, directory, tasks, x } = engine;
  const watched: Set<number> = new Set();
  const isMovement = (row: number): boolean => x.classes[tasks.classOf[row]].network !== undefined;
  const order = dependencies.order.bind(dependencies);
  dependencies.order = (id, row, d, mode) => {
    // Movements do not change versions: a receive brings the latest one here, a send reads it.
    if (!isMovement(row)) oracle.access(rank, oracle.keyOf(rank, id), d, mode);
    else if (mode === RECEIVE_MODE) oracle.arrives(rank, d);
    order(id, row, d, mode);
  };
  const insert = engine.insert.bind(engine);
  engine.insert = (cls, ...rest) => {
    watchBody(cls.id);
    return insert(cls, ...rest);
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
    oracle.fresh(rank, d);
    onFresh(d);
    return d;
  };
  watchPayloads(rank, engine, memory);

  const watchBody = (cls: number): void => {
    if (watched.has(cls)) return;
    watched.add(cls);
    const row = x.classes[cls];
    const { body } = row;
    if (body === undefined || row.network !== undefined) return;
    const offsets = new Float64Array(row.modes.length);
    x.classes[cls] = {
      ...row,
      body: (id, at) => {
        for (let i = 0; i < offsets.length; i++) {
          offsets[i] = directory.block[tasks.flowDatum[tasks.flowStart[at] + i] * directory.spaces];
        }
        memory.hostBody(rank, id, offsets, offsets.length);
        return body(id, at);
      },
    };
  };
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
