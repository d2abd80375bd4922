import { createHash, randomBytes } from "node:crypto";
import { createRelay, type OutboxMessage } from "oncekey/outbox";
import { webhookPublisher } from "oncekey/publishers/webhook";
import { Webhook } from "standardwebhooks";
import { beforeAll, expect, it } from "vitest";
import { query } from "../support/postgres.ts";
import { startReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";
import { type OutboxWorld, outboxWorld } from "./support/outbox.ts";

interface Account {
  readonly receiver: WebhookReceiver;
  readonly secret: string;
}

const TENANTS = ["acme", "globex"] as const;
type Tenant = (typeof TENANTS)[number];

let world: OutboxWorld;
let accounts: Record<string, Account>;

beforeAll(async () => {
  const key = createHash("sha256").update("the test's own").digest();
  world = await outboxWorld({ encryptionKeys: [{ id: 1, key }] });
  const account = async () => ({
    receiver: await startReceiver(),
    secret: `whsec_${randomBytes(32).toString("base64")}`,
  });
  accounts = { acct_acme: await account(), acct_globex: await account() };
});

const accountOf = (tenant: Tenant) => accounts[`acct_${tenant}`] as Account;

/** What an application does: the declared context names the account, whose credentials it keeps. */
const publisher = webhookPublisher({
  endpoint({ context }: OutboxMessage) {
    const { receiver, secret } = accounts[(context as { account: string }).account] as Account;
    return { url: receiver.url, secrets: [secret] };
  },
});

const sendFor = (tenant: Tenant) =>
  world.transaction(({ send }) => send("charge.settled", { tenant }), {
    tenant,
    context: { account: `acct_${tenant}` },
  });

it("a delivery for one tenant finds its credentials by the declared context, and nobody else's", async () => {
  for (const tenant of TENANTS) await sendFor(tenant);
  expect(await createRelay(world.once, { topics: { "*": publisher } }).runOnce()).toMatchObject({ delivered: 2 });
  for (const tenant of TENANTS) {
    const other = TENANTS.find((one) => one !== tenant) as Tenant;
    const [request, ...more] = accountOf(tenant).receiver.received;
    expect(more).toEqual([]);
    const headers = request?.headers as Record<string, string>;
    const verifiedBy = (secret: string) => new Webhook(secret).verify(request?.body ?? "", headers);
    expect(verifiedBy(accountOf(tenant).secret)).toMatchObject({ type: "charge.settled", data: { tenant } });
    expect(() => verifiedBy(accountOf(other).secret)).toThrow("No matching signature");
  }
});

it("a context that is moved to another tenant's message opens nothing and reaches nobody", async () => {
  await world.clear();
  for (const { receiver } of Object.values(accounts)) receiver.received.length = 0;
  for (const tenant of TENANTS) await sendFor(tenant);
  await query(
    world.url,
    `UPDATE oncekey.outbox AS o SET context = other.context FROM oncekey.outbox AS other
     WHERE o.tenant = 'acme' AND other.tenant = 'globex'`,
  );
  expect(await createRelay(world.once, { topics: { "*": publisher } }).runOnce()).toMatchObject({
    delivered: 1,
    dead: 1,
  });
  expect(accountOf("acme").receiver.received).toEqual([]);
  expect(accountOf("globex").receiver.received.map(({ body }) => JSON.parse(body).data)).toEqual([
    { tenant: "globex" },
  ]);
  expect(await query(world.url, "SELECT tenant, reason FROM oncekey.outbox WHERE state = 'dead'")).toEqual([
    { tenant: "acme", reason: "its context cannot be opened (oncekey_store_broken)" },
  ]);
});

it("stores no context in the clear", async () => {
  await world.clear();
  await sendFor("acme");
  const [row] = await query(world.url, "SELECT context FROM oncekey.outbox");
  expect(Buffer.from(row?.context as Uint8Array).toString("latin1")).not.toContain("acct_acme");
});
