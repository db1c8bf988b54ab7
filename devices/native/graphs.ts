// Graphs of CUDA: NativeCore.capture has the meaning.
import { type NativeCore, type NativePlanQueue, Opcode, Record } from '../../native/contract.js';
import type { CommandGraphs, SpaceInfo } from '../backend.js';
import type { QueueId, SpaceId } from '../handles.js';
import { native } from './native-errors.js';

export class NativeGraphs implements CommandGraphs {
  private readonly core: NativeCore;
  private readonly spaces: readonly SpaceInfo[];

  constructor(core: NativeCore, spaces: readonly SpaceInfo[]) {
    this.core = core;
    this.spaces = spaces;
  }

  has(space: SpaceId): boolean {
    return this.spaces[space].kind === 'cuda';
  }

  capture(lists: readonly NativePlanQueue[]): Int32Array {
    const graph = native(() => this.core.capture(lists));
    const record = new Int32Array(Record.words);
    record[Record.head] = Opcode.graph | (1 << 20);
    new Float64Array(record.buffer)[Record.argument] = graph;
    return record;
  }

  failure(queue: QueueId, record: Int32Array): readonly [number, number] | undefined {
    return this.core.graphFailure(queue, graphOf(record));
  }

  release(queue: QueueId, record: Int32Array): void {
    native(() => this.core.releaseGraph(queue, graphOf(record)));
  }
}

function graphOf(record: Int32Array): number {
  return new Float64Array(record.buffer)[Record.argument];
}
