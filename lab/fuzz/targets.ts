import type { FuzzTarget } from "./target.ts";
import { clientStoredTarget } from "./target-client-stored.ts";
import { codecTarget } from "./target-codec.ts";
import { commandLineTarget } from "./target-command-line.ts";
import { firstSentTarget } from "./target-first-sent.ts";
import { formTarget } from "./target-form.ts";
import { httpTargetTarget } from "./target-http-target.ts";
import { jsonTarget } from "./target-json.ts";
import { jsonValueTarget } from "./target-json-value.ts";
import { keyTarget } from "./target-key.ts";
import { mediaTypeTarget } from "./target-media-type.ts";
import { multipartTarget } from "./target-multipart.ts";
import { requestBodyTarget } from "./target-request-body.ts";
import { rowsTarget } from "./target-rows.ts";
import { sealedTarget } from "./target-sealed.ts";
import { storedOutcomeTarget } from "./target-stored-outcome.ts";
import { webhooksTarget } from "./target-webhooks.ts";

/** All that reads what others wrote, in the order of `docs/fuzzing.md`: a request, what is stored, who else speaks. */
export const targets: readonly FuzzTarget[] = [
  ...[keyTarget, firstSentTarget, httpTargetTarget, mediaTypeTarget, requestBodyTarget],
  ...[jsonTarget, jsonValueTarget, formTarget, multipartTarget],
  ...[storedOutcomeTarget, codecTarget, sealedTarget, rowsTarget],
  ...[webhooksTarget, commandLineTarget, clientStoredTarget],
];
