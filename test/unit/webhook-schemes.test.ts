import { createHmac } from "node:crypto";
import { sign as githubSign } from "@octokit/webhooks-methods";
import fc from "fast-check";
import {
  githubWebhooks,
  hmacWebhooks,
  type SignedRequest,
  standardWebhooks,
  stripeWebhooks,
  type WebhookScheme,
  type WebhookSecret,
} from "oncekey/webhooks";
import { Webhook as StandardWebhook } from "standardwebhooks";
import Stripe from "stripe";
import { describe, expect, it } from "vitest";

const NOW_MS = Date.UTC(2026, 0, 31, 12);
const NOW_S = NOW_MS / 1_000;
const PAYLOAD =
  '{"id":"evt_1","type":"charge.settled","created":1769860800,"timestamp":"2026-01-31T12:00:00Z","amount":9007199254740993}';
const bytes = (text: string) => new TextEncoder().encode(text);
const stripe = new Stripe("sk_test_unused");

/** One scheme with the vendor's own code for signing, or a plain HMAC where there is no vendor. */
interface Vendor {
  readonly name: string;
  readonly scheme: WebhookScheme;
  readonly secrets: readonly [string, string];
  /** The signed headers; `atS`: the time of sending in seconds. */
  sign(secret: string, payload: string, atS?: number): Promise<Record<string, string>>;
  /** Puts two signatures into one header. */
  both(one: string, other: string): string;
  readonly signatureHeader: string;
  readonly isTimed: boolean;
  readonly eventId: string;
}

const secretOf = (letter: string) => `whsec_${Buffer.from(letter.repeat(24)).toString("base64")}`;

const vendors: Vendor[] = [
  {
    name: "Standard Webhooks",
    scheme: standardWebhooks(),
    secrets: [secretOf("a"), secretOf("b")],
    async sign(secret, payload, atS = NOW_S) {
      const signature = new StandardWebhook(secret).sign("msg_1", new Date(atS * 1_000), payload);
      return { "webhook-id": "msg_1", "webhook-timestamp": String(atS), "webhook-signature": signature };
    },
    both: (one, other) => `${one} v1a,unknown ${other}`,
    signatureHeader: "webhook-signature",
    isTimed: true,
    eventId: "msg_1",
  },
  {
    name: "Stripe",
    scheme: stripeWebhooks(),
    secrets: ["whsec_first", "whsec_second"],
    async sign(secret, payload, timestamp = NOW_S) {
      const header = stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp });
      return { "Stripe-Signature": header };
    },
    both: (one, other) => `${one},v0=unknown,${other.slice(other.indexOf("v1="))}`,
    signatureHeader: "Stripe-Signature",
    isTimed: true,
    eventId: "evt_1",
  },
  {
    name: "GitHub",
    scheme: githubWebhooks(),
    secrets: ["first secret", "second secret"],
    async sign(secret, payload) {
      const signature = await githubSign(secret, payload);
      return { "X-Hub-Signature-256": signature, "X-GitHub-Delivery": "d-1", "X-GitHub-Event": "charge.settled" };
    },
    both: (one) => one,
    signatureHeader: "X-Hub-Signature-256",
    isTimed: false,
    eventId: "d-1",
  },
  {
    name: "an HMAC of one's own",
    scheme: hmacWebhooks({
      header: "X-Signature",
      algorithm: "sha512",
      encoding: "base64url",
      prefix: "sig=",
      signs: ({ header, body, timestamp }) => [timestamp, ":", header("X-Id") ?? "", ":", body],
      idHeader: "X-Id",
      timestampHeader: "X-Time",
      timestampUnit: "ms",
      type: (payload) => (payload as { type?: unknown }).type,
      redeliversForMs: 3_600_000,
    }),
    secrets: ["first", "second"],
    async sign(secret, payload, atS = NOW_S) {
      const time = String(atS * 1_000);
      const signature = createHmac("sha512", secret).update(`${time}:id-1:${payload}`).digest("base64url");
      return { "X-Signature": `sig=${signature}`, "X-Time": time, "X-Id": "id-1" };
    },
    both: (one, other) => `${one}, ${other}`,
    signatureHeader: "X-Signature",
    isTimed: true,
    eventId: "id-1",
  },
];

function verify({ scheme, secrets }: Vendor, request: Partial<SignedRequest>) {
  const { headers = {}, body = bytes(PAYLOAD) } = request;
  return scheme.verify({ headers, body, secrets: [secrets[0]], nowMs: NOW_MS, ...request });
}

describe.each(vendors)("the signature of $name", (vendor) => {
  const { secrets, sign, signatureHeader } = vendor;

  it("made by the vendor's own code is accepted, in every form of headers", async () => {
    const headers = await sign(secrets[0], PAYLOAD);
    const lines = Object.entries(headers);
    for (const form of [
      headers,
      lines,
      new Headers(lines),
      Object.fromEntries(lines.map(([name, value]) => [name, [value]])),
    ]) {
      expect(verify(vendor, { headers: form })).toMatchObject({
        kind: "verified",
        eventId: vendor.eventId,
        type: "charge.settled",
        payload: { amount: 9007199254740993n },
      });
    }
  });

  it("does not fit when any byte of the body, or the signature, was changed", async () => {
    const headers = await sign(secrets[0], PAYLOAD);
    const signature = headers[signatureHeader] as string;
    fc.assert(
      fc.property(fc.nat(PAYLOAD.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const body = bytes(PAYLOAD);
        body[at] = (body[at] as number) ^ flip;
        expect(verify(vendor, { headers, body })).toEqual({ kind: "refused", why: "signature_wrong" });
      }),
    );
    for (const changed of [
      signature.slice(0, -1),
      `${signature}0`,
      signature.replace(/.$/, (end) => (end === "0" ? "1" : "0")),
    ]) {
      expect(verify(vendor, { headers: { ...headers, [signatureHeader]: changed } }).kind).toBe("refused");
    }
  });

  it("does not fit another secret; one of two during a rotation is enough", async () => {
    const [old, fresh] = secrets;
    for (const used of secrets) {
      const headers = await sign(used, PAYLOAD);
      expect(verify(vendor, { headers, secrets: ["third+third+third+third="] })).toMatchObject({
        why: "signature_wrong",
      });
      expect(verify(vendor, { headers, secrets: [old, fresh] }).kind).toBe("verified");
      expect(verify(vendor, { headers, secrets: [fresh, old] }).kind).toBe("verified");
    }
  });

  it("may stand beside one that was made with another secret", async () => {
    const [old, fresh] = secrets;
    const one = await sign(old, PAYLOAD);
    const other = await sign(fresh, PAYLOAD);
    const signature = vendor.both(one[signatureHeader] as string, other[signatureHeader] as string);
    const headers = { ...one, [signatureHeader]: signature };
    expect(verify(vendor, { headers, secrets: [old] }).kind).toBe("verified");
    if (signature !== one[signatureHeader]) {
      expect(verify(vendor, { headers, secrets: [fresh] }).kind).toBe("verified");
    }
  });

  it("is asked for with each of its headers", async () => {
    const headers = await sign(secrets[0], PAYLOAD);
    expect(verify(vendor, { headers: {} })).toEqual({ kind: "refused", why: "header_missing" });
    for (const name of Object.keys(headers).filter((name) => name !== "X-GitHub-Event")) {
      const { [name]: _gone, ...rest } = headers;
      expect(verify(vendor, { headers: rest })).toEqual({ kind: "refused", why: "header_missing" });
    }
  });

  it("is worth nothing outside the tolerance, in either direction, if the scheme has a time", async () => {
    for (const offS of [-300, 300, -301, 301]) {
      const headers = await sign(secrets[0], PAYLOAD, NOW_S + offS);
      const isInside = !vendor.isTimed || Math.abs(offS) <= 300;
      expect(verify(vendor, { headers })).toMatchObject(
        isInside ? { kind: "verified" } : { kind: "refused", why: "timestamp_outside" },
      );
      expect(verify(vendor, { headers, toleranceMs: 400_000 }).kind).toBe("verified");
    }
  });

  it("says nothing of the time to those who did not sign", async () => {
    const headers = await sign("third+third+third+third=", PAYLOAD, NOW_S - 10_000);
    expect(verify(vendor, { headers })).toEqual({ kind: "refused", why: "signature_wrong" });
  });

  it("over something that is no JSON, or JSON with a member given twice, is not enough", async () => {
    for (const payload of ["id=evt_1", "", '{"id":"evt_1","id":"evt_2"}', '{"id":"evt_1"', "\u00ff"]) {
      if (payload === "" && vendor.name === "GitHub") continue;
      const headers = await sign(secrets[0], payload);
      expect(verify(vendor, { headers, body: bytes(payload) })).toEqual({ kind: "refused", why: "body_not_json" });
    }
  });

  it("is never checked without a usable secret", async () => {
    const headers = await sign(secrets[0], PAYLOAD);
    const unusable: readonly (readonly WebhookSecret[])[] = [[], [""], [new Uint8Array()], ["whsec_ "], [7 as never]];
    for (const wrong of unusable) {
      expect(() => verify(vendor, { headers, secrets: wrong })).toThrow(
        expect.objectContaining({ code: "oncekey_webhook_invalid" }),
      );
    }
  });
});

describe("headers of a signature", () => {
  const [standard, ofStripe, github] = vendors as [Vendor, Vendor, Vendor];

  it.each([
    [standard, { "webhook-id": "a.b", "webhook-timestamp": `${NOW_S}`, "webhook-signature": "v1,YQ==" }],
    [standard, { "webhook-id": "a", "webhook-timestamp": "soon", "webhook-signature": "v1,YQ==" }],
    [standard, { "webhook-id": "a", "webhook-timestamp": `${NOW_S}`, "webhook-signature": "v1a,YQ==" }],
    [ofStripe, { "stripe-signature": `t=${NOW_S}` }],
    [ofStripe, { "stripe-signature": "v1=00" }],
    [ofStripe, { "stripe-signature": `t=${NOW_S},v0=00` }],
    [ofStripe, { "stripe-signature": `t=${NOW_S},t=${NOW_S + 1},v1=00` }],
    [github, { "x-hub-signature-256": "sha1=00", "x-github-delivery": "d" }],
  ])("that make no sense are refused as such (%#)", (vendor, headers) => {
    expect(verify(vendor, { headers })).toEqual({ kind: "refused", why: "header_malformed" });
  });

  it("are not guessed at when a line came twice", async () => {
    const headers = await standard.sign(standard.secrets[0], PAYLOAD);
    const twice = [...Object.entries(headers), ["webhook-id", "msg_2"] as const];
    expect(verify(standard, { headers: twice })).toEqual({ kind: "refused", why: "signature_wrong" });
  });
});

describe("what a verified event says", () => {
  it("of its time comes from the signed payload", async () => {
    const [standard, ofStripe] = vendors as [Vendor, Vendor];
    for (const vendor of [standard, ofStripe]) {
      const headers = await vendor.sign(vendor.secrets[0], PAYLOAD);
      expect(verify(vendor, { headers })).toMatchObject({ occurredAt: new Date(NOW_MS) });
    }
    const payload = '{"id":"evt_1","created":"never","timestamp":{}}';
    for (const vendor of [standard, ofStripe]) {
      const headers = await vendor.sign(vendor.secrets[0], payload);
      expect(verify(vendor, { headers, body: bytes(payload) })).toMatchObject({ occurredAt: null, type: null });
    }
  });

  it("of its id is refused where it is missing, no text, or longer than the inbox keeps", async () => {
    const vendor = vendors[1] as Vendor;
    for (const id of [undefined, 1, "", "x".repeat(513)]) {
      const payload = JSON.stringify({ id });
      const headers = await vendor.sign(vendor.secrets[0], payload);
      expect(verify(vendor, { headers, body: bytes(payload) })).toEqual({ kind: "refused", why: "id_missing" });
    }
  });

  it("is read by the vendor's own code too, from the same bytes", async () => {
    const [, ofStripe] = vendors as [Vendor, Vendor];
    const header = stripe.webhooks.generateTestHeaderString({ payload: PAYLOAD, secret: "whsec_first" });
    expect(stripe.webhooks.constructEvent(PAYLOAD, header, "whsec_first").id).toBe("evt_1");
    expect(verify(ofStripe, { headers: { "stripe-signature": header }, nowMs: Date.now() }).kind).toBe("verified");
  });
});

describe("GitHub's ids", () => {
  it("can be made from the signed body, so that a recorded one is no new event under another delivery id", async () => {
    const scheme = githubWebhooks({ id: "content" });
    const signature = await githubSign("s", PAYLOAD);
    const ids = ["d-1", "d-2"].map((delivery) =>
      scheme.verify({
        headers: { "x-hub-signature-256": signature, "x-github-delivery": delivery },
        body: bytes(PAYLOAD),
        secrets: ["s"],
      }),
    );
    expect(ids[0]).toMatchObject({ kind: "verified", eventId: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(ids[1]).toEqual(ids[0]);
  });
});

describe("hmacWebhooks", () => {
  const sound = { header: "X-S", algorithm: "sha256", encoding: "hex", id: () => "1", redeliversForMs: 0 } as const;

  it("refuses options that would verify less than they seem to", () => {
    expect(() => hmacWebhooks(sound)).not.toThrow();
    const wrong = [
      { header: "" },
      { algorithm: "md5" },
      { encoding: "utf8" },
      { id: undefined },
      { idHeader: "X-Id" },
      { timestampHeader: "X-T" },
      { redeliversForMs: undefined },
      { redeliversForMs: Number.NaN },
    ];
    for (const options of wrong) {
      expect(() => hmacWebhooks({ ...sound, ...(options as object) })).toThrow(
        expect.objectContaining({ code: "oncekey_webhook_invalid" }),
      );
    }
  });

  it("signs the body alone by default, and takes hex in any case", () => {
    const signature = createHmac("sha256", "s").update(PAYLOAD).digest("hex").toUpperCase();
    const request = { headers: { "x-s": signature }, body: bytes(PAYLOAD), secrets: [bytes("s")] };
    expect(hmacWebhooks(sound).verify(request)).toMatchObject({ kind: "verified", eventId: "1", type: null });
  });
});
