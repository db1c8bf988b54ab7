// A protobuf writer of the few things a Perfetto trace needs: varints, fixed64, doubles, strings, nested messages.
// Wire format: https://protobuf.dev/programming-guides/encoding/

const encoder = new TextEncoder();

/** Builds one message after another in a growing buffer. Nesting: `begin` and `end` around the fields. */
export class ProtoWriter {
  #bytes: Uint8Array = new Uint8Array(4096);
  #view: DataView = new DataView(this.#bytes.buffer);
  #at = 0;
  readonly #open: number[] = [];

  /** The bytes since the last `clear`, valid until the next write. */
  take(): Uint8Array {
    return this.#bytes.subarray(0, this.#at);
  }

  clear(): void {
    this.#at = 0;
  }

  /** A non-negative whole number (up to 2^53) as varint. */
  uint(field: number, value: number): void {
    this.#room(20);
    this.#varint(field << 3);
    this.#varint(value);
  }

  /** A signed whole number as int32/int64 varint: negative ones take ten bytes. */
  int(field: number, value: number): void {
    if (value >= 0) {
      this.uint(field, value);
      return;
    }
    this.#room(20);
    this.#varint(field << 3);
    let rest = BigInt.asUintN(64, BigInt(value));
    while (rest > 127n) {
      this.#bytes[this.#at++] = Number(rest & 127n) | 128;
      rest >>= 7n;
    }
    this.#bytes[this.#at++] = Number(rest);
  }

  fixed64(field: number, value: number): void {
    this.#room(20);
    this.#varint((field << 3) | 1);
    this.#view.setUint32(this.#at, value >>> 0, true);
    this.#view.setUint32(this.#at + 4, Math.floor(value / 4294967296), true);
    this.#at += 8;
  }

  double(field: number, value: number): void {
    this.#room(20);
    this.#varint((field << 3) | 1);
    this.#view.setFloat64(this.#at, value, true);
    this.#at += 8;
  }

  string(field: number, text: string): void {
    this.#room(20 + text.length * 3);
    this.#varint((field << 3) | 2);
    // Short texts need one byte of length; longer ones are encoded aside.
    if (text.length * 3 < 128) {
      const { written } = encoder.encodeInto(text, this.#bytes.subarray(this.#at + 1));
      this.#bytes[this.#at] = written;
      this.#at += 1 + written;
      return;
    }
    const bytes = encoder.encode(text);
    this.#varint(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  /** Opens a nested message. Its length takes four bytes, a redundant but valid varint, so no bytes move. */
  begin(field: number): void {
    this.#room(20);
    this.#varint((field << 3) | 2);
    this.#open.push(this.#at);
    this.#at += 4;
  }

  end(): void {
    const start = this.#open.pop()!;
    const length = this.#at - start - 4;
    this.#bytes[start] = (length & 127) | 128;
    this.#bytes[start + 1] = ((length >>> 7) & 127) | 128;
    this.#bytes[start + 2] = ((length >>> 14) & 127) | 128;
    this.#bytes[start + 3] = (length >>> 21) & 127;
  }

  #varint(value: number): void {
    let rest = value;
    while (rest > 127) {
      this.#bytes[this.#at++] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
    }
    this.#bytes[this.#at++] = rest;
  }

  #room(more: number): void {
    if (this.#at + more <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(this.#bytes.length * 2, this.#at + more));
    larger.set(this.#bytes);
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
  }
}
