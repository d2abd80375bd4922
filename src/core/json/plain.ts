/**
 * JSON texts in which everything is spelled in the one way of the canonical form already, but for blanks and the order of
 * members. Nearly all bodies are such texts. They are walked once for what has to be refused, and their canonical form is cut
 * out of them; `JSON.parse` loses nothing of them.
 *
 * Where a text is anything else, or not acceptable at all, the walk just stops: only `parseJson` can tell, and it alone refuses.
 */
export interface PlainJson {
  readonly text: string;
  /** Blanks stand between tokens. */
  readonly spaced: boolean;
  /** Members of some object are not in the order of the canonical form. */
  readonly unsorted: boolean;
}

/** A position in the text. Each `walk…` function moves past one token or value; `false`: the text is not plain. */
interface Walk {
  readonly text: string;
  at: number;
  /** Blanks stand between tokens. */
  spaced: boolean;
  /** Members of some object are not in order. */
  unsorted: boolean;
  /** The string that was walked last has an escape. */
  escaped: boolean;
}

const newWalk = (text: string): Walk => ({
  text,
  at: 0,
  spaced: false,
  unsorted: false,
  escaped: false,
});

/** Looks a text over; `null` where it is not plain. Linear in the length of the text. */
export function plainJson(text: string, maxDepth: number): PlainJson | null {
  const walk = newWalk(text);
  if (!walkValue(walk, maxDepth)) return null;
  skipBlanks(walk);
  if (walk.at !== text.length) return null;
  return { text, spaced: walk.spaced, unsorted: walk.unsorted };
}

/** The canonical form of a plain text: what `canonicalJson` makes of the same JSON. */
export function canonicalPlain(plain: PlainJson): string {
  const { text, spaced, unsorted } = plain;
  return spaced || unsorted ? writtenValue(newWalk(text), plain) : text;
}

function skipBlanks(walk: Walk): number {
  for (;;) {
    const char = walk.text.charCodeAt(walk.at);
    if (char !== 0x20 && char !== 0x0a && char !== 0x0d && char !== 0x09) return char;
    walk.spaced = true;
    walk.at++;
  }
}

function walkValue(walk: Walk, depthLeft: number): boolean {
  switch (skipBlanks(walk)) {
    case 0x22:
      return walkString(walk);
    case 0x7b:
      return depthLeft > 0 && walkObject(walk, depthLeft - 1);
    case 0x5b:
      return depthLeft > 0 && walkArray(walk, depthLeft - 1);
    default:
      return walkScalar(walk);
  }
}

function walkScalar(walk: Walk): boolean {
  switch (walk.text.charCodeAt(walk.at)) {
    case 0x74:
      return walkWord(walk, "true");
    case 0x66:
      return walkWord(walk, "false");
    case 0x6e:
      return walkWord(walk, "null");
    default:
      return walkNumber(walk);
  }
}

function walkWord(walk: Walk, word: string): boolean {
  if (!walk.text.startsWith(word, walk.at)) return false;
  walk.at += word.length;
  return true;
}

// The escapes that JSON.stringify writes, and no others: the text of a string is then its canonical form. `\u` may stand for
// a lone surrogate or U+0000, and `\/` is the same as `/`.
const ESCAPED = '"\\bfnrt';

function walkString(walk: Walk): boolean {
  const { text } = walk;
  walk.escaped = false;
  for (let at = walk.at + 1; ; at++) {
    const char = text.charCodeAt(at);
    if (char === 0x22) {
      walk.at = at + 1;
      return true;
    }
    // Also at the end of the text, where charCodeAt gives NaN; behind a backslash too, for ESCAPED holds the empty text.
    if (!(char >= 0x20)) return false;
    if (char !== 0x5c) continue;
    walk.escaped = true;
    at++;
    if (!ESCAPED.includes(text.charAt(at))) return false;
  }
}

/** So many digits survive the way into a double and back (DBL_DIG), and an integer of so many is a safe one. */
const MOST_DIGITS = 15;
/** A fraction with more zeros in front is printed with an exponent. */
const MOST_LEADING_ZEROS = 5;

/**
 * A number as Number::toString prints it: no -0, no zero that could be left out. Nor an exponent: the walk stays before it,
 * where no value ends.
 */
function walkNumber(walk: Walk): boolean {
  const { text } = walk;
  const start = text.charCodeAt(walk.at) === 0x2d ? walk.at + 1 : walk.at;
  const point = endOfDigits(text, start);
  const startsWithZero = text.charCodeAt(start) === 0x30;
  if (point === start || (startsWithZero && point > start + 1)) return false;
  const hasFraction = text.charCodeAt(point) === 0x2e;
  const end = hasFraction ? endOfDigits(text, point + 1) : point;
  if (end - start - (hasFraction ? 1 : 0) > MOST_DIGITS) return false;
  if (hasFraction) {
    if (end === point + 1 || text.charCodeAt(end - 1) === 0x30) return false;
    if (startsWithZero && endOfZeros(text, point + 1) - point - 1 > MOST_LEADING_ZEROS) return false;
  } else if (startsWithZero && start !== walk.at) return false;
  walk.at = end;
  return true;
}

function endOfDigits(text: string, start: number): number {
  let at = start;
  for (let char = text.charCodeAt(at); char >= 0x30 && char <= 0x39; char = text.charCodeAt(at)) at++;
  return at;
}

function endOfZeros(text: string, start: number): number {
  let at = start;
  while (text.charCodeAt(at) === 0x30) at++;
  return at;
}

function walkArray(walk: Walk, depthLeft: number): boolean {
  if (isEmpty(walk, 0x5d)) return true;
  for (;;) {
    if (!walkValue(walk, depthLeft)) return false;
    const char = skipBlanks(walk);
    walk.at++;
    if (char === 0x5d) return true;
    if (char !== 0x2c) return false;
  }
}

/** Moves past the opening bracket, and past the closing one where it follows. */
function isEmpty(walk: Walk, closing: number): boolean {
  walk.at++;
  if (skipBlanks(walk) !== closing) return false;
  walk.at++;
  return true;
}

function walkObject(walk: Walk, depthLeft: number): boolean {
  if (isEmpty(walk, 0x7d)) return true;
  const names: string[] = [];
  let sorted = true;
  for (;;) {
    const name = walkName(walk);
    if (name === null || !walkValue(walk, depthLeft)) return false;
    if (names.length > 0 && !((names[names.length - 1] as string) < name)) sorted = false;
    names.push(name);
    const char = skipBlanks(walk);
    walk.at++;
    if (char === 0x7d) break;
    if (char !== 0x2c) return false;
  }
  // In order, each after the one before it, they cannot repeat.
  if (sorted) return true;
  walk.unsorted = true;
  return areDistinct(names);
}

/**
 * The name of a member, without its quotes: they would take part in the order. The walk is then behind its colon. `null` also
 * for one with an escape, which sorts by what it stands for.
 */
function walkName(walk: Walk): string | null {
  if (skipBlanks(walk) !== 0x22) return null;
  const start = walk.at + 1;
  if (!walkString(walk) || walk.escaped) return null;
  const name = walk.text.slice(start, walk.at - 1);
  if (skipBlanks(walk) !== 0x3a) return null;
  walk.at++;
  return name;
}

/** For so few, comparing each with each takes less than a set does. */
const FEW = 8;

function areDistinct(names: readonly string[]): boolean {
  if (names.length > FEW) return new Set(names).size === names.length;
  return names.every((name, index) => names.indexOf(name) === index);
}

// The same walk once more, over a text that is known to be plain. What `walkValue` meets there has no depth.

function writtenValue(walk: Walk, plain: PlainJson): string {
  const char = skipBlanks(walk);
  if (char === 0x7b) return writtenObject(walk, plain);
  if (char === 0x5b) return writtenArray(walk, plain);
  const start = walk.at;
  walkValue(walk, 0);
  return walk.text.slice(start, walk.at);
}

function writtenArray(walk: Walk, plain: PlainJson): string {
  if (isEmpty(walk, 0x5d)) return "[]";
  let out = "[";
  for (;;) {
    out += writtenValue(walk, plain);
    const char = skipBlanks(walk);
    walk.at++;
    if (char === 0x5d) return `${out}]`;
    out += ",";
  }
}

interface Member {
  readonly name: string;
  /** With its name and colon. */
  readonly written: string;
}

function writtenObject(walk: Walk, plain: PlainJson): string {
  if (isEmpty(walk, 0x7d)) return "{}";
  const members: Member[] = [];
  for (;;) {
    members.push(writtenMember(walk, plain));
    const char = skipBlanks(walk);
    walk.at++;
    if (char === 0x7d) break;
  }
  sortMembers(members);
  let out = "";
  for (const { written } of members) out += (out === "" ? "{" : ",") + written;
  return `${out}}`;
}

function writtenMember(walk: Walk, plain: PlainJson): Member {
  const start = walk.at;
  const name = walkName(walk) as string;
  if (plain.spaced) return { name, written: `"${name}":${writtenValue(walk, plain)}` };
  const char = walk.text.charCodeAt(walk.at);
  if (char === 0x7b || char === 0x5b) {
    return { name, written: walk.text.slice(start, walk.at) + writtenValue(walk, plain) };
  }
  // Cut out in one piece: most members are such.
  walkValue(walk, 0);
  return { name, written: walk.text.slice(start, walk.at) };
}

/** For so few, moving each to its place takes a fraction of what sort() takes to begin. */
const MOST_MOVED = 16;

function sortMembers(members: Member[]): void {
  if (members.length > MOST_MOVED) {
    members.sort((a, b) => (a.name < b.name ? -1 : 1));
    return;
  }
  for (let index = 1; index < members.length; index++) {
    const member = members[index] as Member;
    let place = index;
    for (; place > 0 && (members[place - 1] as Member).name > member.name; place--) {
      members[place] = members[place - 1] as Member;
    }
    members[place] = member;
  }
}
