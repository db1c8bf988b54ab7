// A small decoder of Perfetto traces, written from the protobuf wire format and the public .proto files, sharing
// nothing with the encoder: messages become maps from field number to values, then tracks, slices and flows.

type Value = bigint | number | Uint8Array;
type Message = Map<number, Value[]>;

function decodeMessage(bytes: Uint8Array): Message {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const fields: Message = new Map();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      if (at >= bytes.length || shift > 63n) throw new Error('bad varint');
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asUintN(64, value);
    }
  };
  while (at < bytes.length) {
    const key = Number(varint());
    const field = key >> 3;
    let value: Value;
    if ((key & 7) === 0) {
      value = varint();
    } else if ((key & 7) === 1) {
      value = view.getBigUint64(at, true);
      at += 8;
    } else if ((key & 7) === 2) {
      const length = Number(varint());
      if (at + length > bytes.length) throw new Error('message longer than its parent');
      value = bytes.subarray(at, at + length);
      at += length;
    } else {
      throw new Error(`wire type ${key & 7}`);
    }
    fields.set(field, [...(fields.get(field) ?? []), value]);
  }
  return fields;
}

const number = (message: Message, field: number): number | undefined => {
  const value = message.get(field)?.[0];
  return typeof value === 'bigint' ? Number(value) : undefined;
};
const text = (message: Message, field: number): string | undefined => {
  const value = message.get(field)?.[0];
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : undefined;
};
const messages = (message: Message, field: number): Message[] =>
  (message.get(field) ?? []).map((value) => decodeMessage(value as Uint8Array));
const double = (bits: bigint): number => {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, bits);
  return view.getFloat64(0);
};

interface DecodedTrack {
  readonly name: string;
  readonly parent: number | undefined;
  readonly order: number | undefined;
  readonly process: { pid: number; name: string } | undefined;
  readonly counterUnit: number | undefined;
  readonly explicit: boolean;
}

interface DecodedSlice {
  readonly track: number;
  readonly name: string;
  readonly category: string;
  readonly start: number;
  end: number;
  readonly correlation: number | undefined;
  readonly args: Record<string, string | number>;
  readonly flows: number[];
  readonly ends: number[];
}

interface DecodedTrace {
  readonly tracks: Map<number, DecodedTrack>;
  readonly slices: DecodedSlice[];
  readonly instants: DecodedSlice[];
  readonly counters: { track: number; time: number; value: number }[];
  /** Pairs of slices joined by a flow id, in time order, as Perfetto joins them. */
  readonly arrows: [DecodedSlice, DecodedSlice][];
}

/** Decodes a trace and checks what Perfetto requires: known tracks, interned names, nesting, matching ends. */
export function decodePerfetto(bytes: Uint8Array): DecodedTrace {
  const tracks = new Map<number, DecodedTrack>();
  const names = new Map<number, string>();
  const categories = new Map<number, string>();
  const annotations = new Map<number, string>();
  const events: { time: number; event: Message; at: number }[] = [];
  const trace = decodeMessage(bytes);
  if ([...trace.keys()].some((field) => field !== 1)) throw new Error('not a Trace');
  messages(trace, 1).forEach((packet, index) => {
    if (number(packet, 10) !== 1) throw new Error('packet without a sequence');
    const flags = number(packet, 13);
    if (flags !== (index === 0 ? 3 : 2)) throw new Error(`sequence flags ${flags}`);
    for (const interned of messages(packet, 12)) {
      const tables: [number, Map<number, string>][] = [
        [1, categories],
        [2, names],
        [3, annotations],
      ];
      for (const [field, table] of tables) {
        for (const entry of messages(interned, field)) {
          if (!number(entry, 1)) throw new Error('interned id 0 is not valid');
          table.set(number(entry, 1)!, text(entry, 2)!);
        }
      }
    }
    for (const track of messages(packet, 60)) {
      const uuid = number(track, 1)!;
      if (tracks.has(uuid)) throw new Error('track described twice');
      const [process] = messages(track, 3);
      const [counter] = messages(track, 8);
      tracks.set(uuid, {
        name: text(track, 2) ?? '',
        parent: number(track, 5),
        order: number(track, 12),
        process: process && { pid: number(process, 1)!, name: text(process, 6)! },
        counterUnit: counter && number(counter, 3),
        explicit: number(track, 11) === 3,
      });
    }
    for (const event of messages(packet, 11)) {
      events.push({ time: number(packet, 8)!, event, at: index });
      // Names must have been sent in this packet or before.
      if (event.has(10) && !names.has(number(event, 10)!)) throw new Error('name not interned yet');
    }
  });

  // Perfetto sorts by time, stable by position in the file.
  events.sort((a, b) => a.time - b.time || a.at - b.at);
  const slices: DecodedSlice[] = [];
  const instants: DecodedSlice[] = [];
  const counters: DecodedTrace['counters'] = [];
  const arrows: DecodedTrace['arrows'] = [];
  const open = new Map<number, DecodedSlice[]>();
  const active = new Map<number, DecodedSlice>();
  for (const { time, event } of events) {
    const track = number(event, 11)!;
    if (!tracks.has(track)) throw new Error(`event on unknown track ${track}`);
    const type = number(event, 9);
    if (type === 4) {
      counters.push({ track, time, value: double(event.get(44)![0] as bigint) });
      continue;
    }
    const stack = open.get(track) ?? [];
    open.set(track, stack);
    if (type === 2) {
      const slice = stack.pop();
      if (!slice) throw new Error('end without a begin');
      slice.end = time;
      continue;
    }
    const args: Record<string, string | number> = {};
    for (const annotation of messages(event, 4)) {
      const key = annotations.get(number(annotation, 1)!);
      if (key === undefined) throw new Error('annotation name not interned');
      args[key] = text(annotation, 6) ?? number(annotation, 3)!;
    }
    const ids = (field: number): number[] => (event.get(field) ?? []).map(Number);
    const slice: DecodedSlice = {
      track,
      name: names.get(number(event, 10)!)!,
      category: categories.get(number(event, 3)!)!,
      start: time,
      end: Number.NaN,
      correlation: number(event, 52),
      args,
      flows: ids(47),
      ends: ids(48),
    };
    if (type === 3) {
      instants.push(slice);
      continue;
    }
    if (stack.length > 0) throw new Error(`slices overlap on track ${tracks.get(track)!.name}`);
    stack.push(slice);
    slices.push(slice);
    for (const id of slice.flows) {
      if (active.has(id)) throw new Error('flow id used twice');
      active.set(id, slice);
    }
    for (const id of slice.ends) {
      const from = active.get(id);
      if (!from) throw new Error('flow ends before it begins');
      active.delete(id);
      arrows.push([from, slice]);
    }
  }
  for (const stack of open.values()) if (stack.length > 0) throw new Error('slice without an end');
  if (active.size > 0) throw new Error(`${active.size} flows never end`);
  return { tracks, slices, instants, counters, arrows };
}
