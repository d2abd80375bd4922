/** Header values read character by character, as their grammars stand in RFC 9110 and RFC 9651. */

const TOKEN = new Set("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
const isBlank = (char: string | undefined) => char === " " || char === "\t";

/** Whether a text is a token (RFC 9110 §5.6.2). */
export function isToken(text: string): boolean {
  return text !== "" && [...text].every((char) => TOKEN.has(char));
}

/** A value with parameters. */
export interface ReferenceParameters {
  readonly value: string;
  /** Names in lower case; in their order. */
  readonly parameters: readonly (readonly [name: string, value: string])[];
}

/**
 * `value *( OWS ";" OWS [ parameter ] )`: RFC 9110 §5.6.6. `undefined`: malformed, or a name twice. `unquote` gives the
 * text of a quoted string from what stands between its quotes.
 */
export function referenceParameters(
  text: string,
  unquote: (quoted: string) => string = withoutBackslashes,
): ReferenceParameters | undefined {
  const chars = [...text.replace(/^[ \t]+/, "").replace(/\s+$/u, "")];
  let at = 0;
  const value: string[] = [];
  while (at < chars.length && chars[at] !== ";" && !/\s/u.test(chars[at] ?? "")) value.push(chars[at++] ?? "");
  if (value.length === 0) return undefined;
  const parameters: (readonly [string, string])[] = [];
  while (at < chars.length) {
    while (isBlank(chars[at])) at++;
    if (chars[at] !== ";") return undefined;
    at++;
    while (isBlank(chars[at])) at++;
    if (at === chars.length || chars[at] === ";") continue;
    const found = parameterAt(chars, at, unquote);
    if (found === undefined || parameters.some(([name]) => name === found.name)) return undefined;
    parameters.push([found.name, found.value]);
    at = found.end;
  }
  return { value: value.join(""), parameters };
}

interface FoundParameter {
  readonly name: string;
  readonly value: string;
  readonly end: number;
}

function parameterAt(
  chars: readonly string[],
  start: number,
  unquote: (quoted: string) => string,
): FoundParameter | undefined {
  let at = start;
  while (TOKEN.has(chars[at] ?? "")) at++;
  const name = chars.slice(start, at).join("").toLowerCase();
  if (name === "" || chars[at] !== "=") return undefined;
  at++;
  if (chars[at] !== '"') {
    const from = at;
    while (TOKEN.has(chars[at] ?? "")) at++;
    return at === from ? undefined : { name, value: chars.slice(from, at).join(""), end: at };
  }
  const end = endOfQuoted(chars, at);
  return end === undefined ? undefined : { name, value: unquote(chars.slice(at + 1, end).join("")), end: end + 1 };
}

function endOfQuoted(chars: readonly string[], start: number): number | undefined {
  for (let at = start + 1; at < chars.length; at++) {
    if (chars[at] === "\r" || chars[at] === "\n") return undefined;
    if (chars[at] === '"') return at;
    if (chars[at] === "\\") at++;
    if (chars[at] === undefined || chars[at] === "\r" || chars[at] === "\n") return undefined;
  }
  return undefined;
}

/** RFC 9110 §5.6.4: a backslash stands for the character behind it. */
export function withoutBackslashes(quoted: string): string {
  const out: string[] = [];
  const chars = [...quoted];
  for (let at = 0; at < chars.length; at++) out.push((chars[at] === "\\" ? chars[++at] : chars[at]) ?? "");
  return out.join("");
}

/** A structured-field String alone on its line (RFC 9651 §4.2.5); `undefined`: it is none, or has parameters. */
export function referenceString(line: string): string | undefined {
  const chars = [...line];
  let out = "";
  if (chars[0] !== '"') return undefined;
  for (let at = 1; at < chars.length; at++) {
    const char = chars[at] ?? "";
    if (char === '"') return at === chars.length - 1 ? out : undefined;
    if (char === "\\") {
      const escaped = chars[++at];
      if (escaped !== '"' && escaped !== "\\") return undefined;
      out += escaped;
    } else if (char < " " || char > "~") return undefined;
    else out += char;
  }
  return undefined;
}

/** A line without the spaces and tabs at its ends (RFC 9110 §5.5). */
export function trimmed(line: string): string {
  const chars = [...line];
  while (isBlank(chars[0])) chars.shift();
  while (isBlank(chars.at(-1))) chars.pop();
  return chars.join("");
}
