// The figures of a run. All counts are differences between the start and the end of the run on its runtime.
import type { QueueId } from '../../devices/handles.js';
import { type BytesByKind, noBytes } from '../../devices/memory/transfers.js';
import { WAIT_NAMES } from '../../stages/stage.js';
import type { NetworkReport } from '../engine/remote.js';
import type { EngineState } from '../engine/state.js';

export type { NetworkReport } from '../engine/remote.js';

/** One device in a report. */
export interface DeviceReport {
  readonly name: string;
  readonly kind: string;
  /** Seconds its executors spent in kernels and copies, summed over them. */
  readonly busySeconds: number;
  /** Bytes copied into its memory, and out of it. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Largest number of bytes in use so far, and the capacity. */
  readonly highWaterBytes: number;
  readonly capacityBytes: number;
}

/** Result of a run. */
export interface RunReport {
  /** Tasks completed. */
  readonly tasks: number;
  /** Wall-clock seconds from the start of the program function to the last task. */
  readonly seconds: number;
  /** Bytes moved, by kind of transfer. */
  readonly bytes: BytesByKind;
  /** Copies that were evicted from a device. */
  readonly evictions: number;
  /** The evicted copies that were written back to the host. */
  readonly spills: number;
  /** How often a task had to wait, by reason. */
  readonly waits: Readonly<Record<string, number>>;
  readonly devices: readonly DeviceReport[];
  /** With `plans: 'auto'`: 'played' if a plan was played in place of the tasks; otherwise why not. */
  readonly recognition?: string;
  /** Traffic of this rank with other ranks; absent in a single process. */
  readonly network?: NetworkReport;
}

/** Totals of an engine at one moment. @internal */
export interface EngineTotals {
  readonly at: number;
  readonly bytes: BytesByKind;
  readonly evictions: number;
  readonly spills: number;
  readonly waits: Float64Array;
  readonly busy: readonly number[];
  readonly bytesIn: Float64Array;
  readonly bytesOut: Float64Array;
  readonly network: NetworkReport | undefined;
}

/** Reads the totals. @internal */
export function totals(engine: EngineState): EngineTotals {
  const { backend, transfers, x } = engine;
  return {
    at: backend.now(),
    bytes: { ...transfers.bytes },
    evictions: x.counters.evictions,
    spills: transfers.spills,
    waits: x.counters.waits.slice(),
    busy: backend.queues.map((_, q) => backend.busy(q as QueueId)),
    bytesIn: transfers.bytesIn.slice(),
    bytesOut: transfers.bytesOut.slice(),
    network: engine.remote?.report(),
  };
}

/** The differences between two moments. @internal */
export function difference(
  engine: EngineState,
  from: EngineTotals,
  to: EngineTotals,
  tasks: number,
  recognition?: string,
): RunReport {
  const bytes = noBytes();
  for (const kind of Object.keys(bytes) as (keyof BytesByKind)[]) {
    bytes[kind] = to.bytes[kind] - from.bytes[kind];
  }
  const waits: Record<string, number> = {};
  WAIT_NAMES.forEach((name, i) => {
    if (i > 0) waits[name] = to.waits[i] - from.waits[i];
  });
  const devices = engine.backend.spaces.map((space, s) => {
    let busy = 0;
    engine.backend.queues.forEach((queue, q) => {
      if (queue.space === s) busy += to.busy[q] - from.busy[q];
    });
    return {
      name: space.name,
      kind: space.kind,
      busySeconds: busy / 1e9,
      bytesIn: to.bytesIn[s] - from.bytesIn[s],
      bytesOut: to.bytesOut[s] - from.bytesOut[s],
      highWaterBytes: engine.spaces[s].zone.highWater,
      capacityBytes: engine.spaces[s].zone.capacity,
    };
  });
  return {
    tasks,
    seconds: (to.at - from.at) / 1e9,
    bytes,
    evictions: to.evictions - from.evictions,
    spills: to.spills - from.spills,
    waits,
    devices,
    ...(recognition === undefined ? {} : { recognition }),
    ...(to.network === undefined ? {} : { network: networkDifference(from.network, to.network) }),
  };
}

function networkDifference(from: NetworkReport | undefined, to: NetworkReport): NetworkReport {
  const result: Record<string, number> = { ...to };
  for (const [name, value] of Object.entries(from ?? {})) {
    if (name !== 'rank' && name !== 'ranks')
      result[name] = (result[name] as number) - (value as number);
  }
  return result as unknown as NetworkReport;
}
