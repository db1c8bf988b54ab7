// The header of a trace: the machine, the lanes, the program and its options.
import { findQueues } from '../../devices/backend.js';
import type { SpaceId } from '../../devices/handles.js';
import { type LaneKind, NO_INDEX, type TraceHeader } from '../../trace/format.js';
import type { EngineState } from '../engine/state.js';
import { queueName } from '../plans/queue-name.js';
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
  const lanes = findQueues(backend.queues, () => true)
    .filter((q) => laneOf[q] !== NO_INDEX)
    .map((q) => {
      const { kind, space, peer } = backend.queues[q];
      return {
        kind: kind === 'script' ? ('script-worker' as const) : (kind as LaneKind),
        name:
          kind === 'worker' || kind === 'script'
            ? queueName(backend, q)
            : kind === 'peer'
              ? `${name(space)} from ${name(peer)}`
              : `${name(space)} ${kind}`,
        space,
        peer,
      };
    });
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
