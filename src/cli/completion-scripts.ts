import type { Command } from "./command.ts";
import type { CommandTable } from "./help.ts";

/** The shells for which there is a script. */
export type Shell = "bash" | "zsh" | "fish";

/** Makes the script of one shell from the table of commands, so that it can know neither more nor less than the help. */
export const completionScripts: Readonly<Record<Shell, (commands: CommandTable) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** Placeholders of options and names of operands that are files. */
const FILES = /^(?:FILE|module)$/;

interface Option {
  readonly name: string;
  readonly value: string | undefined;
  readonly meaning: string;
}

function optionsOf({ options }: Command): Option[] {
  return Object.entries(options).map(([name, { value, meaning }]) => ({ name, value, meaning }));
}

/** The words that the first operand may be; none where it is free. */
function choicesOf({ operands: [first = ""] }: Command): string[] {
  return first.includes("|") ? first.split("|") : [];
}

function takesFile({ operands }: Command): boolean {
  return FILES.test(operands[0] ?? "");
}

/** In single quotes, as bash and zsh read them. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function bashScript(commands: CommandTable): string {
  const cases = [...commands].map(([name, command]) => {
    const words = [...choicesOf(command), ...optionsOf(command).map((option) => `--${option.name}`)];
    return `    ${name}) words=${quoted(words.join(" "))}; files=${takesFile(command) ? 1 : 0} ;;\n`;
  });
  const values = [...commands].flatMap(([name, command]) =>
    optionsOf(command).flatMap((option) => {
      if (option.value === undefined) return [];
      return [`    ${quoted(`${name} --${option.name}`)}) words=''; files=${FILES.test(option.value) ? 1 : 0} ;;\n`];
    }),
  );
  return `# bash completion of oncekey. Load it with: source <(oncekey completion bash)
_oncekey() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words='' files=0
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    words=${quoted([...commands.keys(), "--help", "--version"].join(" "))}
  else
    case "\${COMP_WORDS[1]}" in
${cases.join("")}    esac
    case "\${COMP_WORDS[1]} \${COMP_WORDS[COMP_CWORD-1]}" in
${values.join("")}    esac
  fi
  local IFS=$'\\n'
  COMPREPLY=($(IFS=' '; compgen -W "$words" -- "$current"))
  if [ "$files" -eq 1 ]; then
    COMPREPLY+=($(compgen -f -- "$current"))
    compopt -o filenames 2>/dev/null
  fi
}
complete -F _oncekey oncekey
`;
}

/** Between the brackets of an option's description, and before a colon. */
function zshText(text: string): string {
  return text.replace(/[[\]:\\]/g, "\\$&");
}

function zshScript(commands: CommandTable): string {
  const described = [...commands].map(([name, { summary }]) => `    ${quoted(`${name}:${zshText(summary)}`)}\n`);
  const cases = [...commands].map(([name, command]) => {
    const rows = [...optionsOf(command).map(zshOption), ...zshOperand(command)];
    return `    ${name}) _arguments ${rows.map((row) => `\\\n      ${quoted(row)}`).join(" ")} ;;\n`;
  });
  return `#compdef oncekey
# zsh completion of oncekey. Load it with: source <(oncekey completion zsh)
_oncekey() {
  local -a commands
  commands=(
${described.join("")}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case "\${words[1]}" in
${cases.join("")}  esac
}
compdef _oncekey oncekey
`;
}

function zshOption({ name, value, meaning }: Option): string {
  if (value === undefined) return `--${name}[${zshText(meaning)}]`;
  return `--${name}=[${zshText(meaning)}]:${value}:${FILES.test(value) ? "_files" : ""}`;
}

function zshOperand(command: Command): string[] {
  const [operand] = command.operands;
  if (operand === undefined) return [];
  const choices = choicesOf(command);
  if (choices.length > 0) return [`1:what:(${choices.join(" ")})`];
  return [`1:${operand}:${takesFile(command) ? "_files" : ""}`];
}

/** In single quotes, as fish reads them: a backslash counts there too. */
function fishQuoted(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}

function fishScript(commands: CommandTable): string {
  const lines = [...commands].flatMap(([name, command]) => {
    const only = `complete -c oncekey -n ${fishQuoted(`__fish_seen_subcommand_from ${name}`)}`;
    return [
      `complete -c oncekey -n __fish_use_subcommand -a ${name} -d ${fishQuoted(command.summary)}`,
      ...optionsOf(command).map((option) => `${only} ${fishOption(option)}`),
      ...choicesOf(command).map((choice) => `${only} -a ${choice}`),
      ...(takesFile(command) ? [`${only} -F`] : []),
    ];
  });
  return `# fish completion of oncekey. Load it with: oncekey completion fish | source
complete -c oncekey -f
${lines.join("\n")}
`;
}

function fishOption({ name, value, meaning }: Option): string {
  const described = `-l ${name} -d ${fishQuoted(meaning)}`;
  if (value === undefined) return described;
  return `${described} ${FILES.test(value) ? "-r -F" : "-x"}`;
}
