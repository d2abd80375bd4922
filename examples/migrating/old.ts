import { getRequestListener } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { answerKey, claimKey, giveKeyBack, hashOf, type OldRequest } from "./old-keys.ts";
import { PaymentInput, pay } from "./payments.ts";
import { openPool, PATH, serve, tenantOf } from "./serving.ts";

// The service before the migration. Its kind: the claim is a commit of its own; work and answer are a second one.
//
//   DATABASE_URL=… node --import tsx examples/migrating/old.ts

type Work = OldRequest & { readonly lockedAt: string; readonly input: ReturnType<typeof PaymentInput.parse> };

const pool = openPool();
const app = new Hono();

app.post(PATH, async (c) => {
  const tenant = tenantOf(c);
  if (tenant === null) return c.json({ error: "who_are_you" }, 401);
  const key = c.req.header("idempotency-key") ?? "";
  if (key === "") return c.json({ error: "key_missing" }, 400);
  const body = new Uint8Array(await c.req.arrayBuffer());
  const input = PaymentInput.safeParse(parsed(body));
  if (!input.success) return c.json({ error: "invalid_request" }, 400);
  const request = { tenant, endpoint: `POST ${PATH}`, key, hash: hashOf(body) };
  const claim = await claimKey(pool, request);
  if (claim.kind === "answered") return answer(c, claim);
  if (claim.kind === "reused") return c.json({ error: "key_reused" }, 400);
  if (claim.kind === "locked") return c.json({ error: "key_locked" }, 409);
  return perform(c, { ...request, lockedAt: claim.lockedAt, input: input.data });
});

async function perform(c: Context, work: Work): Promise<Response> {
  const client = await pool.connect();
  let broken = false;
  try {
    await client.query("BEGIN");
    const decided = await pay(client, work.tenant, work.input);
    if (!(await answerKey(client, work, work.lockedAt, decided))) {
      await client.query("ROLLBACK");
      return c.json({ error: "key_locked" }, 409);
    }
    await client.query("COMMIT");
    return answer(c, decided);
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    // Only where it is certain that nothing was committed; else the lock has to grow old.
    const rolledBack = await client.query("ROLLBACK").catch(() => null);
    broken = rolledBack === null;
    if (!broken) await giveKeyBack(client, work, work.lockedAt);
    return c.json({ error: "internal" }, 500);
  } finally {
    client.release(broken);
  }
}

function answer(c: Context, { status, body }: { readonly status: number; readonly body: string }): Response {
  return c.newResponse(body, status as 200, { "content-type": "application/json" });
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
}

await serve("old", pool, getRequestListener(app.fetch));
