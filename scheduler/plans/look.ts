// The commands that bring the number of a condition to where the native threads look at it, at the end of an iteration.
//
// The number is the first element of a datum. On one rank nothing is needed if an iteration leaves the datum where the processor
// can read it. Otherwise a copy of the number goes from the GPU to memory of its own on the host. On several ranks the
// rank that writes the datum last sends the number to all others, short or along a tree, as any version (messages.ts).
//
// Invariant: in every iteration each rank has the same bytes at the place at which it looks, once its commands of the
// iteration are over, and until its next iteration begins. So all ranks decide alike, although none asks another.
import { type DatumId, HOST, type QueueId, type SpaceId } from '../../devices/handles.js';
import type { PlannedCommands } from '../../devices/planning/commands.js';
import { NO_INSERTION } from '../../devices/planning/commands.js';
import type { Engine } from '../engine/engine.js';
import { type CopyPlace, iterationOf, type NumberPlace } from './iteration.js';
import type { PlannedMessage } from './messages.js';
import type { Decisions } from './planned-program.js';
import { type RankShare, withMessages } from './rank-share.js';

/** Behind the host memory of every planned machine (devices/planning/backend.ts). */
const NUMBER_OFFSET = 2 ** 51;

/** The number of a condition. */
export interface LookedNumber {
  readonly datum: DatumId;
  readonly bytes: number;
  /** On several ranks. */
  readonly ranks?: { readonly rank: number; readonly messages: readonly PlannedMessage[] };
}

/** The decisions with the commands that bring the number. */
export function withLook(
  engine: Pick<Engine, 'backend' | 'directory'>,
  planned: Decisions,
  { datum, bytes, ranks }: LookedNumber,
): Decisions {
  const { iteration } = planned;
  const { queues } = engine.backend;
  const { offset, space } = iteration.ranges;
  const exits = new Map<DatumId, CopyPlace[]>();
  for (const [d, list] of iteration.exits)
    exits.set(
      d,
      list.map((range) => ({ space: space[range], offset: offset[range] })),
    );
  const copies = exits.get(datum) ?? [];
  const onHost = copies.find((copy) => copy.space === HOST);
  const number: NumberPlace | undefined =
    onHost === undefined ? { offset: NUMBER_OFFSET, bytes } : undefined;
  const place = onHost?.offset ?? NUMBER_OFFSET;
  const commands = iteration.commands.copy();
  if (onHost === undefined && copies.length > 0) {
    const [from] = copies;
    const isSource = (q: { kind: string; space: SpaceId }): boolean =>
      q.kind === 'd2h' && q.space === from.space;
    const queue = queues.findIndex(isSource) as QueueId;
    addCopy(commands, queue, from, { place, bytes, datum });
  }
  const of = ranks && { rank: ranks.rank, queues, bytes };
  const share = of && planned.share && withMessages(planned.share, ranks?.messages ?? [], of);
  if (share !== undefined)
    for (let n = planned.insertions.count; n < share.insertions.count; n++)
      addMessage(commands, share, n, place);
  commands.trim();
  const insertions = share?.insertions ?? planned.insertions;
  const { directory } = engine;
  return {
    ...planned,
    insertions,
    share,
    iteration: iterationOf({ insertions, commands, exits, directory, queues, number }),
  };
}

function addCopy(
  commands: PlannedCommands,
  queue: QueueId,
  from: CopyPlace,
  { place, bytes, datum }: { place: number; bytes: number; datum: DatumId },
): void {
  const values = [place, from.offset, bytes, datum];
  const c = commands.add(queue, HOST + 256 * from.space, NO_INSERTION, 0, values, values.length);
  commands.isCopy[c] = 1;
  commands.data[commands.first[c]] = datum;
}

function addMessage(
  commands: PlannedCommands,
  { insertions, commands: lanes }: RankShare,
  n: number,
  place: number,
): void {
  const lane = lanes.get(n);
  if (lane === undefined) throw new Error('a message of a condition has no lane');
  const { paramNames } = insertions.classOf(n);
  const values = [place, ...paramNames.map((_, i) => insertions.parameter(n, i))];
  const c = commands.add(lane.queue, 0, n, 1, values, values.length);
  commands.message[c] = lane.opcode;
  commands.data[commands.first[c]] = insertions.datum(n, 0);
}
