import type { Profile } from "../profile.ts";

/** The IETF draft "The Idempotency-Key HTTP Header Field", with problem bodies of RFC 9457. The default. */
export const ietf: Profile = {
  name: "ietf",
  keyHeader: "idempotency-key",
  replayMarker: ["idempotent-replayed", "true"],
  retentionHeader: "idempotency-retention",
  provisional: "refused",
  problemType: "application/problem+json",
};
