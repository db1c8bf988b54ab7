// The ways of bytes between two ranks, and the flush that a way needs.

import { guards } from '../guards.js';
import type { NetworkOptions, NetworkSpace, NetworkWay } from './listener.js';
import { type NetworkPort, VisibleTo, WireMode } from './port.js';

/** The ways of bytes that do not travel in their message. */
type FetchedWay = Exclude<NetworkWay, 'inline'>;

/** Each way as a number (`WireMode`). */
export const MODES: Readonly<Record<FetchedWay, number>> = {
  direct: WireMode.direct,
  staged: WireMode.staged,
  ipc: WireMode.mapped,
};

/** Memory spaces and ways that the number of an arrival tells apart. */
const SPACES = 32;
const MODE_COUNT = 4;

/** The way with that number. */
export const WAYS: readonly FetchedWay[] = ['direct', 'staged', 'ipc'];

/** Place of the number of an arrival among the arguments of a receive: the last one. A receive without it names no memory space. */
export const ARRIVAL_ARGUMENT = 4;

/** Where and how announced bytes come, as one number: the command of their receive is then one record. */
export function arrivalNumber(space: number, mode: number, scope: number): number {
  return space + SPACES * (mode + MODE_COUNT * scope);
}

/** The parts of that number: the memory space, a `WireMode`, and a `VisibleTo`. */
export function arrivalOf(number: number): { space: number; mode: number; scope: number } {
  const rest = Math.floor(number / SPACES);
  const scope = Math.floor(rest / MODE_COUNT);
  return { space: number % SPACES, mode: rest % MODE_COUNT, scope };
}

/** What decides on a way. */
interface Ends {
  readonly port: Pick<NetworkPort, 'rank' | 'mappable' | 'reachable' | 'ordering'>;
  readonly options: Pick<NetworkOptions, 'comm' | 'flush'>;
  readonly spaces: readonly NetworkSpace[];
}

/**
 * The requested way if both ends have it, else the remaining way. A mapped read of the peer's memory costs the peer no
 * work, so it comes first if no way was requested.
 */
export function wayBetween(
  { port, options, spaces }: Ends,
  from: number,
  fromSpace: number,
  space: number,
): FetchedWay {
  if (options.comm === 'staged') {
    return fromSpace > 0 || spaces[space].kind !== 'host' ? 'staged' : 'direct';
  }
  const isReachable = port.reachable(from, fromSpace) && port.reachable(port.rank, space);
  if (options.comm === 'direct' && isReachable) return 'direct';
  if (port.mappable(from, fromSpace)) return 'ipc';
  return isReachable ? 'direct' : 'staged';
}

/**
 * The flush that bytes need before any task may see them, a `VisibleTo`. (Hazard H1: a completed receive means that the
 * network card has handed over its last write, not that a GPU sees it.) The network writes direct receives only. The
 * readers are the owner of the space, and others if this rank has more GPUs or passes the datum on (`forwards`).
 */
export function flushFor(
  { port, options, spaces }: Ends,
  space: number,
  way: NetworkWay,
  forwards: boolean,
): number {
  if (way !== 'direct' || spaces[space].kind === 'host' || options.flush === 'off') {
    return VisibleTo.none;
  }
  const scope = forwards || spaces.length > 2 ? VisibleTo.all : VisibleTo.owner;
  const isNeeded = options.flush === 'force' || port.ordering(space) < scope;
  return isNeeded && guards.networkFlush ? scope : VisibleTo.none;
}
