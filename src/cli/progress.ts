import { duration } from "./layout.ts";

/** A line is written at most so often. */
const EVERY_MS = 100;

/** How far long work has come, on one line of the terminal. */
interface Progress {
  /** Replaces the line. */
  tell(what: string): void;
  /** Takes the line away again. */
  end(): void;
}

/** What is written to: standard error, so that a pipe behind standard output gets the report alone. */
type Terminal = Pick<NodeJS.WriteStream, "isTTY" | "columns" | "write">;

/** Progress on a terminal; where standard error goes elsewhere, nothing is written. */
function progressLine(terminal: Terminal = process.stderr): Progress {
  if (!terminal.isTTY) return { tell() {}, end() {} };
  const startedAt = performance.now();
  let toldAt = Number.NEGATIVE_INFINITY;
  return {
    tell(what) {
      const now = performance.now();
      if (now - toldAt < EVERY_MS) return;
      toldAt = now;
      const line = `oncekey: ${what}, ${duration(now - startedAt)}`;
      // A line that wraps could not be taken away.
      terminal.write(`\r\u001b[K${line.slice(0, Math.max(1, (terminal.columns || 80) - 1))}`);
    },
    end() {
      if (toldAt > Number.NEGATIVE_INFINITY) terminal.write("\r\u001b[K");
    },
  };
}

/** Tells progress while `work` runs, and takes the line away however it ends. */
export async function withProgress<R>(work: (tell: Progress["tell"]) => Promise<R>): Promise<R> {
  const progress = progressLine();
  try {
    return await work(progress.tell);
  } finally {
    progress.end();
  }
}
