import { OncekeyError } from "../core/errors.ts";
import type { Exchange } from "../http/exchange.ts";
import { readUnread, type WebRequest } from "./_unread.ts";
import { targetOf, webHeaderLines } from "./_web.ts";

/** What is used of an event of h3 2. */
export interface H3Event {
  readonly req: WebRequest;
  readonly res: { readonly headers: Headers };
  readonly context: { readonly params?: Readonly<Record<string, string>> | undefined };
  readonly app?: { readonly config?: object } | undefined;
}

/** `toResponse` of `h3` (in Nitro of `nitro/h3`): what the framework makes of whatever a handler gave or threw. */
export type ToResponse<Event> = (value: unknown, event: Event, config?: never) => Response | Promise<Response>;

/** An event as an exchange. Its request, not `event.url`: that one is canonical, and shortened below a mounted app. */
export function h3Exchange<Event extends H3Event>(event: Event): Exchange<Event> {
  const params = Object.entries(event.context.params ?? {}).map(([name, value]) => [name, decoded(value)]);
  return {
    native: event,
    method: event.req.method,
    target: targetOf(event.req.url),
    params: Object.fromEntries(params),
    headerLines: (name) => webHeaderLines(event.req.headers as Headers, name),
    readBody: (limitBytes) => readUnread(event.req, limitBytes),
  };
}

// h3 leaves parameters as they came; an app may allow malformed ones.
function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

const HANDLED = Symbol.for("h3.handled");

/** Runs an existing handler and gives the response that h3 would send for what it returned, threw and set on the event. */
export async function h3Response<Event extends H3Event>(
  event: Event,
  toResponse: ToResponse<Event>,
  handler: (event: Event) => unknown,
): Promise<Response> {
  const running = (async () => handler(event))();
  if ((await running.catch(() => null)) === HANDLED) throw answeredAround();
  // The hook sees the response when h3 sends it, once.
  const config = { ...event.app?.config, onResponse: undefined };
  const response = await toResponse(running, event, config as never);
  // They are part of the response now; early releases of h3 2 would add them, cookies too, a second time.
  for (const name of [...event.res.headers.keys()]) event.res.headers.delete(name);
  return response;
}

function answeredAround(): OncekeyError {
  return new OncekeyError(
    "oncekey_stream_refused",
    "The captured handler answered on Node's own response, around h3, so its answer could not be stored; the key needs recovery. Bind such a handler with oncekey/node, or return its answer.",
  );
}
