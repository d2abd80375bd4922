import { Readable } from "node:stream";
import { withIdempotency } from "oncekey/client/hooks";
import { describe, expect, it } from "vitest";
import { answer, cutAfter, cutBefore, hostileServer } from "../support/hostile-server.ts";
import { repeated, retryingClients, saidBy, statusOf } from "../support/retrying-clients.ts";

const WHOLE = '{"part":"one","other":"two"}';
const PARTS = [Buffer.from('{"part":"one",'), Buffer.from('"other":"two"}')];

const json = { "content-type": "application/json" };

function webStream(): ReadableStream<Uint8Array> {
  return Readable.toWeb(Readable.from(PARTS)) as ReadableStream<Uint8Array>;
}

async function* generated(): AsyncGenerator<Buffer> {
  yield* PARTS;
}

const byName = (start: string) => retryingClients.filter(({ name }) => name.startsWith(start));
const [axios, ky, got] = ["axios", "ky", "got"].flatMap(byName);
const fetches = byName("fetch");

/** Each kind of body that can be read once only, with each client that takes it. */
const once = [
  ...fetches.map((client) => ({ client, kind: "web stream", make: () => webStream() as unknown })),
  ...fetches.map((client) => ({ client, kind: "Node stream", make: () => Readable.from(PARTS) as unknown })),
  ...fetches.map((client) => ({ client, kind: "generator", make: () => generated() as unknown })),
  { client: axios, kind: "Node stream", make: () => Readable.from(PARTS) as unknown },
  { client: got, kind: "Node stream", make: () => Readable.from(PARTS) as unknown },
  { client: got, kind: "generator", make: () => generated() as unknown },
  { client: got, kind: "FormData", make: () => formData() as unknown },
].map((row) => ({ ...row, client: row.client as (typeof retryingClients)[number] }));

function formData(): FormData {
  const form = new FormData();
  form.set("a", "1");
  return form;
}

describe("a body that can be read once only", () => {
  it.each(once)("is sent whole, once, and never in part: a $kind by $client.name", async ({ client, make, kind }) => {
    const { url, seen, plan } = await hostileServer();
    plan(answer(503));
    const headers: Record<string, string> = kind === "FormData" ? {} : json;
    const failure = await client.send(`${url}/things`, { body: make(), headers }).catch((error: unknown) => error);
    expect(saidBy(failure)).toMatch(/body was read and sent before|consumed body stream/);
    expect(seen).toHaveLength(1);
    if (kind !== "FormData") expect(seen[0]?.body).toBe(WHOLE);
  });

  it("goes through where its first attempt does", async () => {
    for (const { client, make, kind } of once) {
      const { url, seen, plan } = await hostileServer();
      plan(answer(200));
      const headers: Record<string, string> = kind === "FormData" ? {} : json;
      expect(await client.send(`${url}/things`, { body: make(), headers })).toBe(200);
      expect(seen).toHaveLength(1);
    }
  });

  it("is copied by ky before it is sent, so that each attempt is whole", async () => {
    const { url, seen, executed, plan } = await hostileServer();
    plan(cutBefore, answer(503));
    expect(await ky?.send(`${url}/things`, { body: webStream(), headers: json })).toBe(201);
    expect(seen.map(({ body }) => body)).toEqual([WHOLE, WHOLE, WHOLE]);
    expect(executed).toEqual([WHOLE]);
  });

  it("is refused under a key of the caller's too", async () => {
    const { url, seen, plan } = await hostileServer();
    plan(answer(503));
    const send = withIdempotency(fetch);
    const body = generated();
    const attempt = () => {
      const init = { method: "POST", headers: { ...json, "idempotency-key": "mine" }, body, duplex: "half" };
      return statusOf(send(`${url}/things`, init as unknown as RequestInit));
    };
    await expect(repeated(attempt)).rejects.toMatchObject({ code: "oncekey_submission_invalid" });
    expect(seen).toHaveLength(1);
  });

  it("may be made anew for each attempt of an action", async () => {
    const { url, seen, executed, plan } = await hostileServer();
    plan(cutBefore, answer(503));
    const send = withIdempotency(fetch).action();
    const attempt = () => {
      const init = { method: "POST", headers: json, body: webStream(), duplex: "half" };
      return statusOf(send(`${url}/things`, init as unknown as RequestInit));
    };
    expect(await repeated(attempt)).toBe(201);
    expect(seen.map(({ body }) => body)).toEqual([WHOLE, WHOLE, WHOLE]);
    expect(executed).toEqual([WHOLE]);
  });
});

/** Bodies that can be read again. fetch names the type of the last two by itself. */
const again: readonly { readonly kind: string; readonly body: BodyInit; readonly headers?: Record<string, string> }[] =
  [
    { kind: "text", body: WHOLE, headers: json },
    { kind: "bytes", body: new TextEncoder().encode(WHOLE), headers: json },
    {
      kind: "a part of a buffer",
      body: new TextEncoder().encode(`xx${WHOLE}xx`).subarray(2, 2 + WHOLE.length),
      headers: json,
    },
    { kind: "an ArrayBuffer", body: new TextEncoder().encode(WHOLE).buffer, headers: json },
    { kind: "a Blob", body: new Blob([WHOLE], { type: "application/json" }) },
    { kind: "a form", body: new URLSearchParams({ a: "1", b: "zwei ü" }) },
  ];

describe("a body that can be read again", () => {
  it.each(again)("is the same bytes in each attempt: $kind", async ({ body, headers = {} }) => {
    const { url, seen, executed, plan } = await hostileServer();
    plan(cutBefore, answer(503));
    const send = withIdempotency(fetch);
    const init = { method: "POST", body, headers };
    expect(await repeated(() => statusOf(send(`${url}/things`, init)))).toBe(201);
    expect(new Set(seen.map((request) => request.body)).size).toBe(1);
    expect(seen).toHaveLength(3);
    expect(executed).toHaveLength(1);
  });

  it.each([...fetches, ky, axios] as (typeof retryingClients)[number][])(
    "may be FormData, whose parts stay the same when its boundary changes: $name",
    async (client) => {
      const { url, seen, executed, plan } = await hostileServer();
      plan(cutBefore, answer(503), cutAfter);
      expect(await client.send(`${url}/files`, { body: formData() })).toBe(201);
      expect(seen).toHaveLength(4);
      expect(new Set(seen.map(({ key }) => key)).size).toBe(1);
      expect(executed).toEqual(["a file"]);
    },
  );
});
