import type { Command } from "./command.ts";
import { aligned } from "./layout.ts";

/** Commands by name, in the order of the help. */
export type CommandTable = ReadonlyMap<string, Command>;

const EXIT_CODES = `exit codes
${aligned(
  [
    ["0", "done"],
    ["1", "failed: the message on standard error says why and what to do; doctor: an error was found, see the report"],
    ["2", "the command line is not understood, or names no database; nothing was done"],
    ["3", "no entry or message matched; nothing was done"],
    ["4", "resolve refused: the entry is as it was"],
    ["5", "rotate, erase: something was left, which the output names"],
    ["6", "verify: a case failed, which the report names"],
    ["130", "verify: ended by a signal; the report says how far it came"],
  ],
  "  ",
)}`;

/** The help of the whole: commands, where the database comes from, exit codes. */
export function generalHelp(commands: CommandTable): string {
  const rows = [...commands].map(([name, { summary }]) => [name, summary] as const);
  return `Looks after Oncekey's tables in PostgreSQL (the database is the one of DATABASE_URL), and verifies HTTP APIs.

usage
  oncekey <command> [options]
  oncekey <command> --help

commands
${aligned(rows, "  ")}
options
${aligned(
  [
    ["--help, -h", "print this help, or a command's"],
    ["--version", "print the version"],
  ],
  "  ",
)}
example
  DATABASE_URL=postgres://user:password@host:5432/database oncekey status

${EXIT_CODES}`;
}

/** The help of one command. */
export function commandHelp(name: string, { operands, more, about, options, examples }: Command): string {
  const further = more === undefined ? [] : [`[${more} …]`];
  const usage = ["oncekey", name, ...operands.map((operand) => `<${operand}>`), ...further, "[options]"].join(" ");
  const rows = Object.entries(options).map(([option, { value, meaning }]) => {
    const short = option === "help" ? ", -h" : "";
    return [`--${option}${short}${value === undefined ? "" : ` ${value}`}`, meaning] as const;
  });
  return `${about}

usage
  ${usage}

options
${aligned(rows, "  ")}
${examples.length === 1 ? "example" : "examples"}
${examples.map((example) => `  ${example}\n`).join("")}
${EXIT_CODES}`;
}
