import type { AddressInfo } from "node:net";
import { createNaiveServer, type NaiveOptions } from "../../../examples/naive/server.ts";
import { dialects, type HeaderLine, type Target } from "../../../src/verify/index.ts";
import { atEnd } from "../../support/postgres.ts";

/** Starts a server with these faults; ended with the test file. Its URL. */
export async function naiveServer(options: NaiveOptions): Promise<string> {
  const server = createNaiveServer(options);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  atEnd(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const bearer = (token: string): HeaderLine => ["Authorization", `Bearer ${token}`];

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

/** Everything that the kit can be told about an operation of such a server. */
export function naiveTarget(base: string, path = "/invoices", profile = "ietf"): Target {
  const dialect = dialects.get(profile);
  if (dialect === undefined) throw new Error("no such profile");
  const revocation = (name: string) => ({ url: new URL(`${base}/${name}`), body: json("sk_acme") });
  return {
    url: new URL(base + path),
    method: "POST",
    headers: [bearer("sk_acme")],
    body: json({ amount_minor: 100, note: "of a test" }),
    contentType: "application/json",
    dialect,
    timeoutMs: 4_000,
    count: { url: new URL(base + path), path: ["data"] },
    otherHeaders: [bearer("sk_globex")],
    otherOperation: { url: new URL(`${base}/refunds`), body: null },
    otherBody: null,
    refusedBody: json({ amount_minor: 13 }),
    numberPath: null,
    revocation: { revoke: revocation("revoke"), restore: revocation("restore") },
    revokedHeaders: null,
    lateHeaders: [["Idempotency-First-Sent", "Thu, 01 Jan 2015 00:00:00 GMT"]],
    slowHeaders: [["X-Delay-Ms", "200"]],
    retentionMs: null,
  };
}
