import type { Call } from "./parts.ts";
import { getAudit } from "./routes/audit.ts";
import { getClients } from "./routes/clients.ts";
import { postResolve, postRetry } from "./routes/decide.ts";
import { listEntries, listUnresolved, postSearch } from "./routes/entries.ts";
import { getEntry } from "./routes/entry.ts";
import { getOutbox, postDiscard, postResend } from "./routes/outbox.ts";
import { getOverview, getSeries, getUpkeep } from "./routes/overview.ts";
import { postReveal } from "./routes/reveal.ts";

/** A route of the console's API. */
export interface Route {
  readonly method: "GET" | "POST";
  /** Below `/api/`; its one group is the id. */
  readonly path: RegExp;
  /** Whether a page asks for it by itself: such requests do not keep a session from ending. */
  readonly background?: true;
  /** What it answers, as JSON. */
  handle(call: Call): unknown;
}

const ENTRY = "([0-9a-f]{64})";
/** A message's id: base64url of ours, or whatever another release wrote. Encoded as in any URL. */
const MESSAGE = "([^/]{1,300})";

/** Every route but those of sessions and the stream. */
export const routes: readonly Route[] = [
  { method: "GET", path: /^overview$/, background: true, handle: getOverview },
  { method: "GET", path: /^series$/, background: true, handle: getSeries },
  { method: "GET", path: /^entries$/, handle: listEntries },
  { method: "POST", path: /^entries\/search$/, handle: postSearch },
  { method: "GET", path: new RegExp(`^entries/${ENTRY}$`), handle: getEntry },
  { method: "POST", path: new RegExp(`^entries/${ENTRY}/reveal$`), handle: postReveal },
  { method: "POST", path: new RegExp(`^entries/${ENTRY}/resolve$`), handle: postResolve },
  { method: "POST", path: new RegExp(`^entries/${ENTRY}/retry$`), handle: postRetry },
  { method: "GET", path: /^unresolved$/, handle: listUnresolved },
  { method: "GET", path: /^outbox$/, handle: getOutbox },
  { method: "POST", path: new RegExp(`^outbox/${MESSAGE}/resend$`), handle: postResend },
  { method: "POST", path: new RegExp(`^outbox/${MESSAGE}/discard$`), handle: postDiscard },
  { method: "GET", path: /^clients$/, handle: getClients },
  { method: "GET", path: /^upkeep$/, handle: getUpkeep },
  { method: "GET", path: /^audit$/, handle: getAudit },
];

/** The route of a request and the id in its path; `null`: there is none. */
export function routeOf(method: string, path: string): { readonly route: Route; readonly id: string } | null {
  for (const route of routes) {
    const [, id = ""] = (route.method === method ? route.path.exec(path) : null) ?? [];
    if (route.method === method && route.path.test(path)) return { route, id: decoded(id) };
  }
  return null;
}

function decoded(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}
