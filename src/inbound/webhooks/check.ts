import { OncekeyError } from "../../core/errors.ts";
import type { ConsumeOptions } from "../../engine/arrival.ts";
import { consumeRules } from "../../engine/consume-rules.ts";
import type { EngineContext } from "../../engine/context.ts";
import type { WebhookOptions } from "./endpoint.ts";
import { webhookInvalid } from "./scheme.ts";

const MAX_SOURCE_LENGTH = 255;

type Checked = Pick<
  WebhookOptions<unknown>,
  "source" | "scheme" | "secrets" | "rememberMs" | "toleranceMs" | "maxBodyBytes"
> & { readonly handler: unknown };

/** Refuses an endpoint that would let an event act twice, or anybody sign. Raises `oncekey_webhook_invalid`. */
export function checkWebhook(options: Checked): void {
  const { source, scheme, secrets, handler, rememberMs = 0, toleranceMs = 0, maxBodyBytes = 0 } = options;
  if (typeof source !== "string" || source === "" || source.length > MAX_SOURCE_LENGTH) {
    throw webhookInvalid(`A webhook needs a source of 1 to ${MAX_SOURCE_LENGTH} characters`);
  }
  const named = `Webhook ${source}`;
  if (typeof scheme?.verify !== "function") throw webhookInvalid(`${named} needs a scheme, such as stripeWebhooks()`);
  if (typeof secrets !== "function") throw webhookInvalid(`${named} needs secrets, a function of the tenant`);
  if (typeof handler !== "function") throw webhookInvalid(`${named} needs a handler`);
  if (!(toleranceMs > 0 && Number.isFinite(toleranceMs))) throw webhookInvalid(`${named} needs toleranceMs above 0`);
  if (!(maxBodyBytes > 0)) throw webhookInvalid(`${named} needs maxBodyBytes above 0`);
  if (!(scheme.redeliversForMs >= 0 && Number.isFinite(scheme.redeliversForMs))) {
    throw webhookInvalid(`${named} needs redeliversForMs of its scheme in milliseconds`);
  }
  // A forgotten id must neither be redelivered by the provider nor be inside the tolerance of a recorded request.
  const longestMs = Math.max(scheme.redeliversForMs, 2 * toleranceMs);
  if (!Number.isSafeInteger(rememberMs)) throw webhookInvalid(`${named} needs rememberMs in whole milliseconds`);
  if (rememberMs <= longestMs) {
    throw webhookInvalid(
      `${named} would forget an event after ${rememberMs} ms, while ${scheme.name} may deliver it again for ${longestMs} ms; set rememberMs above that`,
    );
  }
}

/**
 * Refuses at the start what would refuse every delivery: durations that the inbox cannot work with. Raises
 * `oncekey_webhook_invalid`.
 */
export function checkConsuming(context: EngineContext, source: string, consuming: ConsumeOptions): void {
  try {
    consumeRules(context, consuming);
  } catch (error) {
    if (!(error instanceof OncekeyError)) throw error;
    throw webhookInvalid(
      `Webhook ${source} needs waitMs and maxDurationMs in whole milliseconds, and rememberMs above maxDurationMs`,
    );
  }
}
