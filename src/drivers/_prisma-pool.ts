/** What is used of the `pg` pool behind Prisma's adapter. */
export interface PrismaPool {
  readonly options: { readonly max?: number | undefined };
  on(event: "connect", listener: (client: any) => void): unknown;
}

/**
 * Gives connections back that broke inside a transaction. Prisma 6 forgets them (6.19.3: after a COMMIT or ROLLBACK that
 * failed nothing is released), so that each takes its place in the pool away for good. Prisma 7 releases them itself.
 */
export function releaseBroken(pool: PrismaPool, clientVersion: unknown): void {
  if (!/^[0-6]\./.test(String(clientVersion))) return;
  pool.on("connect", (client) =>
    client.once("end", () => {
      try {
        client.release(true);
      } catch {
        // It was idle, and the pool has dropped it already.
      }
    }),
  );
}
