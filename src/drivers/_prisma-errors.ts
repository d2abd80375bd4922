/** What the adapter of Prisma says of a failure: of the server's answer, or of a connection without one. */
function reported(error: any): any {
  return (error?.meta?.driverAdapterError ?? error)?.cause;
}

const UNREACHABLE = /^(?:DatabaseNotReachable|ConnectionClosed|SocketTimeout|TlsConnectionError)$/;

/**
 * The failure as the server told it, SQLSTATE in `code`; `null` where Prisma's error is all there is. Without what
 * PostgreSQL calls the detail: it may show a whole row.
 */
function answered(error: any): Error | null {
  const { originalCode, originalMessage, kind } = reported(error) ?? {};
  if (typeof originalCode === "string") return Object.assign(new Error(originalMessage), { code: originalCode });
  const noConnection = error?.code === "P2028" && /Unable to start a transaction/.test(error.message);
  if (!noConnection && !UNREACHABLE.test(kind)) return null;
  return Object.assign(new Error("Prisma has no connection to the database."), { code: "CONNECTION_CLOSED" });
}

/** Raises what a statement of ours failed with, as the driver port promises it. */
export function raiseAnswered(error: unknown): never {
  throw answered(error) ?? error;
}

/** Prisma's own error, for business code; what the server said is added as its `cause`, where Prisma hid it elsewhere. */
export function raiseWithCause(error: any): never {
  const cause = answered(error);
  if (cause !== null && error.cause === undefined) {
    Object.defineProperty(error, "cause", { value: cause, configurable: true, writable: true });
  }
  throw error;
}
