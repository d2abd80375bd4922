import { parseArgs } from "node:util";

/** One option of a command. With `value` (a placeholder for the help) it takes one, without it is a switch. */
export interface OptionRow {
  readonly value?: string;
  /** It may be given more than once. */
  readonly many?: true;
  readonly meaning: string;
}

/** The options of a command by their long names. */
export type OptionTable = Readonly<Record<string, OptionRow>>;

/** What was given after the command's name. */
export interface CommandLine {
  readonly operands: readonly string[];
  readonly values: ReadonlyMap<string, string>;
  /** Of options that may be given more than once: all values, in their order. */
  readonly lists: ReadonlyMap<string, readonly string[]>;
  readonly switches: ReadonlySet<string>;
}

/** The command line asks for something that does not exist, or leaves out what is needed. Nothing was done. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** A word that may be repeated in a message. Anything else could be a URL with its password, given in the wrong place. */
const HARMLESS = /^-{0,2}[a-z][a-z-]{0,30}$/i;

/** `word` in quotes where that gives nothing away, else the bare noun. */
export function named(noun: string, word: string): string {
  return HARMLESS.test(word) ? `${noun} "${word}"` : `${noun}`;
}

/**
 * Reads options and operands; operands after `--` may begin with a dash, and with `more` any number may follow the named
 * ones. Raises {@link UsageError} for an unknown option,
 * one given twice, a missing, empty or superfluous value, and too few or too many operands. The messages never repeat a
 * value.
 */
export function parseCommandLine(
  args: readonly string[],
  options: OptionTable,
  operandNames: readonly string[],
  more?: string,
): CommandLine {
  const operands: string[] = [];
  const values = new Map<string, string>();
  const lists = new Map<string, readonly string[]>();
  const switches = new Set<string>();
  // Not strict: Node's own messages quote what was given, which may be a secret.
  const { tokens } = parseArgs({ args: [...args], options: nodeOptions(options), strict: false, tokens: true });
  for (const token of tokens) {
    if (token.kind === "positional") operands.push(token.value);
    if (token.kind !== "option") continue;
    const row = Object.hasOwn(options, token.name) ? options[token.name] : undefined;
    if (row === undefined) throw new UsageError(`There is no ${named("option", token.rawName)} here.`);
    if (values.has(token.name)) throw new UsageError(`The option "${token.rawName}" was given twice.`);
    if (row.value === undefined) switches.add(givenSwitch(token));
    else if (row.many === true) {
      lists.set(token.name, [...(lists.get(token.name) ?? []), givenValue(token, row.value)]);
    } else values.set(token.name, givenValue(token, row.value));
  }
  // Whoever asks for help need not know what else is demanded.
  if (!switches.has("help")) checkOperands(operands, operandNames, more);
  return { operands, values, lists, switches };
}

interface OptionToken {
  readonly name: string;
  readonly rawName: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

function nodeOptions(options: OptionTable): Record<string, { type: "string" | "boolean"; short?: string }> {
  const rows = Object.entries(options).map(([name, { value }]) => {
    const type: "string" | "boolean" = value === undefined ? "boolean" : "string";
    return [name, name === "help" ? { type, short: "h" } : { type }] as const;
  });
  return Object.fromEntries(rows);
}

function givenSwitch({ name, rawName, value }: OptionToken): string {
  if (value !== undefined) throw new UsageError(`The option "${rawName}" takes no value.`);
  return name;
}

function givenValue({ rawName, value, inlineValue }: OptionToken, placeholder: string): string {
  // `--tenant --json` has lost the tenant; a value that does begin with a dash is written `--tenant=-x`.
  if (!value || (inlineValue !== true && value.startsWith("-"))) {
    throw new UsageError(`The option "${rawName}" needs a value: ${rawName}=${placeholder}.`);
  }
  return value;
}

function checkOperands(operands: readonly string[], names: readonly string[], more: string | undefined): void {
  const missing = names[operands.length];
  if (missing !== undefined || operands.some((operand) => operand === "")) {
    throw new UsageError(`The ${missing ?? names[0] ?? "operand"} is missing or empty.`);
  }
  if (operands.length > names.length && more === undefined) {
    const taken = names.length === 0 ? "none" : `only ${names.map((name) => `<${name}>`).join(" ")}`;
    throw new UsageError(`Too many operands were given: the command takes ${taken}.`);
  }
}
