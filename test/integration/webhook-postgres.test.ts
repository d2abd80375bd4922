import { fork } from "node:child_process";
import { once as emitted } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { fromPg } from "oncekey/drivers/pg";
import type { IncomingWebhook, Webhook } from "oncekey/webhooks";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { beforeAll, describe, expect, it } from "vitest";
import { bundle } from "../support/bundle.ts";
import { atEnd, createDatabase, query, testPool } from "../support/postgres.ts";
import { INVOICE_TABLES, invoiceWebhook, SECRETS } from "./support/webhook-endpoint.ts";
import type { DieAt } from "./support/webhook-process.ts";

let url = "";
let webhook: Webhook;
let other: Webhook;

beforeAll(async () => {
  ({ url } = await createDatabase());
  await query(url, INVOICE_TABLES);
  [webhook, other] = await Promise.all([
    invoiceWebhook(fromPg(testPool(url, { max: 5 }))),
    invoiceWebhook(fromPg(testPool(url, { max: 5 }))),
  ]);
});

interface Sent {
  readonly id: string;
  readonly tenant?: string;
  readonly secret?: string;
  readonly atMs?: number;
  readonly payload?: object;
}

/** A delivery as the sender's library signs it. */
function sent({
  id,
  tenant = "acme",
  secret = SECRETS.acme[0],
  atMs = Date.now(),
  payload = {},
}: Sent): IncomingWebhook {
  const body = JSON.stringify({ type: "invoice.changed", account: tenant, ...payload });
  const headers = {
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(atMs / 1_000)),
    "webhook-signature": new StandardWebhook(secret).sign(id, new Date(atMs), body),
  };
  return { tenant, headers, body: new TextEncoder().encode(body) };
}

const effects = (id: string) => query(url, `SELECT tenant, pid FROM effect WHERE event = '${id}'`);
const everything = async () => {
  const tables = ["oncekey.inbox", "oncekey.subject", "oncekey.outbox", "oncekey.entry", "effect", "invoice"];
  const [row] = await query(
    url,
    `SELECT ${tables.map((table) => `(SELECT count(*) FROM ${table})`).join(" || ',' || ")} AS n`,
  );
  return row?.n;
};

describe("a webhook over PostgreSQL", () => {
  it("that is refused leaves no row anywhere", async () => {
    const before = await everything();
    const genuine = sent({ id: "msg_refused" });
    const tampered = Uint8Array.from(genuine.body);
    tampered[tampered.length - 2] = 0x20;
    const refused: [IncomingWebhook, number][] = [
      [{ ...genuine, body: tampered }, 401],
      [{ ...genuine, headers: { ...genuine.headers, "webhook-id": "msg_another" } }, 401],
      [sent({ id: "msg_refused", secret: SECRETS.globex[0] }), 401],
      [sent({ id: "msg_refused", atMs: Date.now() - 301_000 }), 401],
      [sent({ id: "msg_refused", atMs: Date.now() + 301_000 }), 401],
      [{ ...genuine, tenant: "globex" }, 401],
      [sent({ id: "msg_refused", payload: { account: "globex" } }), 403],
      [{ ...genuine, headers: {} }, 400],
    ];
    for (const [incoming, status] of refused) {
      expect(await webhook.receive(incoming)).toMatchObject({ status, result: { kind: "refused" } });
    }
    expect(await everything()).toBe(before);
    expect((await webhook.receive(genuine)).status).toBe(200);
  });

  it("is accepted under either secret of a rotation, and the redelivery signed with the new one is the same event", async () => {
    for (const secret of SECRETS.acme) {
      expect((await webhook.receive(sent({ id: "msg_rotated", secret }))).status).toBe(200);
    }
    expect(await effects("msg_rotated")).toHaveLength(1);
  });

  it("has one effect of 50 concurrent deliveries to two processes' worth of instances", async () => {
    const all = Array.from({ length: 50 }, (_, at) =>
      (at % 2 === 0 ? webhook : other).receive(sent({ id: "msg_storm" })),
    );
    const answers = await Promise.all(all);
    expect(await effects("msg_storm")).toHaveLength(1);
    expect(answers.filter(({ result }) => result.kind === "done")).toHaveLength(1);
    for (const { status, result } of answers) expect(status).toBe(result.kind === "unsettled" ? 503 : 200);
    expect((await other.receive(sent({ id: "msg_storm" }))).result.kind).toBe("duplicate");
  });

  it("with an older state that comes late changes nothing", async () => {
    const update = (version: number, status: string) =>
      sent({ id: `msg_v${version}`, payload: { data: { id: "in_1", status, version } } });
    for (const [version, status] of [
      [2, "paid"],
      [1, "open"],
      [3, "refunded"],
    ] as const) {
      expect((await webhook.receive(update(version, status))).status).toBe(200);
      expect(await effects(`msg_v${version}`)).toHaveLength(1);
    }
    expect((await webhook.receive(update(2, "paid"))).result.kind).toBe("duplicate");
    expect(await query(url, "SELECT status FROM invoice WHERE id = 'in_1'")).toEqual([{ status: "refunded" }]);
  });
});

describe("a process that is killed", () => {
  let program = "";
  beforeAll(async () => {
    const outDir = await mkdtemp(join(tmpdir(), "oncekey-webhook-"));
    atEnd(() => rm(outDir, { recursive: true, force: true }));
    const source = fileURLToPath(new URL("./support/webhook-process.ts", import.meta.url));
    await bundle({ programs: { webhook: source }, outDir });
    program = join(outDir, "webhook.mjs");
  });

  /** Sends one event to a process that dies of it. Resolves when it is dead. */
  async function sendToDying(id: string, dieAt: DieAt): Promise<void> {
    const settings = JSON.stringify({ url, dieAt });
    const child = fork(program, { execArgv: [], env: { ...process.env, WEBHOOK_SETTINGS: settings } });
    const exited = emitted(child, "exit");
    const [{ port }] = (await emitted(child, "message")) as [{ port: number }];
    const { headers, body } = sent({ id });
    const answer = fetch(`http://127.0.0.1:${port}`, {
      method: "POST",
      headers: headers as Record<string, string>,
      body: Uint8Array.from(body),
    });
    await expect(answer).rejects.toThrow();
    expect((await exited)[1]).toBe("SIGKILL");
  }

  it("between commit and answer has acted: the redelivery is answered 200 without effect", async () => {
    await sendToDying("msg_committed", "before_answer");
    const before = await effects("msg_committed");
    expect(before).toHaveLength(1);
    expect(before[0]?.pid).not.toBe(process.pid);
    expect(await webhook.receive(sent({ id: "msg_committed" }))).toMatchObject({
      status: 200,
      result: { kind: "duplicate" },
    });
    expect(await effects("msg_committed")).toEqual(before);
  });

  it("before the commit has done nothing: the redelivery acts", async () => {
    await sendToDying("msg_lost", "in_handler");
    expect(await effects("msg_lost")).toHaveLength(0);
    expect(await webhook.receive(sent({ id: "msg_lost" }))).toMatchObject({ status: 200, result: { kind: "done" } });
    expect(await effects("msg_lost")).toEqual([{ tenant: "acme", pid: process.pid }]);
  });
});
