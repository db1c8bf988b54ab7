// What the trace says before its first record: the machine, the lanes, the program and its options.
import { type LaneKind, NO_INDEX, type TraceHeader } from '../trace/format.js';
import type { Engine } from './engine.js';
import { ownCores } from './own-cores.js';

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
    (withoutPeers && kind === 'peer') || next >= most ? NO_INDEX : next++,
  );
}

/** Header of a trace of this engine. */
export function traceHeader(
  engine: Engine,
  program: string,
  hostname: string,
  options: Readonly<Record<string, unknown>>,
): TraceHeader {
  const { backend } = engine;
  const name = (s: number): string => engine.spaceName(s);
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
    rank: engine.ranks?.rank ?? 0,
    ranks: engine.ranks?.size ?? 1,
    started: new Date().toISOString(),
    clockOrigin: backend.now(),
    clockOffset: 0,
    dependencies: 'accesses',
    simulated: backend.kind === 'simulated',
    spaces: backend.spaces.map((s) => ({ kind: s.kind, name: s.name, bytes: s.bytes })),
    lanes: [
      ...lanes,
      ...(engine.ranks === undefined ? [] : [network]),
      { kind: 'script', name: 'JavaScript', space: 0, peer: -1 },
    ],
    options,
    ...(backend.kind === 'simulated' ? {} : { cores: ownCores() }),
  };
}
