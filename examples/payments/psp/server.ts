import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { parseExact, writeExact } from "../exact-json.ts";
import { isAccount } from "../psp-accounts.ts";
import { behaviourChange } from "./behaviour.ts";
import type { PaymentKind } from "./ledger.ts";
import type { Provider, ProviderAnswer } from "./provider.ts";

const BODY_LIMIT_BYTES = 1024 * 1024;
const refuse = (status: number, error: string): ProviderAnswer => ({ kind: "answer", status, body: { error } });

/** The provider's HTTP surface. Every answer is JSON; a cut connection is a destroyed socket. */
export function createPspServer(provider: Provider): Server {
  return createServer(async (request, response) => {
    try {
      send(response, await route(provider, request));
    } catch (error) {
      console.error("the provider could not serve a request:", error);
      send(response, refuse(500, "provider_broken"));
    }
  });
}

async function route(provider: Provider, request: IncomingMessage): Promise<ProviderAnswer> {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://psp");
  if (pathname === "/behaviour") return behave(provider, request);
  if (provider.behaviour().down) return refuse(503, "provider_down");
  const match = /^\/(authorizations|captures)(\/cancel)?$/.exec(pathname);
  if (match === null) return refuse(404, "no_such_resource");
  const kind = match[1] as PaymentKind;
  const key = searchParams.get("key");
  const account = accountOf(request);
  if (account === "refused") return refuse(401, "unknown_account_or_secret");
  if (match[2] !== undefined) {
    if (request.method !== "POST") return refuse(405, "method_not_allowed");
    return key === null ? refuse(400, "key_missing") : provider.cancel(kind, key, account?.id);
  }
  if (request.method === "GET") return provider.find(kind, key, account?.id);
  return request.method === "POST" ? pay(provider, kind, request, account?.id) : refuse(405, "method_not_allowed");
}

/** The account that `X-Psp-Account` names, proven by its secret; without that header none, which sees all. */
function accountOf({ headers }: IncomingMessage): { readonly id: string } | undefined | "refused" {
  const id = headers["x-psp-account"];
  if (id === undefined) return undefined;
  const secret = /^Bearer +(\S+)$/i.exec(headers.authorization ?? "")?.[1] ?? "";
  return typeof id === "string" && isAccount(id, secret) ? { id } : "refused";
}

async function behave(provider: Provider, request: IncomingMessage): Promise<ProviderAnswer> {
  if (request.method === "POST") {
    const body = await readJsonBody(request);
    const checked = behaviourChange(body === UNREADABLE ? null : body);
    if ("complaint" in checked) return refuse(400, checked.complaint);
    provider.behave(checked.change);
  }
  return { kind: "answer", status: 200, body: provider.behaviour() };
}

async function pay(
  provider: Provider,
  kind: PaymentKind,
  request: IncomingMessage,
  account: string | undefined,
): Promise<ProviderAnswer> {
  const key = request.headers["idempotency-key"];
  const body = await readJsonBody(request);
  if (typeof key !== "string" || key === "") return refuse(400, "idempotency_key_missing");
  if (typeof body !== "object" || body === null || Array.isArray(body)) return refuse(400, "expected_a_json_object");
  const owner = account === undefined ? {} : { account };
  return provider.pay({ kind, key, ...owner, body: body as Readonly<Record<string, unknown>> });
}

const UNREADABLE = Symbol("not JSON, or too long");

async function readJsonBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= BODY_LIMIT_BYTES) chunks.push(chunk);
  }
  if (size > BODY_LIMIT_BYTES) return UNREADABLE;
  try {
    return parseExact(Buffer.concat(chunks).toString("utf8"));
  } catch {
    return UNREADABLE;
  }
}

function send(response: ServerResponse, answer: ProviderAnswer): void {
  if (answer.kind === "cut") {
    response.socket?.destroy();
    return;
  }
  const body = writeExact(answer.body);
  response.writeHead(answer.status, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
  response.end(body);
}
