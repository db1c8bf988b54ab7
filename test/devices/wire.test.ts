// Records on the wire: every record arrives at its rank, word by word and in order, for every packing into messages and
// also when the port often has no room.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { eachRecord, payloadOf, textOf, WireWriter } from '../../devices/network/wire.js';
import { RecordingPort } from '../support/recording-port.js';

interface Written {
  readonly rank: number;
  readonly kind: number;
  readonly fields: readonly number[];
  readonly text: string;
}

/** Any text JavaScript has: characters of one unit and of two, and halves of pairs alone. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 40 })
    .map((units) => String.fromCharCode(...units)),
  fc.constantFrom('', '\ufeffmarked', '\ud83d\ude00', '\ude00\ud83d', 'a\0b'),
);
const record: fc.Arbitrary<Written> = fc.record({
  rank: fc.nat({ max: 2 }),
  kind: fc.integer({ min: 1, max: 40 }),
  fields: fc.array(fc.double(), { maxLength: 6 }),
  text,
});
const step = fc.oneof(
  { arbitrary: record, weight: 6 },
  { arbitrary: fc.constant('flush' as const), weight: 2 },
  { arbitrary: fc.record({ room: fc.nat({ max: 3 }) }), weight: 1 },
);

/** UTF-8 has no halves of pairs: they become the replacement character. */
const asUtf8 = (value: string): string => Buffer.from(value, 'utf8').toString('utf8');

/** What arrives, per rank in the order posted. */
function arrived(
  port: RecordingPort,
  fieldsOf: (rank: number, nth: number) => number,
): Written[][] {
  const found: Written[][] = Array.from({ length: port.size }, () => []);
  for (const { rank, bytes } of port.posted) {
    expect(bytes.length).toBeLessThanOrEqual(port.longestMessage);
    eachRecord(bytes, (next) => {
      const fields = fieldsOf(rank, found[rank].length);
      const { kind, words, at } = next;
      found[rank].push({
        rank,
        kind,
        fields: Array.from(words.subarray(at + 2, at + 2 + fields)),
        text: textOf(next, fields),
      });
    });
  }
  return found;
}

describe('records', () => {
  it('arrive as written, in order, whatever is in them and whenever the port is full', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
        const port = new RecordingPort({ size: 3, longestMessage: 512 });
        const wire = new WireWriter(port);
        const written: Written[][] = [[], [], []];
        for (const next of steps) {
          if (next === 'flush') wire.flush();
          else if ('room' in next) port.room = next.room;
          else {
            wire.write(next.rank, next.kind, next.fields, next.text);
            written[next.rank].push({ ...next, text: asUtf8(next.text) });
          }
        }
        expect(wire.records).toBe(written.flat().length);
        port.room = Number.POSITIVE_INFINITY;
        wire.flush();
        expect(wire.unsent).toBe(0);
        expect(arrived(port, (rank, nth) => written[rank][nth].fields.length)).toEqual(written);
        // Everything is sent: a further flush has nothing to say.
        const { length } = port.posted;
        wire.flush();
        expect(port.posted).toHaveLength(length);
      }),
      { numRuns: 200 },
    );
  });

  it('to one rank travel in one message until it is full', () => {
    const port = new RecordingPort({ longestMessage: 8 * 20 });
    const wire = new WireWriter(port);
    // Kind, length, two fields and the length of the text: five words each.
    for (let i = 0; i < 9; i++) wire.write(1, 2, [i, i]);
    wire.write(3, 2, [0, 0]);
    expect(port.posted.map(({ rank, bytes }) => [rank, bytes.length / 8])).toEqual([
      [1, 20],
      [1, 20],
    ]);
    wire.flush();
    expect(port.posted.map(({ rank, bytes }) => [rank, bytes.length / 8])).toEqual([
      [1, 20],
      [1, 20],
      [1, 5],
      [3, 5],
    ]);
  });

  it('that the port has no room for wait, and later ones behind them', () => {
    const port = new RecordingPort();
    const wire = new WireWriter(port);
    port.room = 1;
    for (const field of [1, 2, 3]) {
      wire.write(1, 2, [field]);
      wire.flush();
    }
    expect([port.posted.length, wire.unsent]).toEqual([1, 2]);
    port.room = 1;
    wire.write(1, 2, [4]);
    wire.flush();
    expect([port.posted.length, wire.unsent]).toEqual([2, 2]);
    port.room = 9;
    wire.flush();
    expect(arrived(port, () => 1)[1].map(({ fields }) => fields[0])).toEqual([1, 2, 3, 4]);
  });

  it('fill a message to the last byte', () => {
    const port = new RecordingPort({ longestMessage: 256 });
    const wire = new WireWriter(port);
    const bytes = port.longestMessage - 4 * 8;
    wire.write(1, 2, [1]);
    const at = wire.begin(1, 9, 4, bytes);
    const payload = Uint8Array.from({ length: bytes }, (_, i) => 255 - i);
    wire.words(1).set([5, 6], at + 2);
    wire.payload(1, at + 4, bytes).set(payload);
    wire.flush();
    expect(port.posted.map((message) => message.bytes.length)).toEqual([4 * 8, 256]);
    const seen: unknown[] = [];
    eachRecord(port.posted[1].bytes, (next) => {
      seen.push(next.kind, next.words[next.at + 3], payloadOf(next, next.at + 4, bytes));
    });
    expect(seen).toEqual([9, 6, payload]);
  });

  it('carry payloads whose length is no whole number of words', () => {
    const port = new RecordingPort();
    const wire = new WireWriter(port);
    for (let bytes = 0; bytes < 20; bytes++) {
      const at = wire.begin(2, 1, 3, bytes);
      wire.words(2)[at + 2] = bytes;
      wire.payload(2, at + 3, bytes).fill(bytes);
    }
    wire.flush();
    const lengths: number[] = [];
    eachRecord(port.posted[0].bytes, (next) => {
      const bytes = next.words[next.at + 2];
      lengths.push(bytes);
      expect([...payloadOf(next, next.at + 3, bytes)]).toEqual(new Array(bytes).fill(bytes));
    });
    expect(lengths).toEqual(Array.from({ length: 20 }, (_, i) => i));
  });

  it.each([
    ['of one unit', 'x'.repeat(40_000)],
    ['of three bytes', '\u20ac'.repeat(40_000)],
    ['of two units', '\ud83d\ude00'.repeat(20_000)],
    ['of two units, the cut between them', `x${'\ud83d\ude00'.repeat(20_000)}`],
  ])('carry the beginning of a text that is too long, with characters %s', (_, long) => {
    const port = new RecordingPort();
    const wire = new WireWriter(port);
    wire.write(1, 8, [7], long);
    wire.write(1, 8, [8], 'next');
    wire.flush();
    const [cut, next] = arrived(port, () => 1)[1];
    expect(long.startsWith(cut.text)).toBe(true);
    expect(cut.text.length).toBeGreaterThan(15_000);
    expect([next.fields, next.text]).toEqual([[8], 'next']);
  });
});
