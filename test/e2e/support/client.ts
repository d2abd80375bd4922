import { request as httpRequest } from "node:http";

/** An answer with its exact bytes. */
export interface RawAnswer {
  readonly status: number;
  /** Names in lower case; several lines of one name joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Buffer;
  readonly text: string;
  /** The body parsed as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at members that may or may not be there.
  json(): any;
}

/** What a request carries. */
export interface Sent {
  readonly token?: string | null;
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** An object is sent as JSON, text and bytes as they are. */
  readonly body?: unknown;
}

const ACME = "sk_test_acme";

/** Sends one request on a connection of its own. Rejects where the connection breaks. */
export function send(method: string, url: string, { token = ACME, key = null, headers = {}, body }: Sent = {}) {
  const isReady = body === undefined || typeof body === "string" || Buffer.isBuffer(body);
  const bytes = isReady ? body : JSON.stringify(body);
  const all = {
    ...(token !== null && { authorization: `Bearer ${token}` }),
    ...(key !== null && { "idempotency-key": key }),
    ...(bytes !== undefined && { "content-type": "application/json", "content-length": Buffer.byteLength(bytes) }),
    ...headers,
  };
  return new Promise<RawAnswer>((resolve, reject) => {
    const request = httpRequest(url, { method, headers: all, agent: false, timeout: 60_000 }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const body = Buffer.concat(chunks);
        const text = body.toString("utf8");
        const joined = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
        resolve({
          status: response.statusCode ?? 0,
          headers: Object.fromEntries(joined),
          bytes: body,
          text,
          json: () => JSON.parse(text),
        });
      });
    });
    request.on("timeout", () => request.destroy(new Error("no answer within 60 seconds")));
    request.on("error", reject);
    request.end(bytes);
  });
}

/** POST with a key. */
export const post = (url: string, key: string, body: unknown, more: Sent = {}) =>
  send("POST", url, { key, body, ...more });

/** GET, the `data` list of the answer. */
// biome-ignore lint/suspicious/noExplicitAny: as above.
export async function list(url: string, token?: string): Promise<any[]> {
  return (await send("GET", url, token === undefined ? {} : { token })).json().data;
}

/** Changes the provider's behaviour. */
export async function behave(psp: string, change: Readonly<Record<string, unknown>>): Promise<void> {
  const answer = await send("POST", `${psp}/behaviour`, { token: null, body: change });
  if (answer.status !== 200) throw new Error(`POST /behaviour answered ${answer.status}: ${answer.text}`);
}

/** How often each key had an effect, by table. */
export async function effects(api: string, table: string): Promise<Map<string, number>> {
  const rows = (await list(`${api}/lab/effects`)).filter((row) => row.table === table);
  return new Map(rows.map((row) => [row.key, row.count]));
}
