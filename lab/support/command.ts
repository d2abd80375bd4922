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
 * Runs a campaign's command and sets the exit code that it gives. `--help` prints the usage alone. A {@link UsageError}, and
 * what `parseArgs` refuses, is told in one line above the usage, with exit code 2; any other error passes through.
 */
export async function runCommand(usage: string, main: () => Promise<number>): Promise<void> {
  if (process.argv.includes("--help")) {
    process.stdout.write(`${usage.trim()}\n`);
    return;
  }
  try {
    process.exitCode = await main();
  } catch (error) {
    if (!isUsageError(error)) throw error;
    process.stderr.write(`${error.message}\n\n${usage.trim()}\n`);
    process.exitCode = 2;
  }
}

function isUsageError(error: unknown): error is Error {
  if (error instanceof UsageError) return true;
  return error instanceof Error && String((error as NodeJS.ErrnoException).code).startsWith("ERR_PARSE_ARGS");
}
