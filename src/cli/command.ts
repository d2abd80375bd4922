import type { CommandLine, OptionTable } from "./command-line.ts";

/** What a command found or did: one value for programs, one text for people. */
export interface Report {
  /**
   * 3 where nothing was found, 4 where a decision was refused: both changed nothing. 5: done, but not all of it.
   * 6: verified, and found wanting. 1: done, but its report could not be kept; or looked, and found errors. 130: ended by a signal, and told how far it
   * came.
   */
  readonly exitCode: 0 | 1 | 3 | 4 | 5 | 6 | 130;
  /** Printed with `--json`: plain data; a `Date` becomes an ISO 8601 instant. */
  readonly data: unknown;
  /** Printed without `--json`, ending in a line feed. */
  readonly text: string;
}

/** One command: what its help says and what it does. */
export interface Command {
  /** One line, for the list of commands. */
  readonly summary: string;
  /** More lines for the command's own help. */
  readonly about: string;
  /** Names of its operands, all required; `a|b|c` where one of these words is meant. */
  readonly operands: readonly string[];
  /** Name of further operands, any number of them. Default: none are taken. */
  readonly more?: string;
  readonly options: OptionTable;
  /** Command lines to copy. */
  readonly examples: readonly string[];
  /** It runs code of others, which may have left something open: the process is ended, not left to end. */
  readonly ends?: true;
  /** Raises `UsageError`, an `OncekeyError`, a `StoreFailure` or the database client's own error. */
  run(line: CommandLine): Promise<Report>;
}
