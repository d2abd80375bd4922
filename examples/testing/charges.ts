/**
 * A team's endpoint that calls a payment provider: an operation with recovery points, bound to the Fetch interface. What its
 * tests replace comes in from outside: the store, the clock, the provider.
 */
import { created, createOncekey, type OncekeyOptions, type Recover } from "oncekey";
import { idempotent } from "oncekey/fetch";
import type { MemoryTransaction } from "oncekey/memory";
import { z } from "zod";

type Authorization = { readonly id: string };

/** What the endpoint uses of a provider. */
export interface Provider {
  /** Authorises a payment under an idempotency key. */
  call(call: { readonly request: { readonly amount: number }; readonly key: string }): Promise<Authorization>;
  /** How an answer that is missing is settled. */
  readonly recover: Recover<{ readonly amount: number }, Authorization>;
}

/** The operation's phases and calls, as crash points name them. The call commits an intent where the provider dedupes nothing. */
export const chargeSteps = (intent: boolean) =>
  ({ runKind: "phases", steps: [{ phase: "charge_created" }, { call: "authorize", intent }] }) as const;

/** Starts the endpoint: a handler for `POST /charges`. */
export async function chargesApp(
  options: OncekeyOptions<MemoryTransaction>,
  provider: Provider,
): Promise<(request: Request) => Promise<Response>> {
  const once = createOncekey(options);
  const createCharge = once.phases({
    name: "charges.create",
    version: 1,
    input: { body: z.strictObject({ amount: z.int().positive() }) },
    maxDurationMs: 20_000,
    async run(op) {
      const charge = await op.phase("charge_created", async ({ tx }) => {
        const row = { id: op.uuid("charge"), amount: op.input.body.amount };
        await tx.insert("charges", row);
        return row;
      });
      const authorization = await op.call("authorize", {
        timeoutMs: 1_000,
        request: { amount: charge.amount },
        run: ({ request, key }) => provider.call({ request, key }),
        recover: provider.recover,
      });
      return op.complete(async ({ tx }) => {
        await tx.insert("settlements", { charge: charge.id, authorization: authorization.id });
        return created(`/charges/${charge.id}`, { ...charge, authorization: authorization.id });
      });
    },
  });
  await once.start();
  return idempotent(createCharge, { scope: () => ({ tenant: "acme", client: null }) });
}
