import { createHmac } from "node:crypto";
import { githubWebhooks } from "../../src/inbound/webhooks/github.ts";
import { hmacWebhooks } from "../../src/inbound/webhooks/hmac.ts";
import type { Verification, WebhookScheme } from "../../src/inbound/webhooks/scheme.ts";
import { standardWebhooks } from "../../src/inbound/webhooks/standard.ts";
import { stripeWebhooks } from "../../src/inbound/webhooks/stripe.ts";
import { MARKER, must } from "./finding.ts";
import { referenceJson } from "./reference-json.ts";
import { bytesOfAll, type FuzzTarget, numbered, repeated, type Verdict } from "./target.ts";
import { isKept } from "./target-json-value.ts";

const NOW_S = 1_790_000_000;
const SECRET = "a-secret-of-the-endpoint";
/** In the headers of an input it stands for the right signature. */
const SIGNED = "SIG";

/** A scheme with another reading of its headers: what was signed, if anything was. */
interface Rehearsed {
  readonly scheme: WebhookScheme;
  readonly secret: string;
  /** The signature that the sender would make over this body. */
  sign(headers: ReadonlyMap<string, string>, body: Uint8Array): string;
  /** Whether the headers, with that signature for SIG, are rightly signed now. `null`: they cannot be. */
  isSigned(headers: ReadonlyMap<string, string>, signature: string): boolean;
}

const mac = (encoding: "hex" | "base64", key: string | Buffer, ...parts: (string | Uint8Array)[]) => {
  const hmac = createHmac("sha256", key);
  for (const part of parts) hmac.update(part);
  return hmac.digest(encoding);
};
const isNow = (text: string) => /^[0-9]{1,12}$/.test(text) && Math.abs(Number(text) - NOW_S) <= 300;
const itemsOf = (line: string, name: string) =>
  line
    .split(",")
    .map((item) => item.trim())
    .flatMap((item) => (item.split("=")[0] === name && item.includes("=") ? [item.slice(name.length + 1)] : []));

const stripe: Rehearsed = {
  scheme: stripeWebhooks(),
  secret: SECRET,
  sign: (headers, body) => mac("hex", SECRET, `${itemsOf(headers.get("stripe-signature") ?? "", "t")[0] ?? ""}.`, body),
  isSigned(headers, signature) {
    const line = headers.get("stripe-signature") ?? "";
    const times = itemsOf(line, "t");
    return times.length === 1 && isNow(times[0] ?? "") && itemsOf(line, "v1").some((one) => sameHex(one, signature));
  },
};

const standard: Rehearsed = {
  scheme: standardWebhooks(),
  secret: `whsec_${Buffer.from(SECRET).toString("base64")}`,
  sign: (headers, body) =>
    mac("base64", SECRET, `${headers.get("webhook-id") ?? ""}.${headers.get("webhook-timestamp") ?? ""}.`, body),
  isSigned(headers, signature) {
    const id = headers.get("webhook-id") ?? "";
    const listed = (headers.get("webhook-signature") ?? "").split(" ");
    const isFit = id !== "" && !id.includes(".") && isNow(headers.get("webhook-timestamp") ?? "");
    return isFit && listed.includes(`v1,${signature}`);
  },
};

const github: Rehearsed = {
  scheme: githubWebhooks(),
  secret: SECRET,
  sign: (_, body) => mac("hex", SECRET, body),
  isSigned(headers, signature) {
    const line = headers.get("x-hub-signature-256") ?? "";
    return (
      (headers.get("x-github-delivery") ?? "") !== "" && line.startsWith("sha256=") && sameHex(line.slice(7), signature)
    );
  },
};

const own: Rehearsed = {
  scheme: hmacWebhooks({
    ...{ header: "x-sign", algorithm: "sha256", encoding: "base64", prefix: "s=", timestampHeader: "x-time" },
    ...{ timestampUnit: "ms", redeliversForMs: 0, id: (payload) => (payload as { id?: unknown } | null)?.id },
    signs: ({ timestamp, body }) => [timestamp, ":", body],
  }),
  secret: SECRET,
  sign: (headers, body) => mac("base64", SECRET, `${headers.get("x-time") ?? ""}:`, body),
  isSigned(headers, signature) {
    const time = headers.get("x-time") ?? "";
    const isFit = /^[0-9]{1,15}$/.test(time) && Math.abs(Number(time) - NOW_S * 1_000) <= 300_000;
    return isFit && (headers.get("x-sign") ?? "").split(/[,\s]/).includes(`s=${signature}`);
  },
};

const SCHEMES: Readonly<Record<string, Rehearsed>> = { stripe, standard, github, own };
// Digits of hexadecimal signatures count in any case, nothing else does.
const sameHex = (one: string, other: string) =>
  one.length === other.length && one.toLowerCase() === other.toLowerCase();

interface Delivered {
  readonly rehearsed: Rehearsed;
  readonly headers: Map<string, string>;
  readonly signature: string;
  readonly body: Uint8Array;
}

/** Signed webhooks: the scheme's name, header lines and the body, as `stripe\nname: value\n\nbody`. */
export const webhooksTarget: FuzzTarget = {
  name: "webhooks",
  about: "signed webhooks of four schemes, against other readers of their headers",
  seeds: bytesOfAll([
    `stripe\nstripe-signature: t=${NOW_S},v1=SIG\n\n{"id":"evt_1","type":"a","created":1}`,
    `stripe\nstripe-signature: t=${NOW_S}, v1=0, v1=SIG, v0=1\n\n{"id":"evt_1"}`,
    `stripe\nstripe-signature: t=${NOW_S},t=${NOW_S},v1=SIG\n\n{"id":"evt_1"}`,
    `standard\nwebhook-id: msg_1\nwebhook-timestamp: ${NOW_S}\nwebhook-signature: v1,SIG v1a,x v1,y\n\n{"type":"a"}`,
    `standard\nwebhook-id: msg.1\nwebhook-timestamp: ${NOW_S}\nwebhook-signature: v1,SIG\n\n{}`,
    'github\nx-github-delivery: d1\nx-hub-signature-256: sha256=SIG\nx-github-event: push\n\n{"a":9007199254740993}',
    `own\nx-time: ${NOW_S}000\nx-sign: s=SIG, s=x\n\n{"id":"1"}`,
    `own\nx-time: ${NOW_S}000\nx-sign: SIG\n\n{"id":1,"id":2}`,
    `stripe\nstripe-signature: t=1,v1=SIG\n\n${MARKER}`,
  ]),
  words: [
    "SIG",
    "v1=",
    "v1,",
    "t=",
    ",",
    " ",
    "\n",
    "\n\n",
    "sha256=",
    "s=",
    `${NOW_S}`,
    ".",
    "stripe",
    "own",
    '{"id":"x"}',
    '"id":',
    "\xff",
  ],
  run: (input) => verified(deliveredIn(input)),
  try: tryWebhook,
  properties: [],
  families: [
    repeated("commas", "stripe\nstripe-signature: ", ",", "\n\n{}"),
    repeated("times", "stripe\nstripe-signature: ", "t=1,", "\n\n{}"),
    repeated("signatures", `stripe\nstripe-signature: t=${NOW_S}`, ",v1=0", "\n\n{}"),
    repeated("blanks in a list", `own\nx-time: ${NOW_S}000\nx-sign: s=1`, " ", "\n\n{}"),
    repeated("signatures in a list", `own\nx-time: ${NOW_S}000\nx-sign: `, "s=1,", "\n\n{}"),
    repeated(
      "signatures apart by spaces",
      `standard\nwebhook-id: 1\nwebhook-timestamp: ${NOW_S}\nwebhook-signature: `,
      "v1,a ",
      "\n\n{}",
    ),
    repeated(
      "dots in an id",
      `standard\nwebhook-timestamp: ${NOW_S}\nwebhook-signature: v1,SIG\nwebhook-id: `,
      ".",
      "\n\n{}",
    ),
    numbered(
      "members of a signed body",
      "github\nx-github-delivery: d\nx-hub-signature-256: sha256=SIG\n\n{",
      (at) => `"${at}":1,`,
      '"":1}',
    ),
  ],
};

function deliveredIn(input: Uint8Array): Delivered {
  const bytes = Buffer.from(input);
  const blank = bytes.indexOf("\n\n");
  const head = bytes.subarray(0, blank === -1 ? bytes.length : blank).toString("latin1");
  const body = Uint8Array.from(blank === -1 ? [] : bytes.subarray(blank + 2));
  const [name = "", ...lines] = head.split("\n");
  const rehearsed = SCHEMES[Object.hasOwn(SCHEMES, name) ? name : "stripe"] ?? stripe;
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(": ");
    const [field, value] = [line.slice(0, Math.max(0, colon)).toLowerCase(), line.slice(colon + 2)];
    const before = headers.get(field);
    headers.set(field, before === undefined ? value : `${before}, ${value}`);
  }
  const signature = rehearsed.sign(headers, body);
  for (const [field, value] of headers) headers.set(field, value.replaceAll(SIGNED, signature));
  return { rehearsed, headers, signature: rehearsed.sign(headers, body), body };
}

function verified({ rehearsed, headers, body }: Delivered): Verification {
  return rehearsed.scheme.verify({ headers, body, secrets: [rehearsed.secret], nowMs: NOW_S * 1_000 });
}

function tryWebhook(input: Uint8Array): Verdict {
  const delivered = deliveredIn(input);
  const { rehearsed, headers, signature, body } = delivered;
  const found = verified(delivered);
  const payload = referenceJson(body, { maxDepth: 64, maxDigits: 1_000, maxExponent: 10_000, allowNul: true });
  const isSigned = rehearsed.isSigned(headers, signature);
  if (found.kind === "refused") {
    // What is well signed may still lack an id, or be no JSON.
    const isOfContent = found.why === "id_missing" || found.why === "body_not_json";
    must(isSigned === isOfContent, `refused (${found.why}) unlike its signature`);
    // Beyond a JSON that can be read: an integer with more zeros than are appended.
    const isReadable = payload !== undefined && isKept(payload, "nearest");
    must(isReadable === (found.why !== "body_not_json") || !isSigned, "refused unlike its body");
    return "refused";
  }
  must(isSigned && payload !== undefined, "verified without a signature, or what is no JSON");
  must(found.eventId !== "" && found.eventId.length <= 512, "an id that cannot be kept");
  must(found.occurredAt === null || !Number.isNaN(found.occurredAt.getTime()), "an instant that is none");
  return "accepted";
}
