import type { ReadHeader } from "./headers.ts";
import {
  type EventFacts,
  hmacScheme,
  type SignedClaim,
  textKey,
  type WebhookScheme,
  webhookInvalid,
} from "./scheme.ts";

/** A request whose signature is to be computed. */
export interface HmacSigning {
  /** Reads a header, name in any case. */
  readonly header: ReadHeader;
  readonly body: Uint8Array;
  /** Text of the timestamp header, or `""` where the scheme has none. */
  readonly timestamp: string;
}

/** An HMAC scheme of your own or of a provider that is not listed. */
export interface HmacWebhooksOptions {
  /** The header that carries the signature; several signatures are separated by commas or spaces. */
  readonly header: string;
  /** The hash under the HMAC. */
  readonly algorithm: "sha1" | "sha256" | "sha512";
  /** How the header writes the digest. */
  readonly encoding: "hex" | "base64" | "base64url";
  /** What stands before each signature, such as `sha256=`. Signatures without it do not count. Default: nothing. */
  readonly prefix?: string;
  /** What is signed, in order. Default: the body. Must take in the timestamp where `timestampHeader` is set. */
  readonly signs?: (signing: HmacSigning) => readonly (string | Uint8Array)[];
  /** The header with the event's id. Make sure that it is signed, or whoever has a signed body can send it again as another event. */
  readonly idHeader?: string;
  /** The event's id out of the payload. Give this or `idHeader`. */
  readonly id?: (payload: unknown) => unknown;
  /** The header with the time of sending. Without one a recorded request can be sent again for ever, once it is forgotten. */
  readonly timestampHeader?: string;
  /** Default `s`. */
  readonly timestampUnit?: "s" | "ms";
  /** The event's type. Default: none. */
  readonly type?: (payload: unknown, header: ReadHeader) => unknown;
  /** When the event happened. Default: not known. */
  readonly occurredAt?: (payload: unknown) => Date | null;
  /** How long the sender goes on redelivering, in milliseconds; ids must be remembered for longer. */
  readonly redeliversForMs: number;
}

/** HMAC signatures in one header. Raises `oncekey_webhook_invalid` for options that would verify less than they seem to. */
export function hmacWebhooks(options: HmacWebhooksOptions): WebhookScheme {
  checkOptions(options);
  const { header: name, algorithm, encoding, redeliversForMs } = options;
  return hmacScheme({
    name: `HMAC (${name})`,
    redeliversForMs,
    algorithm,
    encoding,
    key: textKey,
    claim: (header, body) => claimOf(options, header, body),
    facts: (payload, header) => factsOf(options, payload, header),
  });
}

function claimOf(options: HmacWebhooksOptions, header: ReadHeader, body: Uint8Array): ReturnType<typeof hmacClaim> {
  const line = header(options.header);
  const timestamp = options.timestampHeader === undefined ? "" : header(options.timestampHeader);
  const hasId = options.idHeader === undefined || header(options.idHeader);
  if (!line || timestamp === null || !hasId) return "header_missing";
  return hmacClaim(options, line, { header, body, timestamp });
}

function hmacClaim(
  options: HmacWebhooksOptions,
  line: string,
  signing: HmacSigning,
): SignedClaim | "header_missing" | "header_malformed" {
  const { prefix = "", signs, timestampHeader, timestampUnit = "s" } = options;
  const signatures = line
    .split(/[,\s]+/)
    .filter((one) => one !== "" && one.startsWith(prefix))
    .map((one) => one.slice(prefix.length));
  const isTimed = timestampHeader !== undefined;
  if (signatures.length === 0 || (isTimed && !/^\d{1,15}$/.test(signing.timestamp))) return "header_malformed";
  const timestampMs = isTimed ? Number(signing.timestamp) * (timestampUnit === "s" ? 1_000 : 1) : null;
  return { kind: "claim", signatures, signed: signs?.(signing) ?? [signing.body], timestampMs };
}

function factsOf(options: HmacWebhooksOptions, payload: unknown, header: ReadHeader): EventFacts {
  const { idHeader, id, type, occurredAt } = options;
  return {
    id: idHeader === undefined ? id?.(payload) : header(idHeader),
    type: type?.(payload, header) ?? null,
    occurredAt: occurredAt?.(payload) ?? null,
  };
}

function checkOptions({
  header,
  algorithm,
  encoding,
  signs,
  idHeader,
  id,
  timestampHeader,
  redeliversForMs,
}: HmacWebhooksOptions): void {
  if (typeof header !== "string" || header === "")
    throw webhookInvalid("hmacWebhooks needs the header of the signature");
  if (!["sha1", "sha256", "sha512"].includes(algorithm))
    throw webhookInvalid("hmacWebhooks knows sha1, sha256 and sha512");
  if (!["hex", "base64", "base64url"].includes(encoding)) {
    throw webhookInvalid("hmacWebhooks knows hex, base64 and base64url");
  }
  if ((idHeader === undefined) === (id === undefined)) throw webhookInvalid("hmacWebhooks needs either idHeader or id");
  if (timestampHeader !== undefined && signs === undefined) {
    throw webhookInvalid("hmacWebhooks with a timestampHeader needs signs: a time that is not signed can be replaced");
  }
  if (!(redeliversForMs >= 0 && Number.isFinite(redeliversForMs))) {
    throw webhookInvalid("hmacWebhooks needs redeliversForMs, how long the sender goes on redelivering");
  }
}
