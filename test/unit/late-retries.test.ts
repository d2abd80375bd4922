import { created, createOncekey, type OncekeyOptions, reject } from "oncekey";
import { idempotent } from "oncekey/fetch";
import { type MemoryTransaction, memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";

const HOUR = 3_600_000;
const MINUTE = 60_000;
const scope = () => ({ tenant: "acme", client: null });

interface Sent {
  readonly key?: string | null;
  /** The instant of the first attempt as the client writes it; a number is written as an HTTP date. */
  readonly firstSent?: string | number;
}

/** An instance that refuses late retries unless told otherwise, with an operation of each run kind, on a clock of its own. */
async function service(options: Partial<OncekeyOptions<MemoryTransaction>> = {}) {
  const clock = fakeClock();
  const store = memoryStore({ clock: clock.now });
  const once = createOncekey({ store, clock: clock.clock, refuseLateRetries: true, waitMs: 0, ...options });
  const ran = { count: 0 };
  const made = () => {
    ran.count++;
    return created(`/v1/things/${ran.count}`, { id: ran.count });
  };
  const binding = { scope, ...(options.profile === undefined && { requireKey: false }) };
  const handlers = {
    transaction: idempotent(once.transaction({ name: "t", version: 1, run: async () => made() }), binding),
    blind: idempotent(once.transaction({ name: "b", version: 1, lookUp: "skip", run: async () => made() }), binding),
    brief: idempotent(
      once.transaction({ name: "s", version: 1, retentionMs: 13 * HOUR, run: async () => made() }),
      binding,
    ),
    phases: idempotent(once.phases({ name: "p", version: 1, run: (op) => op.complete(async () => made()) }), binding),
    capture: idempotent(once.capture({ name: "c", version: 1 }), binding, async () => {
      ran.count++;
      return Response.json({ id: ran.count }, { status: 201 });
    }),
  };
  await once.start();
  const { header } = options.profile === "azure" ? azure : ietf;
  const ask = ({ key = "k", firstSent }: Sent, kind: keyof typeof handlers = "transaction") => {
    const headers = new Headers({ "content-type": "application/json" });
    if (key !== null) headers.set(options.profile === "azure" ? azure.key : ietf.key, key);
    if (firstSent !== undefined) headers.set(header, typeof firstSent === "string" ? firstSent : httpDate(firstSent));
    return handlers[kind](new Request("http://localhost/v1/things", { method: "POST", headers, body: "{}" }));
  };
  return { clock, once, ran, ask };
}

const ietf = { key: "idempotency-key", header: "idempotency-first-sent" };
const azure = { key: "repeatability-request-id", header: "repeatability-first-sent" };
const httpDate = (atMs: number) => new Date(atMs).toUTCString();

/** Status and code of an answer. */
async function told(answer: Promise<Response>): Promise<[number, unknown]> {
  const response = await answer;
  const body = (await response.json()) as { code?: string; error?: { code: string } };
  return [response.status, body.error?.code ?? body.code];
}

describe("a retry that says when it was first sent", () => {
  for (const kind of ["transaction", "blind", "phases", "capture"] as const) {
    it(`runs once (${kind}), is replayed while it is known, and is refused once it is forgotten`, async () => {
      const { clock, ran, ask } = await service();
      const sent = { firstSent: clock.now() };
      expect((await ask(sent, kind)).status).toBe(201);
      await clock.advance(24 * HOUR - MINUTE);
      expect((await ask(sent, kind)).headers.get("idempotent-replayed")).toBe("true");
      await clock.advance(2 * MINUTE);
      expect(await told(ask(sent, kind))).toEqual([412, "idempotency_retry_too_late"]);
      expect(ran.count).toBe(1);
    });
  }

  it("is told in the problem what may have happened", async () => {
    const { clock, ask } = await service();
    const response = await ask({ firstSent: clock.now() - 25 * HOUR });
    expect(response.headers.has("retry-after")).toBe(false);
    expect(await response.json()).toMatchObject({
      type: "/problems/idempotency_retry_too_late",
      status: 412,
      retry: "never",
      state: "none",
      detail: expect.stringContaining("an earlier attempt may have been carried out"),
    });
  });

  it("is refused from a minute before the retention on, as clients' clocks are off by so much", async () => {
    const { clock, ran, ask } = await service();
    expect((await ask({ key: "young", firstSent: clock.now() - 24 * HOUR + MINUTE + 1_000 })).status).toBe(201);
    expect((await ask({ key: "late", firstSent: clock.now() - 24 * HOUR + MINUTE })).status).toBe(412);
    expect(ran.count).toBe(1);
  });

  it("is measured by the retention of its own operation", async () => {
    const { clock, ask } = await service();
    expect((await ask({ firstSent: clock.now() - 14 * HOUR })).status).toBe(201);
    expect((await ask({ firstSent: clock.now() - 14 * HOUR }, "brief")).status).toBe(412);
  });

  it("is answered as any other while its entry is there, however long ago it was first sent", async () => {
    const { clock, ran, ask } = await service();
    await ask({});
    const response = await ask({ firstSent: clock.now() - 1_000 * HOUR });
    expect([response.status, response.headers.get("idempotent-replayed")]).toEqual([201, "true"]);
    expect(ran.count).toBe(1);
  });

  it("runs as new without the header: the client asked for no such protection", async () => {
    const { clock, ran, ask } = await service();
    await ask({});
    await clock.advance(25 * HOUR);
    expect((await ask({})).status).toBe(201);
    expect(ran.count).toBe(2);
  });

  it("is not looked at where the instance does not ask for it", async () => {
    const { ran, ask } = await service({ refuseLateRetries: false });
    expect((await ask({ firstSent: "yesterday" })).status).toBe(201);
    expect((await ask({ key: "other", firstSent: 0 })).status).toBe(201);
    expect(ran.count).toBe(2);
  });

  it("may run after a rejection that was not kept, while it is young", async () => {
    const clock = fakeClock();
    const once = createOncekey({
      store: memoryStore({ clock: clock.now }),
      clock: clock.clock,
      refuseLateRetries: true,
      afterFailure: "runAgain",
    });
    let runs = 0;
    const run = async () => (++runs === 1 ? reject(402, { code: "no_luck" }) : created("/1", {}));
    const handle = idempotent(once.transaction({ name: "t", version: 1, run }), { scope });
    await once.start();
    const headers = { [ietf.key]: "k", [ietf.header]: httpDate(clock.now()) };
    const ask = async () => (await handle(new Request("http://localhost/", { method: "POST", headers }))).status;
    expect([await ask(), await ask(), await ask()]).toEqual([402, 201, 201]);
    expect(runs).toBe(2);
  });
});

describe("a first attempt that lies in the future", () => {
  it("is refused for an unknown key: a clock ahead would hide how late its retries are", async () => {
    const { clock, ran, ask } = await service();
    const ahead = { firstSent: clock.now() + 25 * HOUR };
    expect(await told(ask(ahead))).toEqual([400, "idempotency_request_invalid"]);
    await clock.advance(25 * HOUR);
    expect((await ask(ahead)).status).toBe(201);
    expect(ran.count).toBe(1);
  });

  it("is taken within a minute, and for a key that is known", async () => {
    const { clock, ask } = await service();
    expect((await ask({ key: "near", firstSent: clock.now() + MINUTE })).status).toBe(201);
    expect((await ask({ key: "far", firstSent: clock.now() + MINUTE + 1_000 })).status).toBe(400);
    expect((await ask({ key: "near", firstSent: clock.now() + HOUR })).headers.get("idempotent-replayed")).toBe("true");
  });

  it("never runs twice, whatever a client's clock says of one instant", async () => {
    for (const offsetMs of [-30 * HOUR, -MINUTE, -1_000, 0, 1_000, MINUTE, 2 * MINUTE, 23 * HOUR, 48 * HOUR]) {
      const { clock, ran, ask } = await service();
      const sent = { firstSent: clock.now() + offsetMs };
      for (let hour = 0; hour < 100; hour++) {
        await ask(sent);
        await clock.advance(HOUR);
      }
      expect([offsetMs, ran.count <= 1]).toEqual([offsetMs, true]);
    }
  });
});

describe("the instant of the first attempt", () => {
  const malformed = {
    "is empty": "",
    "is a number": "1767225600",
    "is an ISO date": "2026-01-01T00:00:00Z",
    "names another zone": "Thu, 01 Jan 2026 00:00:00 CET",
    "has a year of two digits (RFC 850)": "Thursday, 01-Jan-26 00:00:00 GMT",
    "names no zone (asctime)": "Thu Jan  1 00:00:00 2026",
    "has another weekday than the day": "Fri, 01 Jan 2026 00:00:00 GMT",
    "is a day that the calendar lacks": "Tue, 31 Feb 2026 00:00:00 GMT",
    "has an hour too many": "Thu, 01 Jan 2026 24:00:00 GMT",
    "is written in small letters": "thu, 01 jan 2026 00:00:00 gmt",
    "is there twice": "Thu, 01 Jan 2026 00:00:00 GMT, Thu, 01 Jan 2026 00:00:00 GMT",
  };
  for (const [what, firstSent] of Object.entries(malformed)) {
    it(`is refused where it ${what}`, async () => {
      const { ran, ask } = await service();
      const [status, code] = await told(ask({ firstSent }));
      expect([status, code]).toEqual([400, "idempotency_request_invalid"]);
      expect(ran.count).toBe(0);
      // Nothing was kept: the corrected request runs under the same key.
      expect((await ask({ firstSent: "Thu, 01 Jan 2026 00:00:00 GMT" })).status).toBe(201);
    });
  }

  it("is none of our business on a request without a key, where the dialect does not tie the two", async () => {
    const { ran, ask } = await service();
    expect((await ask({ key: null, firstSent: "yesterday" })).status).toBe(201);
    expect(ran.count).toBe(1);
  });
});

describe("Azure's pair of headers", () => {
  const key = "7a6d3c8e-9f1b-4c0e-8d55-0d3a9e2b6c11";

  it("is both or none", async () => {
    const { clock, ran, ask } = await service({ profile: "azure" });
    expect(await told(ask({ key, firstSent: clock.now() }))).toEqual([201, undefined]);
    expect(await told(ask({ key: null }))).toEqual([201, undefined]);
    expect(await told(ask({ key }))).toEqual([400, "InvalidRequest"]);
    expect(await told(ask({ key: null, firstSent: clock.now() }))).toEqual([400, "MissingRequiredHeader"]);
    expect(ran.count).toBe(2);
  });

  it("refuses late retries without being told to", async () => {
    const { clock, ran, ask } = await service({ profile: "azure", refuseLateRetries: undefined as never });
    const response = await ask({ key, firstSent: clock.now() - 25 * HOUR });
    expect([response.status, response.headers.get("repeatability-result")]).toEqual([412, "rejected"]);
    expect(ran.count).toBe(0);
  });
});
