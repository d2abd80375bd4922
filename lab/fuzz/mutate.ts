import type { Random } from "./random.ts";

/** What a mutation may draw from. */
export interface Material {
  /** Pieces of the target's language, as bytes. */
  readonly words: readonly Uint8Array[];
  /** Another input that was kept, to take pieces from. */
  readonly other: Uint8Array;
  /** Longest result, in bytes. */
  readonly maxBytes: number;
}

type Step = (input: Buffer, material: Material, random: Random) => Buffer;

const MOST_STEPS = 6;
const MOST_REPEATS = 64;

/** A changed copy of an input: one to six small changes, no longer than the material allows. */
export function mutate(input: Uint8Array, material: Material, random: Random): Buffer {
  let bytes: Buffer = Buffer.from(input);
  // Every other time only one: more of them mostly undo what had come far.
  const steps = random.below(2) === 0 ? 1 : 1 + random.below(MOST_STEPS);
  for (let step = 0; step < steps; step++) bytes = random.pick(STEPS)(bytes, material, random);
  return bytes.subarray(0, material.maxBytes);
}

/** Bytes at which parsers branch: quotes, brackets, separators, controls, the borders of UTF-8. */
const TELLING = Buffer.from(" \t\r\n\0\"'\\/[]{}(),;:=&%+-.#?eE019aZ\x1e\x7f\x80\xbf\xc0\xc3\xed\xf4\xff", "latin1");
const NUMBERS = [
  "0",
  "-0",
  "1e400",
  "1E-400",
  "9007199254740993",
  "0.1000000000000000055",
  "4294967296",
  "00",
  "1e10001",
];

const flipBit: Step = (input, _, random) => {
  const at = random.below(input.length);
  if (input.length > 0) input.writeUInt8(input.readUInt8(at) ^ (1 << random.below(8)), at);
  return input;
};

const setByte: Step = (input, _, random) => {
  if (input.length > 0) input.writeUInt8(random.pick([...TELLING]), random.below(input.length));
  return input;
};

const setAnyByte: Step = (input, _, random) => {
  if (input.length > 0) input.writeUInt8(random.below(256), random.below(input.length));
  return input;
};

const insertByte: Step = (input, _, random) => inserted(input, Buffer.from([random.pick([...TELLING])]), random);

const insertAnyByte: Step = (input, _, random) => inserted(input, Buffer.from([random.below(256)]), random);

const insertWord: Step = (input, { words }, random) =>
  words.length === 0 ? input : inserted(input, Buffer.from(random.pick(words)), random);

const insertOther: Step = (input, { other }, random) => inserted(input, Buffer.from(slice(other, random)), random);

const insertNumber: Step = (input, _, random) => inserted(input, Buffer.from(random.pick(NUMBERS)), random);

const repeat: Step = (input, { maxBytes }, random) => {
  const piece = slice(input, random);
  const times = Math.min(1 + random.below(MOST_REPEATS), Math.ceil(maxBytes / Math.max(1, piece.length)));
  return inserted(input, Buffer.concat(Array.from({ length: times }, () => piece)), random);
};

const remove: Step = (input, _, random) => {
  const at = random.below(input.length);
  const length = 1 + random.below(Math.min(16, input.length - at));
  return Buffer.concat([input.subarray(0, at), input.subarray(at + length)]);
};

const cut: Step = (input, _, random) => Buffer.from(input.subarray(0, random.below(input.length + 1)));

const swap: Step = (input, _, random) => {
  const [first = 0, second = 0, third = 0] = [0, 0, 0].map(() => random.below(input.length + 1)).sort((a, b) => a - b);
  const parts = [
    input.subarray(0, first),
    input.subarray(second, third),
    input.subarray(first, second),
    input.subarray(third),
  ];
  return Buffer.concat(parts);
};

const STEPS: readonly Step[] = [
  ...[flipBit, setByte, setAnyByte, insertByte, insertAnyByte, insertWord, insertWord],
  ...[insertOther, insertNumber, repeat, remove, remove, cut, swap],
];

function slice(input: Uint8Array, random: Random): Uint8Array {
  const at = random.below(input.length);
  return input.subarray(at, at + 1 + random.below(Math.min(64, input.length - at)));
}

function inserted(input: Buffer, piece: Buffer, random: Random): Buffer {
  const at = random.below(input.length + 1);
  return Buffer.concat([input.subarray(0, at), piece, input.subarray(at)]);
}
