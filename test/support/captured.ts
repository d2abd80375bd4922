import type { Operation, Outcome } from "oncekey";
import { fingerprintRing } from "../../src/core/fingerprint.ts";
import { identityOf } from "../../src/core/identity.ts";

/** One request for a captured operation. */
export interface CapturedRequest {
  readonly key?: string;
  readonly handler: () => Promise<Outcome>;
  readonly payload?: string;
  readonly waitMs?: number;
}

const ring = fingerprintRing();

/** Calls the engine of a captured operation as a binding does: there is no other way to run one. */
export function runCaptured(operation: Operation<"capture">, request: CapturedRequest) {
  const { key = "k", handler, payload = "a", waitMs = 0 } = request;
  return operation.engine.execute(operation, {
    identity: identityOf({ tenant: "acme", client: null }, operation.name, key),
    proof: {
      compare: "wire",
      ring,
      wireDigest: ring.fingerprint(ring.form("wire"), ["bytes", payload]),
      fingerprint: async (form) => ring.fingerprint(form, [payload]),
    },
    input: async () => undefined,
    context: null,
    waitMs,
    handler,
  });
}
