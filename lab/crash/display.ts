/** Where a campaign stands, line by line; what happens now is one line that is redrawn on a terminal. */
export interface Display {
  /** A line that stays. After `close` it is not shown. */
  say(line: string): void;
  close(): void;
}

const REDRAW_EVERY_MS = 200;
const TELL_EVERY_MS = 10_000;
const CLEAR_LINE = "\r\u001b[2K";

/** Shows what `now` says: redrawn in place on a terminal, a plain line every ten seconds elsewhere. */
export function openDisplay(output: NodeJS.WriteStream, now: () => string): Display {
  const redraws = output.isTTY === true;
  const shortened = (line: string) => line.slice(0, Math.max(20, (output.columns ?? 120) - 1));
  const draw = () => void output.write(redraws ? `${CLEAR_LINE}${shortened(now())}` : `${now()}\n`);
  const timer = setInterval(draw, redraws ? REDRAW_EVERY_MS : TELL_EVERY_MS);
  const clear = () => void (redraws && output.write(CLEAR_LINE));
  let closed = false;
  return {
    say(line) {
      if (closed) return;
      clear();
      output.write(`${line}\n`);
    },
    close() {
      closed = true;
      clearInterval(timer);
      clear();
    },
  };
}
