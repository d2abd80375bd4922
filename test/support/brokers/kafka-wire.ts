/** Kafka's primitive types, https://kafka.apache.org/protocol.html#protocol_types, as far as the endpoint needs them. */

/** Reads primitives off a buffer, one after the other. */
export class WireReader {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  get left(): number {
    return this.#buffer.length - this.#at;
  }

  int8(): number {
    return this.#buffer.readInt8(this.#forward(1));
  }

  int16(): number {
    return this.#buffer.readInt16BE(this.#forward(2));
  }

  int32(): number {
    return this.#buffer.readInt32BE(this.#forward(4));
  }

  uint32(): number {
    return this.#buffer.readUInt32BE(this.#forward(4));
  }

  int64(): bigint {
    return this.#buffer.readBigInt64BE(this.#forward(8));
  }

  /** Zigzag, base 128. */
  varint(): number {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = BigInt(this.#buffer.readUInt8(this.#forward(1)));
      value |= (byte & 0x7fn) << shift;
      if ((byte & 0x80n) === 0n) break;
    }
    return Number((value >> 1n) ^ -(value & 1n));
  }

  string(): string | null {
    const length = this.int16();
    return length < 0 ? null : this.take(length).toString();
  }

  bytes(): Buffer {
    return this.take(Math.max(0, this.int32()));
  }

  varBytes(): Buffer | null {
    const length = this.varint();
    return length < 0 ? null : this.take(length);
  }

  array<T>(read: () => T): T[] {
    return Array.from({ length: Math.max(0, this.int32()) }, read);
  }

  take(length: number): Buffer {
    const from = this.#forward(length);
    return this.#buffer.subarray(from, from + length);
  }

  #forward(length: number): number {
    const from = this.#at;
    this.#at += length;
    return from;
  }
}

export function int8(value: number): Buffer {
  const bytes = Buffer.alloc(1);
  bytes.writeInt8(value);
  return bytes;
}

export function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

export function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

export function int64(value: bigint | number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
}

export function string(value: string | null): Buffer {
  if (value === null) return int16(-1);
  return Buffer.concat([int16(Buffer.byteLength(value)), Buffer.from(value)]);
}

export function bytes(value: Buffer): Buffer {
  return Buffer.concat([int32(value.length), value]);
}

export function array<T>(values: readonly T[], write: (value: T) => Buffer): Buffer {
  return Buffer.concat([int32(values.length), ...values.map(write)]);
}
