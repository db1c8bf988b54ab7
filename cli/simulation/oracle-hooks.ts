// Tells the serial oracle what is inserted and the weak memory what JavaScript bodies touch, by standing in front of
// methods of one engine. The engine itself knows nothing of it and pays nothing for it.

import type { SerialOracle } from '../../devices/simulated/oracle.js';
import type { WeakMemory } from '../../devices/simulated/weak-memory.js';
import type { Runtime } from '../../scheduler/index.js';

type Engine = Runtime['engine'];

export function attachOracle(
  engine: Engine,
  oracle: SerialOracle,
  memory: WeakMemory,
  onFresh: (d: number) => void,
): void {
  const { dependencies, directory, tasks, x } = engine;
  const watched: Set<number> = new Set();
  const order = dependencies.order.bind(dependencies);
  dependencies.order = (id, row, d, mode) => {
    oracle.access(id, d, mode);
    order(id, row, d, mode);
  };
  const insert = engine.insert.bind(engine);
  engine.insert = (cls, ...rest) => {
    watchBody(cls.id);
    return insert(cls, ...rest);
  };
  const control = dependencies.control.bind(dependencies);
  dependencies.control = (predecessor, id, row) => {
    oracle.follows(id, predecessor);
    return control(predecessor, id, row);
  };
  const add = directory.add.bind(directory);
  directory.add = (bytes, info) => {
    const d = add(bytes, info);
    oracle.fresh(d);
    onFresh(d);
    return d;
  };

  const watchBody = (cls: number): void => {
    if (watched.has(cls)) return;
    watched.add(cls);
    const row = x.classes[cls];
    const { body } = row;
    if (body === undefined) return;
    const offsets = new Float64Array(row.modes.length);
    x.classes[cls] = {
      ...row,
      body: (id, at) => {
        for (let i = 0; i < offsets.length; i++) {
          offsets[i] = directory.block[tasks.flowDatum[tasks.flowStart[at] + i] * directory.spaces];
        }
        memory.hostBody(id, offsets, offsets.length);
        return body(id, at);
      },
    };
  };
}
