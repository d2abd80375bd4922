import type { Asked } from "./exchange.ts";
import { Refusal } from "./refusal.ts";
import { sameText, type Who } from "./sessions.ts";

/**
 * A change comes from our own page: browsers say where a request comes from, and no other site can say it for them. Raises
 * 403. `origin`: where the console is reached, if not at what `Host` says.
 */
export function checkSameOrigin(asked: Asked, origin: string | null): void {
  const site = asked.header("sec-fetch-site");
  const from = asked.header("origin");
  const isOwn = site === null || site === "same-origin";
  if (isOwn && (from === null ? site !== null : isOwnOrigin(asked, from, origin))) return;
  throw new Refusal(
    403,
    "console_cross_origin",
    "This did not come from the console's own page. Nothing was changed. Behind a proxy that changes Host, give createConsole its origin.",
  );
}

function isOwnOrigin(asked: Asked, from: string, origin: string | null): boolean {
  if (origin !== null) return from === origin;
  const host = asked.header("host");
  return URL.canParse(from) && host !== null && new URL(from).host === host.toLowerCase();
}

/** A form of another site cannot send JSON. Raises 415. */
export function checkJson(asked: Asked): void {
  const [type = ""] = (asked.header("content-type") ?? "").split(";");
  if (type.trim().toLowerCase() === "application/json") return;
  throw new Refusal(415, "console_json_needed", "Changes are sent as application/json. Nothing was changed.");
}

/** Raises 403 where the session's own token is missing or another one. */
export function checkCsrf(asked: Asked, { csrf }: Who): void {
  if (sameText(asked.header("x-oncekey-csrf") ?? "", csrf)) return;
  throw new Refusal(
    403,
    "console_csrf",
    "The request does not carry this session's X-Oncekey-Csrf. Nothing was changed; load the page again.",
  );
}
