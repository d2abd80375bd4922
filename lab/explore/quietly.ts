/** Prepares this process for making schedules, hundreds of them a second. */
export function quietly(): void {
  // Captured operations warn at every start.
  process.removeAllListeners("warning");
  // Errors are part of nearly every schedule, and nobody reads their stacks.
  Error.stackTraceLimit = 0;
}
