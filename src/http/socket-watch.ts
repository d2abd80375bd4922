import { AsyncLocalStorage } from "node:async_hooks";
import type { Socket } from "node:net";

/** Whose handler runs, and what it means when that handler reaches past its response to the connection. */
export interface ConnectionUser {
  readonly connection: Socket | null;
  /** The handler ends the connection. `false`: it may. */
  cuts(): boolean;
  /** The handler writes to the connection. `false`: it may. */
  writes(): boolean;
}

// Told apart by the async flow they come from: a connection is also cut by the client, a time-out or a server that stops,
// and none of these is the handler's doing.
const handling = new AsyncLocalStorage<ConnectionUser>();

/** Runs a handler's code as such. */
export function runHandler<T>(user: ConnectionUser, run: () => T): T {
  return handling.run(user, run);
}

/** Whether the caller is code of this handler. */
export function isHandler(user: ConnectionUser): boolean {
  return handling.getStore() === user;
}

const watched = new WeakSet<Socket>();

/**
 * Watches a connection for as long as it lives. What ends a request that failed half-way in Express, `req.socket.destroy()`,
 * says nothing on the response object; and bytes that are written past the response would escape the recording.
 */
export function watchConnection(connection: Socket | null): void {
  if (connection === null || watched.has(connection)) return;
  watched.add(connection);
  const user = () => {
    const current = handling.getStore();
    return current?.connection === connection ? current : undefined;
  };
  const { destroy, end, write } = connection;
  connection.destroy = (...given) => (user()?.cuts() === true ? connection : destroy.apply(connection, given));
  connection.end = (...given: unknown[]) =>
    user()?.cuts() === true ? connection : end.apply(connection, given as Parameters<typeof end>);
  connection.write = (...given: unknown[]) =>
    user()?.writes() === true ? true : write.apply(connection, given as unknown as Parameters<typeof write>);
}
