// Dependencies that follow from the data that tasks read and write. An engine that infers them from program order does
// not record them (that would cost more than all other records): the reader infers them the same way.
import type { Lists } from './columns.js';
import { AccessMode } from './format.js';

/** The columns of tasks that inference needs. */
interface AccessingTasks {
  readonly count: number;
  readonly rank: Uint16Array;
  readonly accesses: Lists;
  /** AccessMode, along `accesses.items`. */
  readonly accessModes: Uint8Array;
}

/** Edges by column: the rows of their tasks. */
export interface InferredEdges {
  readonly successor: Int32Array;
  readonly predecessor: Int32Array;
}

/** Growing list of pairs. */
class Edges {
  successor: Int32Array = new Int32Array(1024);
  predecessor: Int32Array = new Int32Array(1024);
  count = 0;

  add(successor: number, predecessor: number): void {
    if (this.count === this.successor.length) {
      const grow = (from: Int32Array): Int32Array => {
        const to = new Int32Array(from.length * 2);
        to.set(from);
        return to;
      };
      this.successor = grow(this.successor);
      this.predecessor = grow(this.predecessor);
    }
    this.successor[this.count] = successor;
    this.predecessor[this.count++] = predecessor;
  }
}

/**
 * Edges (successor row, predecessor row) of the tasks for which `applies(rank)` holds: a reader follows the last
 * writer, a writer follows the readers since, and the last writer. `order`: the rows in program order.
 */
export function inferDependencies(
  tasks: AccessingTasks,
  order: Int32Array,
  data: number,
  applies: (rank: number) => boolean,
): InferredEdges {
  const { count, rank, accesses, accessModes } = tasks;
  const lastWriter = new Int32Array(data).fill(-1);
  const readers = new Int32Array(data).fill(-1);
  const nextReader = new Int32Array(accesses.items.length);
  const readerOf = new Int32Array(accesses.items.length);
  const seen = new Int32Array(count).fill(-1);
  const edges = new Edges();
  for (const row of order) {
    if (!applies(rank[row])) continue;
    const follow = (predecessor: number): void => {
      if (predecessor < 0 || predecessor === row || seen[predecessor] === row) return;
      seen[predecessor] = row;
      edges.add(row, predecessor);
    };
    for (let i = accesses.start[row]; i < accesses.start[row + 1]; i++) {
      const d = accesses.items[i];
      if (accessModes[i] === AccessMode.read) {
        follow(lastWriter[d]);
        readerOf[i] = row;
        nextReader[i] = readers[d];
        readers[d] = i;
        continue;
      }
      if (readers[d] < 0 || accessModes[i] === AccessMode.readWrite) follow(lastWriter[d]);
      for (let r = readers[d]; r >= 0; r = nextReader[r]) follow(readerOf[r]);
      readers[d] = -1;
      lastWriter[d] = row;
    }
  }
  return {
    successor: edges.successor.subarray(0, edges.count),
    predecessor: edges.predecessor.subarray(0, edges.count),
  };
}
