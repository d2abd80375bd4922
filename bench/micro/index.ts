import { capture } from "./capture.ts";
import { admission, freshRequest, replayedRequest } from "./gate.ts";
import { canonicalForm, fingerprint, key } from "./reading.ts";
import type { Subject } from "./subject.ts";

/** Everything that is measured, one row each. */
export const subjects: readonly Subject[] = [
  key,
  canonicalForm("compact"),
  canonicalForm("spaced"),
  fingerprint,
  admission("compact"),
  admission("spaced"),
  admission("compact", true),
  freshRequest,
  replayedRequest,
  capture,
];
