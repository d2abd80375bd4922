import { created, type Origin, reject, type Scope } from "oncekey";
import * as z from "zod";
import { amountMinor, currency, label } from "../input.ts";
import type { OperationParts, Queryable } from "../payments.ts";
import { accountIdOf, accountOf } from "../psp-accounts.ts";
import type { PspClient, PspClients } from "../psp-client.ts";
import { recoverBy } from "./recover.ts";

const ChargeInput = z.strictObject({ amount_minor: amountMinor, currency, source: label });

/** A charge as clients see it. */
export interface Charge {
  readonly id: string;
  readonly status: string;
  readonly amount_minor: bigint;
  readonly currency: string;
  readonly source: string;
  readonly psp_authorization: string | null;
  readonly psp_capture: string | null;
  readonly created_at: string;
}

const CALL_TIMEOUT_MS = 5_000;

/**
 * "Charge a card": recovery points. The charge row is one commit, each answer of the provider another, the settled
 * charge with its answer the last one. Killed anywhere in between, a retry or the sweeper goes on from the last commit,
 * and the provider is never asked to do the same thing twice.
 */
export function createCharge({ once, psp: clients, pspRecover, step, maxDurationMs, version }: OperationParts) {
  return once.phases({
    name: "charges.create",
    version,
    input: { body: ChargeInput },
    maxDurationMs,
    async run(op) {
      const { amount_minor, currency, source } = op.input.body;
      const psp = pspOf(clients, op.context, op.scope);
      const charge = await op.phase("charge_created", ({ tx }) => {
        return step("charge_insert", () => insertCharge(tx, op.uuid("charge"), op, op.input.body));
      });
      const authorization = await op.call("authorize", {
        timeoutMs: CALL_TIMEOUT_MS,
        request: { amount_minor, currency, source },
        run: ({ request, key, signal }) => psp.authorizations.create(request, { key, signal }),
        recover: recoverBy(pspRecover, psp.authorizations),
      });
      if (authorization.status === "declined") {
        return op.complete(async ({ tx }) => {
          const declined = await step("charge_settle", () =>
            settleCharge(tx, charge.id, "declined", authorization.id, null),
          );
          const problem = { code: "card_declined", title: "The card was declined", charge: declined };
          return reject(402, problem, { keepRows: true });
        });
      }
      const capture = await op.call("capture", {
        timeoutMs: CALL_TIMEOUT_MS,
        request: { authorization: authorization.id, amount_minor },
        run: ({ request, key, signal }) => psp.captures.create(request, { key, signal }),
        recover: recoverBy(pspRecover, psp.captures),
      });
      return op.complete(async ({ tx, send }) => {
        const settled = await step("charge_settle", () =>
          settleCharge(tx, charge.id, "succeeded", authorization.id, capture.id),
        );
        await send("charge.settled", { charge_id: charge.id });
        return created(`/v1/charges/${charge.id}`, settled);
      });
    },
  });
}

/**
 * What a charge's binding stores for whoever resumes it without the client: the id of the tenant's account, from which the
 * worker finds the credentials. Never the credentials themselves.
 */
export function chargeContext({ tenant }: { readonly tenant: string }): { readonly pspAccount: string } {
  return { pspAccount: accountIdOf(tenant) };
}

/** The provider as the charge's own account sees it. Without a context it was made before there were accounts. */
function pspOf(clients: PspClients, context: unknown, { tenant }: Scope): PspClient {
  if (context === null || context === undefined) return clients(null);
  return clients(accountOf((context as ReturnType<typeof chargeContext>).pspAccount, tenant));
}

const COLUMNS = "id, status, amount_minor, currency, source, psp_authorization, psp_capture, created_at";

async function insertCharge(
  db: Queryable,
  uuid: string,
  { scope, key }: Origin,
  input: z.output<typeof ChargeInput>,
): Promise<Charge> {
  const { rows } = await db.query(
    `insert into charges (id, tenant, client, idempotency_key, amount_minor, currency, source)
     values ($1, $2, $3, $4, $5, $6, $7) returning ${COLUMNS}`,
    [
      `ch_${uuid.replaceAll("-", "")}`,
      scope.tenant,
      scope.client,
      key,
      input.amount_minor.toString(),
      input.currency,
      input.source,
    ],
  );
  return chargeOf(rows[0]);
}

async function settleCharge(
  db: Queryable,
  id: string,
  status: "succeeded" | "declined",
  authorization: string,
  capture: string | null,
): Promise<Charge> {
  const { rows } = await db.query(
    `update charges set status = $2, psp_authorization = $3, psp_capture = $4 where id = $1 returning ${COLUMNS}`,
    [id, status, authorization, capture],
  );
  return chargeOf(rows[0]);
}

/** The tenant's charges, oldest first; with `id`, only that one. */
export async function listCharges(db: Queryable, tenant: string, id?: string): Promise<Charge[]> {
  const { rows } = await db.query(
    `select ${COLUMNS} from charges where tenant = $1 and ($2::text is null or id = $2) order by seq`,
    [tenant, id ?? null],
  );
  return rows.map(chargeOf);
}

interface ChargeRow extends Omit<Charge, "amount_minor" | "created_at"> {
  readonly amount_minor: string;
  readonly created_at: Date;
}

function chargeOf(row: ChargeRow): Charge {
  return { ...row, amount_minor: BigInt(row.amount_minor), created_at: row.created_at.toISOString() };
}
