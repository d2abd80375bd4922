import type { Command } from "./command.ts";
import { UsageError } from "./command-line.ts";
import { completionScripts, type Shell } from "./completion-scripts.ts";
import type { CommandTable } from "./help.ts";

const SHELLS = Object.keys(completionScripts) as Shell[];

/** `oncekey completion <shell>`: a script from the table that the help is made from. The table is asked for late: it holds this command too. */
export function completionCommand(commands: () => CommandTable): Command {
  return {
    summary: "print the shell's completion of commands and options",
    about: `Prints a script that lets your shell complete oncekey's commands, options and files. Load it in the shell's start-up
file. It is made for this version: load it anew after an update. Needs no database.`,
    operands: [SHELLS.join("|")],
    options: {
      json: { meaning: "print JSON, for programs" },
      help: { meaning: "print this help" },
    },
    examples: [
      "source <(oncekey completion bash)",
      "source <(oncekey completion zsh)",
      "oncekey completion fish | source",
    ],
    async run({ operands: [given = ""] }) {
      const shell = SHELLS.find((name) => name === given);
      if (shell === undefined) throw new UsageError(`The shell must be one of ${SHELLS.join(", ")}.`);
      const text = completionScripts[shell](commands());
      return { exitCode: 0, data: { shell, script: text }, text };
    },
  };
}
