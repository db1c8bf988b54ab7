// The spaces and queues of a native core in the words of the port.
import {
  type NativeCore,
  type NativeIpcExport,
  QueueKind,
  SpaceKind,
} from '../../native/contract.js';
import type { QueueInfo, SpaceInfo } from '../backend.js';
import type { SpaceId } from '../handles.js';

const SPACE_NAMES: readonly SpaceInfo['kind'][] = ['host', 'emulated', 'cuda', 'hip'];
const QUEUE_NAMES: readonly QueueInfo['kind'][] = [
  'worker',
  'compute',
  'h2d',
  'd2h',
  'peer',
  'lane',
  'script',
];

function nameOf<T>(names: readonly T[], kinds: object, kind: number): T {
  const name = names[kind];
  if (name === undefined)
    throw new Error(`native core: unknown kind ${kind} of ${Object.keys(kinds)}`);
  return name;
}

export function spacesOf(core: NativeCore): SpaceInfo[] {
  return core.spaces.map((s, i) => ({
    kind: nameOf(SPACE_NAMES, SpaceKind, s.kind),
    // GPUs of one model share a name: only the number tells them apart.
    name: s.kind < SpaceKind.cuda ? s.name : `GPU ${i - 1} (${s.name})`,
    bytes: s.bytes,
  }));
}

export function queuesOf(core: NativeCore): QueueInfo[] {
  return core.queues.map((q) => ({
    kind: nameOf(QUEUE_NAMES, QueueKind, q.kind),
    space: q.space as SpaceId,
    peer: q.peer as SpaceId,
  }));
}

/** A memory space as the message layer sees it. */
export interface ExportedSpace {
  readonly kind: number;
  /** A GPU behind a driver, whose memory the host cannot touch. */
  readonly isReal: boolean;
  readonly base: bigint;
  readonly bytes: number;
  readonly fd: number;
  readonly uuid: string;
  readonly exported: NativeIpcExport | undefined;
  readonly flushOptions: number;
  readonly writeOrdering: number;
}

export function exportedSpaces(core: NativeCore): ExportedSpace[] {
  return core.spaces.map(({ kind, bytes, uuid, flushOptions, writeOrdering }, s) => ({
    kind,
    isReal: kind === SpaceKind.cuda || kind === SpaceKind.hip,
    base: core.address(s),
    bytes,
    fd: core.shareable(s)?.fd ?? -1,
    uuid,
    exported: core.ipcExport(s) ?? undefined,
    flushOptions,
    writeOrdering,
  }));
}
