import type pg from "pg";

/** BEGIN, body, COMMIT on one client of the pool, as it is written by hand; ROLLBACK where the body rejects. */
export async function inTransaction<R>(pool: pg.Pool, body: (client: pg.PoolClient) => Promise<R>): Promise<R> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const result = await body(client);
    const { command } = await client.query("COMMIT");
    if (command !== "COMMIT") throw new Error("The transaction was rolled back.");
    client.release();
    return result;
  } catch (error) {
    await client.query("ROLLBACK").then(
      () => client.release(),
      () => client.release(true),
    );
    throw error;
  }
}
