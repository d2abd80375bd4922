import { type ClientErrorCode, codes } from "../../core/errors.ts";
import { stringifyJson } from "../../core/json/stringify.ts";
import type { Profile, RefusalRow } from "../profile.ts";

/** The IETF draft "The Idempotency-Key HTTP Header Field", with problem bodies of RFC 9457. The default. */
export const ietf: Profile = {
  name: "ietf",
  key: { place: { in: "header", name: "idempotency-key" }, required: true },
  defaults: {},
  replayMarker: ["idempotent-replayed", "true"],
  provisional: "refused",
  mediaType: "application/problem+json",
  refusals: ownTerms(),
  /**
   * `type` is the reference `/problems/<code>`: stable, free of any host, and not `about:blank`, which would claim that there
   * is nothing to say beyond the status. `code`, `retry` and `state` are for programs, `title` and `detail` for people.
   */
  write({ status }, { code, detail, state }) {
    const { retry, title } = codes[code];
    return stringifyJson({ type: `/problems/${code}`, title, status, detail, code, retry, state });
  },
};

/** The table of codes is this dialect's own. */
function ownTerms(): Readonly<Record<ClientErrorCode, RefusalRow>> {
  const rows = Object.entries(codes).flatMap(([code, row]): [string, RefusalRow][] =>
    row.audience === "client" ? [[code, { status: row.status, error: code }]] : [],
  );
  return Object.fromEntries(rows) as Record<ClientErrorCode, RefusalRow>;
}
