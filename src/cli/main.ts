#!/usr/bin/env node
import { readFileSync } from "node:fs";
import type { Report } from "./command.ts";
import { named, parseCommandLine, UsageError } from "./command-line.ts";
import { completionCommand } from "./completion.ts";
import { consoleCommand } from "./console.ts";
import { secretsOf } from "./database-url.ts";
import { doctorCommand } from "./doctor.ts";
import { eraseCommand } from "./erase.ts";
import { type Failure, failureOf } from "./failure.ts";
import { type CommandTable, commandHelp, generalHelp } from "./help.ts";
import { inspectCommand } from "./inspect.ts";
import { jsonText } from "./layout.ts";
import { migrateCommand } from "./migrate.ts";
import { outboxCommand } from "./outbox.ts";
import { purgeCommand } from "./purge.ts";
import { resolveCommand } from "./resolve.ts";
import { rotateCommand } from "./rotate.ts";
import { statusCommand } from "./status.ts";
import { layoutCommand } from "./store-layout.ts";
import { verifyCommand } from "./verify.ts";
import { workerCommand } from "./worker.ts";

const commands: CommandTable = new Map([
  ["migrate", migrateCommand],
  ["status", statusCommand],
  ["doctor", doctorCommand],
  ["inspect", inspectCommand],
  ["resolve", resolveCommand],
  ["outbox", outboxCommand],
  ["purge", purgeCommand],
  ["layout", layoutCommand],
  ["erase", eraseCommand],
  ["rotate", rotateCommand],
  ["worker", workerCommand],
  ["console", consoleCommand],
  ["verify", verifyCommand],
  ["completion", completionCommand(() => commands)],
]);

function version(): string {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}

/** Text to print and the exit code. Raises what commands raise. */
async function answer([name, ...rest]: readonly string[]): Promise<Pick<Report, "exitCode" | "text">> {
  if (name === "--help" || name === "-h") return { exitCode: 0, text: generalHelp(commands) };
  if (name === "--version") return { exitCode: 0, text: `${version()}\n` };
  if (name === undefined) throw new UsageError("No command was given.");
  if (name.startsWith("-")) throw new UsageError("The command comes first, then its options.");
  const command = commands.get(name);
  if (command === undefined) throw new UsageError(`There is no ${named("command", name)}.`);
  const line = parseCommandLine(rest, command.options, command.operands, command.more);
  if (line.switches.has("help")) return { exitCode: 0, text: commandHelp(name, command) };
  const { exitCode, data, text } = await command.run(line);
  return { exitCode, text: line.switches.has("json") ? jsonText(data) : text };
}

/** Where to read on: after a usage error, the command's own help if there is one. */
function hint([name = ""]: readonly string[]): string {
  return `Run "${commands.has(name) ? `oncekey ${name}` : "oncekey"} --help" for what there is.`;
}

function failureText(failure: Failure, args: readonly string[]): string {
  const { exitCode, code, sqlState } = failure;
  const message = exitCode === 2 ? `${failure.message} ${hint(args)}` : failure.message;
  return args.includes("--json") ? jsonText({ error: { code, sqlState, message } }) : `oncekey: ${message}\n`;
}

async function main(args: readonly string[]): Promise<number> {
  try {
    const { exitCode, text } = await answer(args);
    process.stdout.write(text);
    return exitCode;
  } catch (error) {
    const failure = failureOf(error, secretsOf(args, process.env));
    process.stderr.write(failureText(failure, args));
    return failure.exitCode;
  }
}

// `oncekey status | head -1`: who reads has enough, which is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});
// Set, not exited: output to a pipe is still being written.
process.exitCode = await main(process.argv.slice(2));
if (commands.get(process.argv[2] ?? "")?.ends === true) {
  process.stdout.write("", () => process.stderr.write("", () => process.exit()));
}
