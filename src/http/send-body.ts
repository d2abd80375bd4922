import type { ServerResponse } from "node:http";
import { isInMemory, type LongBody, type OutcomeBody } from "../core/outcome.ts";

/**
 * Ends a response with these bytes, whose head is set; a long body at the pace of the client, and let go of. `over` is
 * called when all is sent, or can no longer be.
 */
export function sendBody(res: ServerResponse, body: OutcomeBody, over: () => void = () => {}): void {
  if (isInMemory(body)) {
    whenOver(res, over);
    writeFileName(res);
    res.end(body.length === 0 ? undefined : body);
    return;
  }
  void pump(res, body).finally(over);
}

/** Not by `pipeline`: with the handler's own still listening, its listeners would be more than Node takes without a warning. */
async function pump(res: ServerResponse, body: LongBody): Promise<void> {
  let gone = res.destroyed;
  let wake = () => {};
  const drained = () => wake();
  const cut = () => {
    gone = true;
    wake();
  };
  res.on("drain", drained).once("close", cut);
  const forget = whenCut(res, cut);
  try {
    for await (const chunk of body.chunks()) {
      if (gone) return;
      const waiting = new Promise<void>((resolve) => {
        wake = resolve;
      });
      if (!res.write(chunk) && !gone) await waiting;
    }
    if (!gone) res.end();
  } catch {
    // The answer is stored: whoever asks again gets it.
    res.destroy();
  } finally {
    res.off("drain", drained).off("close", cut);
    forget();
    await body.release();
  }
}

/**
 * Node spoils a Content-Disposition beyond ASCII where it learns of the body together with the head (it takes the value
 * for Latin-1, but puts it together as UTF-8).
 */
function writeFileName(res: ServerResponse): void {
  const value = res.getHeader("content-disposition");
  if (value !== undefined && /[\x80-\xff]/.test(String(value))) res.writeHead(res.statusCode);
}

function whenOver(res: ServerResponse, over: () => void): void {
  const once = () => {
    res.off("finish", once).off("close", once);
    forget();
    over();
  };
  const forget = whenCut(res, once);
  res.once("finish", once).once("close", once);
}

/** A response that waits in line behind others of its connection (pipelining) is not told when that one breaks. */
function whenCut({ req }: ServerResponse, cut: () => void): () => void {
  const { socket } = req;
  // Not before the caller has what this returns.
  if (socket?.destroyed === true) process.nextTick(cut);
  socket?.once("close", cut);
  return () => void socket?.off("close", cut);
}
