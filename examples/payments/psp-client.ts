import { parseExact, writeExact } from "./exact-json.ts";
import type { PspAccount } from "./psp-accounts.ts";

/** The provider did not answer, or not in a way that tells what it did: the payment may have been made. */
export class PspUnavailable extends Error {
  override readonly name = "PspUnavailable";
}

/** How one call reaches the provider. */
export interface PspCall {
  /** The provider's own idempotency key. */
  readonly key: string;
  readonly signal: AbortSignal;
}

export interface AuthorizationRequest {
  readonly amount_minor: bigint;
  readonly currency: string;
  readonly source: string;
}

export interface CaptureRequest {
  readonly authorization: string;
  readonly amount_minor: bigint;
}

/** What the provider made: an authorization (`authorized`, `declined`) or a capture (`captured`). */
export interface PspPayment {
  readonly id: string;
  readonly status: string;
}

type Kind = "authorizations" | "captures";

/** One kind of payment at the provider. */
export interface PspResource<Request> {
  create(request: Request, call: PspCall): Promise<PspPayment>;
  /** All that was made under a key; more than one should never happen. */
  find(call: PspCall): Promise<readonly PspPayment[]>;
  /** Makes the key useless, unless something was made under it: then that is the answer. */
  cancel(call: PspCall): Promise<readonly PspPayment[]>;
}

export interface PspClient {
  readonly authorizations: PspResource<AuthorizationRequest>;
  readonly captures: PspResource<CaptureRequest>;
}

/** The provider, seen from one account; `null`: from none, as charges were made before there were accounts. */
export type PspClients = (account: PspAccount | null) => PspClient;

/** Clients of the provider at `url`. Every method raises {@link PspUnavailable} where the answer tells nothing. */
export function createPspClients(url: string): PspClients {
  return (account) => {
    const proof: Readonly<Record<string, string>> =
      account === null ? {} : { "x-psp-account": account.id, authorization: `Bearer ${account.secret}` };
    return { authorizations: resource(url, "authorizations", proof), captures: resource(url, "captures", proof) };
  };
}

function resource<Request>(url: string, kind: Kind, proof: Readonly<Record<string, string>>): PspResource<Request> {
  const query = (key: string) => `?key=${encodeURIComponent(key)}`;
  return {
    async create(request, { key, signal }) {
      const headers = { ...proof, "content-type": "application/json", "idempotency-key": key };
      const body = await ask(`${url}/${kind}`, { method: "POST", headers, body: writeExact(request), signal });
      return payment(body);
    },
    async find({ key, signal }) {
      return payments(await ask(`${url}/${kind}${query(key)}`, { headers: proof, signal }));
    },
    async cancel({ key, signal }) {
      return payments(await ask(`${url}/${kind}/cancel${query(key)}`, { method: "POST", headers: proof, signal }));
    },
  };
}

async function ask(url: string, init: RequestInit): Promise<unknown> {
  try {
    const response = await fetch(url, init);
    const text = await response.text();
    if (response.ok) return parseExact(text);
    throw new PspUnavailable(`The provider answered ${response.status}.`);
  } catch (error) {
    if (error instanceof PspUnavailable) throw error;
    throw new PspUnavailable("The provider did not answer.", { cause: error });
  }
}

function payment(body: unknown): PspPayment {
  const { id, status } = body as PspPayment;
  if (typeof id !== "string" || typeof status !== "string")
    throw new PspUnavailable("The provider's answer is no payment.");
  return { id, status };
}

function payments(body: unknown): PspPayment[] {
  return (body as { data: unknown[] }).data.map(payment);
}
