import type { Survivor } from "./score.ts";

/** A survivor that was looked at and is no gap in the tests. */
export interface Explained extends Pick<Survivor, "file" | "from" | "to"> {
  /** What its line holds; default: any line of the file. */
  readonly on?: string;
  readonly why: string;
}

/** Mutants that mean the same as the original, each with the reason. */
const EXPLAINED: readonly Explained[] = [
  {
    file: "src/core/entry.ts",
    from: "entry.outcome === null",
    to: "false",
    why: "asked twice, once for the rule and once for the type: either one alone decides",
  },
  {
    file: "src/core/scope.ts",
    on: 'client ?? ""',
    from: '""',
    to: '"Stryker was here!"',
    why: "stands for an absent client in a loop that only refuses what is too long or ill-formed",
  },
  {
    file: "src/core/identity.ts",
    on: 'keySpace = "operation"',
    from: '"operation"',
    to: '""',
    why: "the default is only compared with `account`",
  },
  {
    file: "src/core/sequence.ts",
    from: "sequence < expected",
    to: "sequence <= expected",
    why: "equal numbers were accepted a line before",
  },
  {
    file: "src/core/framing.ts",
    from: "at < DIGEST_LENGTH",
    to: "at <= DIGEST_LENGTH",
    why: "a byte behind the end of a typed array is not written",
  },
  ...["false", "most < scratch.length"].map((to) => ({
    file: "src/core/framing.ts",
    from: "most <= scratch.length",
    to,
    why: "memory of its own holds the same frame",
  })),
  {
    file: "src/core/framing.ts",
    on: "UTF8_BYTES",
    from: 'typeof part === "string"',
    to: "true",
    why: "more memory than bytes take holds the same frame",
  },
  ...[
    ["version === undefined || secretId === undefined", "false"],
    ["version === undefined || secretId === undefined", "version === undefined && secretId === undefined"],
    ["version === undefined", "false"],
    ["secretId === undefined", "false"],
  ].map(([from = "", to = ""]) => ({
    file: "src/core/fingerprint.ts",
    from,
    to,
    why: "asked for the types: a form that lacks one of them is not understood either",
  })),
  {
    file: "src/core/json/canonical.ts",
    from: "a < b",
    to: "a <= b",
    why: "names of members are distinct",
  },
  {
    file: "src/core/json/number.ts",
    from: "value < 0n",
    to: "value <= 0n",
    why: "zero has no sign, and no digit that would be cut off",
  },
  {
    file: "src/core/json/number.ts",
    on: "Math.abs(point - 1)",
    from: "point > 0",
    to: "point >= 0",
    why: "a point at 0 was spelled out two lines before",
  },
  ...[
    ["form.query.length === 0", "false"],
    ["headers.length === 0", "false"],
    ['!path.includes("%")', "false"],
    ['"%"', '""', '!path.includes("%")'],
  ].map(([from = "", to = "", on = from]) => ({
    file: "src/core/request-form.ts",
    on,
    from,
    to,
    why: "a short way, which gives what the long one does",
  })),
  ...["true", "plain.length <= chunk.length"].map((to) => ({
    file: "src/core/body-cipher.ts",
    from: "plain.length < chunk.length",
    to,
    why: "an empty piece adds nothing to the tag",
  })),
  {
    file: "src/core/cipher.ts",
    on: "createCipheriv",
    from: "{ authTagLength: TAG_LENGTH }",
    to: "{}",
    why: "so long is a tag that is made by itself; only where one is read must its length be said",
  },
  {
    file: "src/core/stored-outcome.ts",
    from: "stored.length < at + 4",
    to: "stored.length <= at + 4",
    why: "with nothing behind their length there are no headers, which is refused as well",
  },
  {
    file: "src/core/stored-outcome.ts",
    from: "{ // Not handed on as the cause: V8 quotes the text in its message. throw broken(); }",
    to: "{}",
    why: "nothing is no list of headers either, and refused in the same words",
  },
  {
    file: "src/core/json/canonical.ts",
    on: "MAX_VALUE_DEPTH",
    from: 'typeof value !== "object"',
    to: "false",
    why: "text holds nothing but text: it is walked in vain, and no number is found in it",
  },
  ...[
    "startsWith(word",
    "char >= 0x20",
    "ESCAPED.includes",
    "MOST_DIGITS",
    "end === point + 1",
    "MOST_LEADING_ZEROS",
    "start !== walk.at",
  ].map((on) => ({
    file: "src/core/json/plain.ts",
    on,
    from: "false",
    to: "true",
    why: "the walk has not moved: it stands where no value ends, and whoever asked for one stops there",
  })),
  {
    file: "src/core/json/plain.ts",
    on: "escaped: false,",
    from: "false",
    to: "true",
    why: "set anew for each string; it is there from the start so that all walks have one shape",
  },
  ...[
    ["spaced || unsorted", "true"],
    ["plain.spaced", "true"],
    ["char === 0x7b || char === 0x5b", "true"],
    ["names.length > FEW", "true"],
    ["names.length > FEW", "names.length >= FEW"],
    ["members.length > MOST_MOVED", "true"],
    ["members.length > MOST_MOVED", "members.length >= MOST_MOVED"],
  ].map(([from = "", to = ""]) => ({
    file: "src/core/json/plain.ts",
    from,
    to,
    why: "a short way, which gives what the long one does",
  })),
  ...["names.length > FEW", "members.length > MOST_MOVED"]
    .flatMap((from) => [
      [from, "false"],
      [from, from.replace(">", "<=")],
    ])
    .concat([["{ members.sort((a, b) => (a.name < b.name ? -1 : 1)); return; }", "{}"]])
    .map(([from = "", to = ""]) => ({
      file: "src/core/json/plain.ts",
      from,
      to,
      why: "the same, at a cost that grows with the square: test/unit/json-size.test.ts would not come to an end",
    })),
  ...[
    ["a.name < b.name", "a.name <= b.name"],
    ["(members[place - 1] as Member).name > member.name", "(members[place - 1] as Member).name >= member.name"],
  ].map(([from = "", to = ""]) => ({
    file: "src/core/json/plain.ts",
    from,
    to,
    why: "names of members are distinct",
  })),
  {
    file: "src/core/input.ts",
    from: "{ body: undefined, params: undefined, query: undefined }",
    to: "{}",
    why: "the loop sets each of them; they are spelled out for the type",
  },
  ...[
    ["src/core/input.ts", "raw === kept"],
    ["src/core/outcome.ts", "extra.length === 0"],
  ].map(([file = "", from = ""]) => ({
    file,
    from,
    to: "false",
    why: "a short way, which gives what the long one does",
  })),
  {
    file: "src/core/body/multipart.ts",
    on: "filename ??",
    from: '""',
    to: '"Stryker was here!"',
    why: "stands for an absent name in a text that is only looked through for NUL",
  },
  {
    file: "src/core/body/nest.ts",
    from: 'found.kind === "leaves"',
    to: "true",
    why: "asked for the type: a branch is no list, and not none either",
  },
  {
    file: "src/core/body/read.ts",
    from: "media !== null",
    to: "true",
    why: "asked for the type: only a media type makes a body a multipart one",
  },
  ...["value === PLAIN_JSON.type", "media.parameters.size === 0"].map((from) => ({
    file: "src/core/body/content-type.ts",
    from,
    to: "false",
    why: "a short way, which gives what the long one does",
  })),
  {
    file: "src/core/body/content-type.ts",
    from: "a < b",
    to: "a <= b",
    why: "names of parameters are distinct",
  },
  {
    file: "src/core/body/form.ts",
    from: "start <= text.length",
    to: "start < text.length",
    why: "at the end of the text there is no pair",
  },
  ...["false", "a >= b"].map((to) => ({
    file: "src/core/body/form.ts",
    from: "a > b",
    to,
    why: "V8 sorts by whether the number is below 0; the standard wants it the same both ways round",
  })),
  {
    file: "src/core/json/parse.ts",
    from: "char !== undefined",
    to: "true",
    why: "asked for the type: undefined is no digit",
  },
  ...["/[0-9a-fA-F]{4}$/", "/^[0-9a-fA-F]{4}/"].map((to) => ({
    file: "src/core/json/scanner.ts",
    from: "/^[0-9a-fA-F]{4}$/",
    to,
    why: "it is asked of four characters at most",
  })),
  {
    file: "src/core/json/trail.ts",
    from: 'name === "__proto__"',
    to: "true",
    why: "a short way, which gives what the long one does",
  },
  ...[
    ['entry.state !== "succeeded" && entry.state !== "failed"', "false"],
    ["entry.outcome === null", "false"],
  ].map(([from = "", to = ""]) => ({
    file: "src/engine/complete.ts",
    from,
    to,
    why: "an entry under this fence has an outcome exactly where it has ended: asked twice, for the type",
  })),
  {
    file: "src/engine/complete.ts",
    on: "state: entry.state",
    from: "false",
    to: "true",
    why: "of what was committed only the outcome is read",
  },
  {
    file: "src/engine/lease.ts",
    from: "!controller.signal.aborted",
    to: "true",
    on: "new LeaseLost(why)",
    why: "a signal that has aborted keeps its first reason",
  },
];

/** Why a survivor is no gap; `null`: it is one. */
export function explanationOf(survivor: Survivor): string | null {
  const known = EXPLAINED.find(
    ({ file, from, to, on = "" }) =>
      file === survivor.file && from === survivor.from && to === survivor.to && survivor.code.includes(on),
  );
  return known?.why ?? null;
}
