import { readRequestBody } from "../../src/core/body/read.ts";
import { fingerprintRing } from "../../src/core/fingerprint.ts";
import { identityOf } from "../../src/core/identity.ts";
import { parseKey } from "../../src/core/key.ts";
import { wireDigestParts, wireParts } from "../../src/core/request-form.ts";
import { jsonBody, parseAndHash, type Spelling } from "./body.ts";
import type { Subject } from "./subject.ts";

const AGAINST = "JSON.parse and one SHA-256 of the same body";
const JSON_TYPE = "application/json";
const scope = { tenant: "acme", client: "app" };
const at = { method: "POST", operation: "orders.create", headers: [] };

/** The key of a request, and the identity made of it. */
export const key: Subject = {
  name: "key",
  what: "parse the key header, make the identity",
  against: AGAINST,
  // A key has no body.
  sizes: [1_024],
  pair(bytes) {
    const lines = ['"0d0f6a1e-6a0b-4c55-9a43-0f3f7a1c2b3d"'];
    return {
      work() {
        const parsed = parseKey(lines);
        return parsed.kind === "key" && identityOf(scope, at.operation, parsed.key);
      },
      yardstick: parseAndHash(jsonBody(bytes)),
    };
  },
};

/** The canonical form of a body, in one spelling. */
export function canonicalForm(spelling: Spelling): Subject {
  return {
    name: `canonical-json-${spelling}`,
    what: `read a body and write its canonical form; ${spelling} JSON`,
    against: AGAINST,
    pair(bytes) {
      const body = jsonBody(bytes, spelling);
      return { work: () => readRequestBody(JSON_TYPE, body).canonical(), yardstick: parseAndHash(body) };
    },
  };
}

/** The two digests that a stored entry holds: of the exact bytes, and of the canonical form. */
export const fingerprint: Subject = {
  name: "fingerprint",
  what: "read a body; the digests of its bytes and of its canonical form",
  against: AGAINST,
  pair(bytes) {
    const ring = fingerprintRing();
    const wire = jsonBody(bytes);
    return {
      work() {
        const body = readRequestBody(JSON_TYPE, wire);
        const raw = { ...at, target: "/v1/orders", contentType: JSON_TYPE, contentEncoding: null, bytes: wire };
        const parts = wireParts({ ...at, path: "/v1/orders", query: [], body });
        return [ring.fingerprint(ring.form("wire"), wireDigestParts(raw)), ring.fingerprint(ring.form("wire"), parts)];
      },
      yardstick: parseAndHash(wire),
    };
  },
};
