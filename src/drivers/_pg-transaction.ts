import { TransactionAbandoned, TransactionAborted } from "../stores/postgres/driver-port.ts";
import { type PgConnection, quietClient } from "./_pg-quiet-client.ts";

/** A library's transaction on a connection of ours. */
export interface Borrowed<Tx> {
  readonly client: PgConnection;
  /** Gives it back; `true`: it must be closed, nobody can tell what state it is in. */
  release(destroy: boolean): void;
  /** Makes the library run a body in its transaction on that client. */
  open(client: PgConnection, body: (tx: Tx) => Promise<unknown>): PromiseLike<unknown>;
}

/**
 * BEGIN, the library's transaction, COMMIT. The library's own BEGIN, COMMIT and ROLLBACK are not sent: it would not look
 * at the answer to COMMIT, and would give a connection back whose ROLLBACK was never answered.
 */
export async function pgTransaction<Tx, R>(borrowed: Borrowed<Tx>, body: (tx: Tx) => Promise<R>): Promise<R> {
  const { client, release } = borrowed;
  const statement = (text: string) => client.query({ text, values: [] });
  const ignore = () => {};
  let destroy = true;
  client.on("error", ignore);
  try {
    await statement("BEGIN");
    const result = await inside(borrowed, body);
    const { command } = await statement("COMMIT");
    destroy = false;
    if (command !== "COMMIT") throw new TransactionAborted("COMMIT was answered with ROLLBACK");
    return result;
  } catch (error) {
    if (destroy && !(error instanceof TransactionAbandoned)) destroy = !(await statement("ROLLBACK").catch(() => null));
    throw error;
  } finally {
    client.removeListener("error", ignore);
    release(destroy);
  }
}

/** The body's own end counts, not the library's: it may think that all is over where the body ended the transaction. */
async function inside<Tx, R>({ client, open }: Borrowed<Tx>, body: (tx: Tx) => Promise<R>): Promise<R> {
  const quiet = quietClient(client);
  let running: Promise<R> | undefined;
  const opened = open(quiet.client, (tx) => {
    running = quiet.during(() => body(tx));
    return running;
  });
  await Promise.resolve(opened).catch((error: unknown) => running ?? Promise.reject(error));
  if (running === undefined) throw new Error("The library opened no transaction.");
  return await running;
}
