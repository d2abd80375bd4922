/** The command line asks for something that there is not. Nothing was started. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The number that an option was given as. Raises {@link UsageError} where it is no whole one from `least`. */
export function wholeNumber(option: string, given: string | number, least = 1): number {
  const value = given === "" ? Number.NaN : Number(given);
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new UsageError(`${option} is a whole number from ${least}.`);
}

/**
 * Runs a campaign's command and ends the process with the exit code that it gives. `--help` prints the usage alone. A
 * {@link UsageError}, and what `parseArgs` refuses, is told in one line above the usage, with exit code 2; any other error
 * passes through.
 *
 * The end is not left to the event loop. A campaign cuts thousands of sockets in the middle of what they write, and a process
 * that ends by itself closes what is left of them first: Node 20 was seen to spin in that for ever, its report long written.
 */
export async function runCommand(usage: string, main: () => Promise<number>): Promise<void> {
  if (process.argv.includes("--help")) {
    process.stdout.write(`${usage.trim()}\n`);
    return;
  }
  process.exit(await codeOf(usage, main));
}

async function codeOf(usage: string, main: () => Promise<number>): Promise<number> {
  try {
    return await main();
  } catch (error) {
    if (!isUsageError(error)) throw error;
    process.stderr.write(`${error.message}\n\n${usage.trim()}\n`);
    return 2;
  }
}

function isUsageError(error: unknown): error is Error {
  if (error instanceof UsageError) return true;
  return error instanceof Error && String((error as NodeJS.ErrnoException).code).startsWith("ERR_PARSE_ARGS");
}
