import fc from "fast-check";

/** JSON texts as senders write them: any layout, any spelling of numbers and text, members in any order, names distinct. */
const number = fc
  .tuple(
    fc.constantFrom("", "-"),
    fc.oneof(fc.bigInt({ min: 0n, max: 10n ** 30n }), fc.nat({ max: 30 })).map(String),
    fc.oneof(fc.constant(""), fc.string({ unit: fc.constantFrom(..."0123456789"), minLength: 1, maxLength: 25 })),
    fc.oneof(
      fc.constant(""),
      fc.tuple(fc.constantFrom("e", "E+", "e-"), fc.nat({ max: 400 })).map((two) => two.join("")),
    ),
  )
  .map(([sign, whole, fraction, exponent]) => `${sign}${whole}${fraction && `.${fraction}`}${exponent}`);

const text = fc
  .string({ unit: "binary", maxLength: 8 })
  .filter((one) => one.isWellFormed() && !one.includes("\0"))
  .map((one) => JSON.stringify(one));

const space = fc.constantFrom("", "", "", " ", "\n", "\t\r ");

/** A JSON text within the limits. */
export const jsonText: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => {
  const member = fc.tuple(text, space, tie("value"));
  const list = fc.array(
    fc.tuple(space, tie("value"), space).map((all) => all.join("")),
    { maxLength: 4 },
  );
  return {
    value: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.constantFrom("null", "true", "false"),
      number,
      text,
      list.map((all) => `[${all.join(",")}]`),
      fc
        .uniqueArray(member, { maxLength: 4, selector: ([name]) => name })
        .map((all) => `{${all.map(([name, gap, value]) => `${name}${gap}:${gap}${value}`).join(",")}}`),
    ),
  };
}).value;

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|[[\]{},:]|true|false|null/g;

/** Another spelling of a text: its members turned round, numbers and characters written in another way. */
export const respelled: fc.Arbitrary<(given: string) => string> = fc
  .record({ turned: fc.boolean(), zeros: fc.nat({ max: 3 }), shift: fc.integer({ min: -3, max: 3 }), gap: space })
  .map((how) => {
    const again = (given: string) => {
      const tokens = given.match(TOKEN) ?? [];
      return tokens.map((token) => how.gap + spelled(token, how.zeros, how.shift)).join("");
    };
    return Object.assign((given: string) => again(how.turned ? turned(given) : given), {
      toString: () => JSON.stringify(how),
    });
  });

function spelled(token: string, zeros: number, shift: number): string {
  if (token.startsWith('"')) return respelledText(token, zeros);
  if (!/^-?\d/.test(token)) return token;
  const [mantissa = "", exponent = "0"] = token.toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const moved = Number(exponent) + shift;
  const digits = `${fraction}${"0".repeat(zeros)}`;
  // 10^shift is taken out of the mantissa and put into the exponent.
  if (shift >= 0) {
    const padded = `${"0".repeat(shift)}${whole.replace("-", "")}`;
    const sign = whole.startsWith("-") ? "-" : "";
    const cut = padded.length - shift;
    return `${sign}${plain(padded.slice(0, cut))}.${padded.slice(cut)}${digits}0e${moved}`;
  }
  const wide = digits.padEnd(-shift, "0");
  return `${whole.startsWith("-") ? "-" : ""}${plain(whole.replace("-", "") + wide.slice(0, -shift))}.${wide.slice(-shift)}0E${moved}`;
}

const plain = (digits: string) => digits.replace(/^0+(?=\d)/, "") || "0";

function respelledText(token: string, every: number): string {
  const value = JSON.parse(token) as string;
  const units = Array.from({ length: value.length }, (_, at) => value.charCodeAt(at));
  const escaped = units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
  return every > 1 ? `"${escaped}"` : token.replaceAll("/", "\\/");
}

// Written by hand: JSON.parse would spoil the numbers, and put names that are numbers first.
function turned(given: string): string {
  const tokens = given.match(TOKEN) ?? [];
  let at = 0;
  const value = (): string => {
    const token = tokens[at++] ?? "";
    if (token !== "{" && token !== "[") return token;
    const end = token === "{" ? "}" : "]";
    const parts: string[] = [];
    while (tokens[at] !== end) {
      if (tokens[at] === ",") at++;
      const first = value();
      if (token === "[") parts.push(first);
      else {
        at++;
        parts.push(`${first}:${value()}`);
      }
    }
    at++;
    return `${token}${(token === "{" ? parts.reverse() : parts).join(",")}${end}`;
  };
  return value();
}
