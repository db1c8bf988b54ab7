// Field numbers of Perfetto's protobufs: protos/perfetto/trace/ of the Perfetto repository (trace_packet, track_event,
// track_descriptor, counter_descriptor, interned_data, debug_annotation).

/** Fields of a TracePacket. */
export const Packet = {
  timestamp: 8,
  sequence: 10,
  event: 11,
  interned: 12,
  flags: 13,
  track: 60,
} as const;

/** Fields of a TrackDescriptor. */
export const Track = {
  uuid: 1,
  name: 2,
  process: 3,
  parent: 5,
  counter: 8,
  childOrdering: 11,
  rank: 12,
  processOrdering: 19,
} as const;

/** Fields of a TrackEvent. */
export const Event = {
  categories: 3,
  annotations: 4,
  type: 9,
  nameId: 10,
  track: 11,
  value: 44,
  flows: 47,
  ends: 48,
  correlation: 52,
} as const;

/** Fields of a DebugAnnotation. */
export const Annotation = { nameId: 1, uint: 3, string: 6 } as const;

/** Values of TrackEvent.type. */
export const Type = { begin: 1, end: 2, instant: 3, counter: 4 } as const;

/** Child tracks are in the order of their ranks. */
export const EXPLICIT = 3;
