// The header of a trace: the machine, the lanes, the program and its options.
import type { SpaceId } from '../../devices/handles.js';
import { type LaneKind, NO_INDEX, type TraceHeader } from '../../trace/format.js';
import type { EngineState } from '../engine/state.js';
import { ownCores } from '../program/own-cores.js';

/**
 * Lane of each queue, or NO_INDEX. Records name lanes with 8 bits. Where there are more queues than that, the copies between
 * GPUs have no lanes: a machine of G GPUs has G (G - 1) queues for them.
 */
export function lanesOfQueues(queues: readonly { readonly kind: string }[]): Uint8Array {
  // The lanes of messages and of JavaScript bodies come after those of the queues.
  const most = NO_INDEX - 2;
  const withoutPeers = queues.length > most;
  let next = 0;
  return Uint8Array.from(queues, ({ kind }) =>
    kind === 'lane' || (withoutPeers && kind === 'peer') || next >= most ? NO_INDEX : next++,
  );
}

/** Header of a trace of this engine. */
export function traceHeader(
  engine: EngineState,
  program: string,
  hostname: string,
  options: Readonly<Record<string, unknown>>,
): TraceHeader {
  const { backend } = engine;
  const name = (s: SpaceId): string => engine.spaceName(s);
  const network = { kind: 'network', name: 'network', space: 0, peer: -1 } as const;
  const laneOf = lanesOfQueues(backend.queues);
  const named = backend.queues.filter((_, q) => laneOf[q] !== NO_INDEX);
  const lanes = named.map((q, i) => ({
    kind: q.kind as LaneKind,
    name:
      q.kind === 'worker'
        ? `worker ${i}`
        : q.kind === 'peer'
          ? `${name(q.space)} from ${name(q.peer)}`
          : `${name(q.space)} ${q.kind}`,
    space: q.space,
    peer: q.peer,
  }));
  return {
    program,
    hostname,
    rank: engine.remote?.rank ?? 0,
    ranks: engine.remote?.size ?? 1,
    started: new Date().toISOString(),
    clockOrigin: backend.now(),
    clockOffset: 0,
    dependencies: 'accesses',
    simulated: backend.kind === 'simulated',
    spaces: backend.spaces.map((s) => ({ kind: s.kind, name: s.name, bytes: s.bytes })),
    lanes: [
      ...lanes,
      ...(engine.remote === undefined ? [] : [network]),
      { kind: 'script', name: 'JavaScript', space: 0, peer: -1 },
    ],
    options,
    ...(backend.kind === 'simulated' ? {} : { cores: ownCores() }),
  };
}
