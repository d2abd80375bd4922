/** A header value with parameters: `form-data; name="a"`. Parameter names are in lower case, values unquoted. */
export interface Parameterized {
  readonly value: string;
  readonly parameters: ReadonlyMap<string, string>;
}

const VALUE = /[^;\s]+/y;
const SEPARATOR = /[ \t]*;[ \t]*/y;
const PARAMETER = /([!#$%&'*+\-.^_`|~0-9A-Za-z]+)=(?:"((?:[^"\\\r\n]|\\[^\r\n])*)"|([!#$%&'*+\-.^_`|~0-9A-Za-z]+))/y;

/**
 * Parses `value *( OWS ";" OWS [ name "=" ( token / quoted-string ) ] )` (RFC 9110 §5.6.6). `null` where it is malformed
 * or names a parameter twice: of two boundaries or charsets, readers disagree which counts. `unquote` says what an escape
 * in a quoted string means; by default (RFC 9110 §5.6.4) the backslash goes.
 */
export function parseParameters(text: string, unquote = dropBackslashes): Parameterized | null {
  const trimmed = text.replace(/^[ \t]+/, "").trimEnd();
  let at = 0;
  const read = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(trimmed);
    if (match !== null) at = pattern.lastIndex;
    return match;
  };
  const value = read(VALUE)?.[0];
  if (value === undefined) return null;
  const parameters = new Map<string, string>();
  while (read(SEPARATOR) !== null) {
    const match = read(PARAMETER);
    if (match === null) continue;
    const name = (match[1] as string).toLowerCase();
    if (parameters.has(name)) return null;
    parameters.set(name, match[3] ?? unquote(match[2] as string));
  }
  return at === trimmed.length ? { value, parameters } : null;
}

function dropBackslashes(quoted: string): string {
  return quoted.replace(/\\(.)/g, "$1");
}
