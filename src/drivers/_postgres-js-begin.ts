import { closeNoticed, guarded } from "./_postgres-js-transaction.ts";

/**
 * BEGIN, body, COMMIT through Postgres.js, with a transaction that refuses every use after its end.
 */
export async function begun<R>(sql: any, body: (tx: any) => Promise<R>): Promise<R> {
  let isOver = false;
  const running = sql.begin(async (tx: any) => {
    try {
      // In a box: `begin` takes an array for a list of promises.
      return { result: await body(guarded(tx, () => isOver)) };
    } finally {
      // `begin` has rejected when the connection is lost. Its own ROLLBACK or COMMIT on the closed socket would be
      // an uncaught TypeError (porsager/postgres issue 1208), so it never learns that the body has ended.
      await closeNoticed();
      if (isOver) await new Promise(() => {});
    }
  });
  try {
    return (await running).result;
  } finally {
    isOver = true;
  }
}

/** Runs one statement, and waits with its error until the connection has noticed that it is lost. */
export async function unsafeRows(
  sql: any,
  statement: string,
  parameters: readonly unknown[],
  options: { readonly prepare?: boolean } = {},
): Promise<any[]> {
  try {
    return [...(await sql.unsafe(statement, [...parameters], options))];
  } catch (error) {
    await closeNoticed();
    throw error;
  }
}
