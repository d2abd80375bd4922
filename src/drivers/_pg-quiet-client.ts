/** What is used of a node-postgres client that somebody else's library works with. */
export interface PgConnection {
  query(config: any, ...rest: any[]): any;
  on(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
}

const BOUNDARY = /^\s*(?:begin|commit|rollback)\s*;?\s*$/i;

/** A client for a library that opens and ends a transaction which is ours. */
export interface QuietClient {
  readonly client: PgConnection;
  /** Runs the body: all that is sent meanwhile goes to the server. */
  during<R>(body: () => Promise<R>): Promise<R>;
}

/**
 * The client as a library sees it. Outside the body BEGIN, COMMIT and ROLLBACK are answered without being sent, and
 * everything else is refused: a body that was given up may still try to use its transaction.
 */
export function quietClient(client: PgConnection): QuietClient {
  let isInside = false;
  const query = (config: any, ...rest: any[]) =>
    isInside ? client.query(config, ...rest) : answered(config, rest.at(-1));
  return {
    client: Object.create(client, { query: { value: query } }),
    async during(body) {
      isInside = true;
      try {
        return await body();
      } finally {
        isInside = false;
      }
    },
  };
}

/** In the form that was asked for: a promise, or a callback. */
function answered(config: any, callback: unknown): Promise<unknown> | undefined {
  const text = String(typeof config === "string" ? config : config?.text);
  const answer = BOUNDARY.test(text)
    ? Promise.resolve({ rows: [], fields: [], rowCount: null, command: text })
    : Promise.reject(Object.assign(new Error("The transaction is over."), { code: "CONNECTION_CLOSED" }));
  if (typeof callback !== "function") return answer;
  answer.then((result) => callback(null, result), callback as (error: unknown) => void);
  return undefined;
}
