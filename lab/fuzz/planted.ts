/**
 * Faults planted on purpose, one for each thing that the fuzzer claims to see. A campaign that misses one of them has shown
 * nothing of the others.
 */
import { canonicalJson } from "../../src/core/json/canonical.ts";
import { parseJson } from "../../src/core/json/parse.ts";
import { Finding, outcomeOf } from "./finding.ts";
import { type FuzzTarget, repeated } from "./target.ts";
import { jsonTarget } from "./target-json.ts";

const nothing = { words: [], properties: [], families: [], seeds: [Buffer.from("start")] };

// Four branches deep: found by what each of them reaches, practically never by chance.
function maze(input: Uint8Array): void {
  if (input[0] !== 0x7a) return;
  if (input[1] !== 0x71) return;
  if (input[2] !== 0x39) return;
  if (input[3] === 0x21) throw new TypeError("the middle of the maze");
}

const deep: FuzzTarget = {
  ...nothing,
  name: "a crash behind four branches",
  about: "found only by coverage",
  run: maze,
  try: (input) => (outcomeOf([], () => maze(input)).kind === "value" ? "accepted" : "refused"),
};

// What JSON.parse makes of a number that a double does not hold.
const rounded: FuzzTarget = {
  ...jsonTarget,
  name: "numbers that went through a double",
  about: "found only by the reference",
  properties: [],
  families: [],
  try(input) {
    const at = input.indexOf(0x1e);
    if (at === -1) return "refused";
    const forms = [input.subarray(0, at), input.subarray(at + 1)].map((text) => {
      const exact = outcomeOf(["idempotency_request_invalid"], () =>
        Buffer.from(canonicalJson(parseJson(text))).toString(),
      );
      return exact.kind === "value" ? [exact.value, JSON.stringify(JSON.parse(exact.value))] : null;
    });
    const [one, other] = forms;
    if (one && other && one[1] === other[1] && one[0] !== other[0]) throw new Finding("two values have one form");
    return "accepted";
  },
};

const counted: FuzzTarget = {
  ...nothing,
  name: "quadratic work",
  about: "found by counting blocks",
  run: slowBlocks,
  try: () => "accepted",
  families: [repeated("spaces", "x", " ")],
};

function slowBlocks(input: Uint8Array): number {
  let pairs = 0;
  for (const one of input) for (const other of input) if (one === other) pairs++;
  return pairs;
}

const timed: FuzzTarget = {
  ...nothing,
  name: "a quadratic regular expression",
  about: "found by its time: the engine counts no blocks in there",
  run: (input) => /^x:[ \t]*([^\r\n]*)$/.exec(Buffer.from(input).toString("latin1")),
  try: () => "accepted",
  families: [repeated("spaces before a line feed", "x:", " ", "\n")],
};

const hanging: FuzzTarget = {
  ...nothing,
  name: "an input that hangs",
  about: "found from outside",
  run: () => {},
  try(input) {
    for (;;) if (input.length < 6) return "accepted";
  },
};

/** The planted faults. */
export const targets: readonly FuzzTarget[] = [deep, rounded, counted, timed, hanging];

/** How each must be told: seen for another reason it would show nothing. In the order of {@link targets}. */
export const tellings: readonly RegExp[] = [
  /middle of the maze/,
  /two values have one form/,
  /times the work/,
  /times as long/,
  /an input hangs/,
];
