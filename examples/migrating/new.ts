import { getRequestListener } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { createOncekey, respond } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { idempotent } from "oncekey/hono";
import { postgresStore } from "oncekey/postgres";
import type { output } from "zod";
import { bridged, type Run, refuse, rememberForOldCode } from "./bridge.ts";
import { speakOldDialect } from "./old-dialect.ts";
import { PaymentInput, pay } from "./payments.ts";
import { openPool, PATH, serve, tenantOf } from "./serving.ts";

// The service on Oncekey. BRIDGE=on (default) as long as old processes answer, and their retention after that; DIALECT=old
// (default) as long as clients read the old refusals.
//
//   DATABASE_URL=… node --conditions=oncekey-source --import tsx examples/migrating/new.ts

type Input = { readonly body: output<typeof PaymentInput> };

const isBridged = setting("BRIDGE", ["on", "off"]) === "on";
const isOldDialect = setting("DIALECT", ["old", "ietf"]) === "old";

const pool = openPool();
const once = createOncekey({ store: postgresStore(fromPg(pool)) });

const payOnce: Run<Input> = async ({ tx, input, scope }) => {
  const { status, body } = await pay(tx, scope.tenant, input.body);
  return status === 201 ? respond(status, body, { "content-type": "application/json" }) : refuse(status, body);
};

const createPayment = once.transaction({
  name: "payments.create",
  version: 1,
  input: { body: PaymentInput },
  run: isBridged ? bridged(`POST ${PATH}`, payOnce) : payOnce,
});

await once.start();

const app = new Hono();
app.use(async (c, next) => (tenantOf(c) === null ? c.json({ error: "who_are_you" }, 401) : next()));
if (isOldDialect) app.use(speakOldDialect);
if (isBridged) app.use(rememberForOldCode);
app.post(PATH, idempotent(createPayment, { scope: (c: Context) => ({ tenant: tenantOf(c) ?? "", client: null }) }));

await serve("new", pool, getRequestListener(app.fetch), () => once.close());

/** A setting from the environment; the first of its values where there is none. A misspelt one starts nothing. */
function setting(name: string, values: readonly [string, ...string[]]): string {
  const value = process.env[name] ?? values[0];
  if (!values.includes(value)) throw new Error(`${name} is one of ${values.join(", ")}. Nothing was started.`);
  return value;
}
