import fc from "fast-check";
import type { Random } from "./random.ts";

/** What one input came to where nothing is wrong with the code under test. */
export type Verdict = "accepted" | "refused";

/** Inputs of one kind that grow: what a sender would choose to make a careless parser slow. */
export interface Family {
  readonly name: string;
  /** An input of about `size` bytes. */
  make(size: number): Uint8Array;
}

/** A property over structured values. Raises a `Finding`, or fast-check's own error with the smallest counterexample. */
export interface Property {
  readonly name: string;
  check(runs: { readonly seed: number; readonly numRuns: number }): void | Promise<void>;
}

/** One thing that reads what others wrote. */
export interface FuzzTarget {
  /** Names it on the command line and in figures. */
  readonly name: string;
  /** One line: what is read, and what it is held against. */
  readonly about: string;
  /** Whole inputs to start from, vectors among them. */
  readonly seeds: readonly Uint8Array[];
  /** Pieces of the language, put in by mutations. */
  readonly words: readonly string[];
  /** Makes a new input out of nothing. Default: mutations of what is kept only. */
  readonly generate?: (random: Random) => Uint8Array;
  /** Longest mutated input, in bytes. Default 4,096. */
  readonly maxBytes?: number;
  /** Runs the code under test alone, for its time and its blocks; refusals are of no interest. */
  run(input: Uint8Array): unknown;
  /** Runs it and holds the result against the reference. Raises a `Finding`. */
  try(input: Uint8Array): Verdict | Promise<Verdict>;
  readonly properties: readonly Property[];
  readonly families: readonly Family[];
}

/** A property of fast-check under a name. */
export function propertyOf<T>(
  name: string,
  property: fc.IProperty<T> | fc.IAsyncProperty<T> | fc.IPropertyWithHooks<T> | fc.IAsyncPropertyWithHooks<T>,
): Property {
  return { name, check: (runs) => fc.assert(property as fc.IProperty<T>, runs) };
}

/** A family that repeats a piece between two ends. */
export function repeated(name: string, before: string, piece: string, after = ""): Family {
  const length = Buffer.byteLength(piece);
  return { name, make: (size) => Buffer.from(before + piece.repeat(Math.ceil(size / length)) + after) };
}

/** A family whose pieces are numbered. */
export function numbered(name: string, before: string, piece: (index: number) => string, after = ""): Family {
  return {
    name,
    make(size) {
      const pieces: string[] = [];
      for (let length = 0; length < size; ) {
        const next = piece(pieces.length);
        pieces.push(next);
        length += next.length;
      }
      return Buffer.from(before + pieces.join("") + after);
    },
  };
}

/** UTF-8 bytes of each text. */
export function bytesOfAll(texts: readonly string[]): Buffer[] {
  return texts.map((text) => Buffer.from(text));
}
