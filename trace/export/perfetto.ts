// Perfetto's TrackEvent protobuf: a tree of tracks (rank, device, lanes, counters), one slice per task and transfer,
// flows for dependencies, messages and the transfers a task waited for, counters for memory and queues.
import {
  CounterKind,
  eventKindNames,
  NONE,
  TaskFlag,
  TaskTime,
  transferKindNames,
  transferReasonNames,
} from '../format.js';
import { datumName, NO_ROW, playedAs, type Trace } from '../trace.js';
import { Flows } from './flows.js';
import type { Output } from './output.js';
import { Annotation, Event, EXPLICIT, Packet, Track, Type } from './perfetto-fields.js';
import { ProtoWriter } from './protobuf.js';
import { assignRows, laneWalk } from './rows.js';

/** Options that leave parts out or add them. */
export interface PerfettoOptions {
  /** Arrows of dependencies, messages and transfers (default true). */
  readonly flows?: boolean;
  /** Tracks with the six stages of every task (default: traces of up to 20 000 tasks). */
  readonly stages?: boolean;
}

const SEQUENCE = 1;
const stageNames = [
  'dependencies',
  'alloc',
  'stage-in',
  'comm-in',
  'issue',
  'queue',
  'exec',
  'stage-out',
  'finalize',
];

/** Writes a whole trace. Memory: one packet, plus the sorted order of rows. */
export function exportPerfetto(trace: Trace, output: Output, options: PerfettoOptions = {}): void {
  new PerfettoExport(trace, output, options).run();
}

class PerfettoExport {
  readonly #trace: Trace;
  readonly #output: Output;
  readonly #proto: ProtoWriter = new ProtoWriter();
  readonly #names: Map<string, number> = new Map();
  readonly #categoryNames: Map<string, number> = new Map();
  readonly #annotationNames: Map<string, number> = new Map();
  readonly #flows: Flows | undefined;
  readonly #stages: boolean;
  #started = false;
  #nextTrack = 1;

  constructor(trace: Trace, output: Output, options: PerfettoOptions) {
    this.#trace = trace;
    this.#output = output;
    this.#flows = options.flows === false ? undefined : new Flows(trace);
    this.#stages = options.stages ?? trace.tasks.count <= 20_000;
  }

  run(): void {
    const trace = this.#trace;
    this.#rootTrack();
    const rankTracks = new Map<number, number>();
    for (const { rank, header } of trace.ranks) {
      rankTracks.set(rank, this.#processTrack(rank, `rank ${rank} (${header.hostname})`));
    }
    const spaceTracks = trace.spaces.map((space) =>
      this.#track(space.name, rankTracks.get(space.rank)!, space.index, true),
    );
    const walk = laneWalk(trace);
    trace.lanes.forEach((lane, index) => {
      this.#lane(walk, index, spaceTracks[lane.space]);
    });
    if (this.#stages) this.#stageTracks(spaceTracks);
    this.#counters(rankTracks, spaceTracks);
    this.#events(rankTracks);
  }

  #lane(walk: ReturnType<typeof laneWalk>, lane: number, parent: number): void {
    const trace = this.#trace;
    const { name } = trace.lanes[lane];
    // Sub-rows are sibling tracks of one name, which Perfetto shows as one.
    const rows: number[] = [];
    walk(lane, (slice) => {
      rows[slice.row] ??= this.#track(name, parent, lane, false);
      const track = rows[slice.row];
      if (slice.isTask) this.#taskSlice(slice.item, track);
      else this.#transferSlice(slice.item, track);
    });
    if (rows.length === 0) this.#track(name, parent, lane, false);
  }

  #taskSlice(row: number, track: number): void {
    const { tasks, classes } = this.#trace;
    const { times } = tasks;
    const name = classes[tasks.taskClass[row]]?.name ?? 'task';
    this.#begin(times[TaskTime.execStart][row], Type.begin, track, name, 'task');
    const proto = this.#proto;
    proto.uint(Event.correlation, row + 1);
    this.#annotate('task', tasks.id[row]);
    const played = playedAs(this.#trace, row);
    if (played !== undefined) {
      this.#annotate('plan', played.plan);
      this.#annotate('iteration', played.iteration);
    }
    const { start, items } = tasks.parameters;
    if (start[row + 1] > start[row]) {
      this.#annotate('parameters', items.subarray(start[row], start[row + 1]).join(', '));
    }
    for (let stage = 1; stage < stageNames.length; stage++) {
      const time = times[stage + 1][row] - times[stage][row];
      if (stage !== 6 && time > 0) this.#annotate(`${stageNames[stage]} ns`, time);
    }
    if (tasks.flags[row] & TaskFlag.failed) this.#annotate('outcome', 'failed');
    if (tasks.flags[row] & TaskFlag.cancelled) this.#annotate('outcome', 'cancelled');
    this.#flows?.ofTask(
      row,
      (id) => proto.fixed64(Event.flows, id),
      (id) => proto.fixed64(Event.ends, id),
    );
    this.#finish();
    this.#sliceEnd(times[TaskTime.execEnd][row], track);
  }

  #transferSlice(row: number, track: number): void {
    const { transfers } = this.#trace;
    const name = transferKindNames[transfers.kind[row]] ?? 'transfer';
    this.#begin(transfers.start[row], Type.begin, track, name, 'transfer');
    const proto = this.#proto;
    this.#annotate('bytes', transfers.bytes[row]);
    this.#annotate('reason', transferReasonNames[transfers.reason[row]] ?? '');
    if (transfers.datum[row] >= 0)
      this.#annotate('datum', datumName(this.#trace, transfers.datum[row]));
    this.#annotate('version', transfers.version[row]);
    this.#annotate('waited ns', Math.max(0, transfers.start[row] - transfers.issued[row]));
    if (transfers.peer[row] >= 0) this.#annotate('peer rank', transfers.peer[row]);
    if (transfers.message[row] !== NONE) this.#annotate('message', transfers.message[row]);
    this.#flows?.ofTransfer(
      row,
      (id) => proto.fixed64(Event.flows, id),
      (id) => proto.fixed64(Event.ends, id),
    );
    this.#finish();
    this.#sliceEnd(transfers.end[row], track);
  }

  // Per device, tasks from ready to finalized on as many rows as tasks overlap, each cut into its stages.
  #stageTracks(spaceTracks: readonly number[]): void {
    const { tasks, spaces } = this.#trace;
    const ready = tasks.times[TaskTime.ready];
    const finalized = tasks.times[TaskTime.finalized];
    spaces.forEach((_, space) => {
      const rows: number[] = [];
      for (let row = 0; row < tasks.count; row++) if (tasks.space[row] === space) rows.push(row);
      if (rows.length === 0) return;
      rows.sort((a, b) => ready[a] - ready[b] || a - b);
      const { row: assigned } = assignRows(rows, ready, finalized);
      const parent = this.#track('stages', spaceTracks[space], 1000, true);
      const tracks: number[] = [];
      rows.forEach((task, i) => {
        tracks[assigned[i]] ??= this.#track(`task ${assigned[i]}`, parent, assigned[i], false);
        this.#stageSlices(task, tracks[assigned[i]]);
      });
    });
  }

  #stageSlices(task: number, track: number): void {
    const { times } = this.#trace.tasks;
    for (let stage = 1; stage < stageNames.length; stage++) {
      const from = times[stage][task];
      const to = times[stage + 1][task];
      if (to <= from) continue;
      this.#begin(from, Type.begin, track, stageNames[stage], 'stage');
      this.#proto.uint(Event.correlation, task + 1);
      this.#finish();
      this.#sliceEnd(to, track);
    }
  }

  #counters(rankTracks: ReadonlyMap<number, number>, spaceTracks: readonly number[]): void {
    const { counters } = this.#trace;
    const memory = ['used', 'pinned', 'dirty', 'clean', 'arriving'];
    const progress = [
      'ready tasks',
      'tasks in the window',
      'bytes in flight',
      'messages in flight',
    ];
    const tracks = new Map<string, number[]>();
    for (let row = 0; row < counters.count; row++) {
      const isMemory = counters.kind[row] === CounterKind.memory;
      const space = counters.space[row];
      if (isMemory && space === NO_ROW) continue;
      const rank = counters.rank[row];
      const key = isMemory ? `s${space}` : `r${rank}`;
      let ids = tracks.get(key);
      if (!ids) {
        const names = isMemory ? memory : progress;
        const parent = isMemory ? spaceTracks[space] : rankTracks.get(rank)!;
        ids = names.map((name, i) =>
          this.#counterTrack(isMemory ? `memory ${name}` : name, parent, i, isMemory || i === 2),
        );
        tracks.set(key, ids);
      }
      for (let i = 0; i < ids.length; i++) {
        this.#counter(counters.time[row], ids[i], counters.values[6 * row + i]);
      }
    }
  }

  #events(rankTracks: ReadonlyMap<number, number>): void {
    const { events } = this.#trace;
    const tracks = new Map<number, number>();
    for (let row = 0; row < events.count; row++) {
      const rank = events.rank[row];
      let track = tracks.get(rank);
      if (track === undefined) {
        track = this.#track('events', rankTracks.get(rank)!, 999, false);
        tracks.set(rank, track);
      }
      const name = eventKindNames[events.kind[row]] ?? `event ${events.kind[row]}`;
      this.#begin(events.time[row], Type.instant, track, name, 'event');
      if (events.bytes[row] > 0) this.#annotate('bytes', events.bytes[row]);
      if (events.datum[row] >= 0)
        this.#annotate('datum', datumName(this.#trace, events.datum[row]));
      if (events.text[row] !== '') this.#annotate('text', events.text[row]);
      this.#finish();
    }
  }

  // Packets.

  #begin(time: number, type: number, track: number, name: string, category: string): void {
    const nameId = this.#intern(this.#names, name, 2);
    const categoryId = this.#intern(this.#categoryNames, category, 1);
    const proto = this.#proto;
    this.#open(time);
    proto.begin(Packet.event);
    proto.uint(Event.type, type);
    proto.uint(Event.track, track);
    proto.uint(Event.nameId, nameId);
    proto.uint(Event.categories, categoryId);
  }

  #finish(): void {
    const proto = this.#proto;
    proto.end();
    proto.end();
    this.#output.raw(proto.take());
    proto.clear();
  }

  #sliceEnd(time: number, track: number): void {
    this.#open(time);
    this.#proto.begin(Packet.event);
    this.#proto.uint(Event.type, Type.end);
    this.#proto.uint(Event.track, track);
    this.#finish();
  }

  #counter(time: number, track: number, value: number): void {
    this.#open(time);
    this.#proto.begin(Packet.event);
    this.#proto.uint(Event.type, Type.counter);
    this.#proto.uint(Event.track, track);
    this.#proto.double(Event.value, value);
    this.#finish();
  }

  #open(time?: number): void {
    const proto = this.#proto;
    proto.begin(1);
    if (time !== undefined) proto.uint(Packet.timestamp, time - this.#trace.start);
    proto.uint(Packet.sequence, SEQUENCE);
    // 1: the names of earlier packets are void; 2: this packet needs names of earlier ones.
    proto.uint(Packet.flags, this.#started ? 2 : 3);
    this.#started = true;
  }

  #annotate(name: string, value: number | string): void {
    // A name cannot be interned in the middle of a packet: all of them are sent at the start.
    const proto = this.#proto;
    proto.begin(Event.annotations);
    proto.uint(Annotation.nameId, this.#annotationNames.get(name)!);
    if (typeof value === 'string') proto.string(Annotation.string, value);
    else proto.uint(Annotation.uint, value);
    proto.end();
  }

  // Interned names are sent in a packet of their own before their first use. Fields of InternedData: 1 categories,
  // 2 event names, 3 annotation names; each entry has iid = 1 and name = 2.
  #intern(table: Map<string, number>, name: string, field: number): number {
    const known = table.get(name);
    if (known !== undefined) return known;
    const id = table.size + 1;
    table.set(name, id);
    this.#open();
    const proto = this.#proto;
    proto.begin(Packet.interned);
    proto.begin(field);
    proto.uint(1, id);
    proto.string(2, name);
    proto.end();
    this.#finish();
    return id;
  }

  // Track descriptors.

  #rootTrack(): void {
    // The root with explicit process ordering makes ranks appear in rank order.
    this.#open();
    const proto = this.#proto;
    proto.begin(Packet.track);
    proto.uint(Track.uuid, 0);
    proto.uint(Track.childOrdering, EXPLICIT);
    proto.uint(Track.processOrdering, 1);
    this.#finish();
    for (const name of [
      'task',
      'parameters',
      'outcome',
      'plan',
      'iteration',
      ...stageNames.map((stage) => `${stage} ns`),
      'bytes',
      'reason',
      'datum',
      'version',
      'waited ns',
      'peer rank',
      'message',
      'text',
    ]) {
      this.#intern(this.#annotationNames, name, 3);
    }
  }

  #processTrack(rank: number, name: string): number {
    const uuid = this.#nextTrack++;
    const proto = this.#proto;
    this.#open();
    proto.begin(Packet.track);
    proto.uint(Track.uuid, uuid);
    proto.string(Track.name, name);
    proto.begin(Track.process);
    proto.uint(1, rank + 1);
    proto.string(6, name);
    proto.end();
    proto.uint(Track.childOrdering, EXPLICIT);
    proto.uint(Track.rank, rank);
    this.#finish();
    return uuid;
  }

  #track(name: string, parent: number, order: number, hasChildren: boolean): number {
    const uuid = this.#nextTrack++;
    const proto = this.#proto;
    this.#open();
    proto.begin(Packet.track);
    proto.uint(Track.uuid, uuid);
    proto.string(Track.name, name);
    proto.uint(Track.parent, parent);
    proto.uint(Track.rank, order);
    if (hasChildren) proto.uint(Track.childOrdering, EXPLICIT);
    this.#finish();
    return uuid;
  }

  // CounterDescriptor.unit (3): 2 = count, 3 = bytes.
  #counterTrack(name: string, parent: number, order: number, bytes: boolean): number {
    const uuid = this.#nextTrack++;
    const proto = this.#proto;
    this.#open();
    proto.begin(Packet.track);
    proto.uint(Track.uuid, uuid);
    proto.string(Track.name, name);
    proto.uint(Track.parent, parent);
    proto.uint(Track.rank, 500 + order);
    proto.begin(Track.counter);
    proto.uint(3, bytes ? 3 : 2);
    proto.end();
    this.#finish();
    return uuid;
  }
}
