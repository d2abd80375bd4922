import { startTestServer } from "./postgres-server.ts";

/**
 * Vitest's `globalSetup`: one server for the whole run. Without it each test file that needs a database starts its own,
 * which costs 1.5 s a file.
 */
export async function setup(): Promise<() => Promise<void>> {
  const server = await startTestServer();
  process.env.ONCEKEY_TEST_POSTGRES = String(server.port);
  return () => server.close();
}
