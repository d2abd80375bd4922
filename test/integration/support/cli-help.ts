import { cli } from "./cli.ts";

const helps = new Map<string, Promise<string>>();

/** What `oncekey --help` prints, or with a name that command's help. Raises where it fails. */
export function helpOf(name?: string): Promise<string> {
  const args = name === undefined ? ["--help"] : [name, "--help"];
  const key = args.join(" ");
  const known = helps.get(key) ?? printed(args);
  helps.set(key, known);
  return known;
}

async function printed(args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await cli(args);
  if (code !== 0 || stderr !== "") throw new Error(`oncekey ${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}

/** The lines of a section of a help, without its title. */
export function section(help: string, title: RegExp): string[] {
  const lines = help.split("\n");
  const start = lines.findIndex((line) => title.test(line)) + 1;
  const end = lines.findIndex((line, index) => index >= start && line === "");
  return start === 0 ? [] : lines.slice(start, end === -1 ? lines.length : end);
}

/** Every command, in the order of the help: whatever is added is walked over too. */
export async function commandNames(): Promise<string[]> {
  return firstWords(section(await helpOf(), /^commands$/));
}

/** Every option of a command, with its dashes. */
export async function optionNames(command: string): Promise<string[]> {
  return firstWords(section(await helpOf(command), /^options$/)).map((name) => name.replace(/,$/, ""));
}

function firstWords(lines: readonly string[]): string[] {
  return lines.flatMap((line) => /^ {2}(\S+)/.exec(line)?.[1] ?? []);
}
