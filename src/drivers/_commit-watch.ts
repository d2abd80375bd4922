import { TransactionAborted } from "../stores/postgres/driver-port.ts";
import type { BeneathClient } from "./_pg-client.ts";

/**
 * Looks at what the server answers to COMMIT; ORMs do not. From now on, or from `watch` on. `proven` passes on how the
 * ORM's transaction ends, and raises {@link TransactionAborted} where it ended well without a COMMIT.
 */
export function commitWatch(client?: BeneathClient) {
  const answers: string[] = [];
  let watched: BeneathClient["connection"];
  const note = ({ text }: { text: string }) => {
    if (/^(?:COMMIT|ROLLBACK)$/.test(text)) answers.push(text);
  };
  const watch = (on: BeneathClient | undefined): void => {
    watched = on?.connection;
    watched?.on("commandComplete", note);
  };
  watch(client);
  return {
    watch,
    async proven<R>(ending: Promise<R>): Promise<R> {
      // Sequelize wraps what the server said to COMMIT.
      const raise = (error: any) => Promise.reject((watched && error?.original) ?? error);
      const result = await ending.catch(raise).finally(() => watched?.removeListener("commandComplete", note));
      const isCommitted = answers.at(-1) === "COMMIT";
      if (watched !== undefined && !isCommitted) throw new TransactionAborted("COMMIT was not carried out");
      // A nested transaction that nobody awaited was rolled back to its savepoint, and what was ours with it, or not.
      if (answers.length > 1) throw new Error("More was rolled back than the transaction. Ask for what was committed.");
      return result;
    },
  };
}
