import { createServer } from "node:http";
import { bundleExample, removePrograms } from "./example-programs.ts";

/**
 * Vitest's `globalSetup`: the example's programs are bundled once a run, and only when a test file asks for them (over a
 * port of the loopback, since test files are processes of their own).
 */
export async function setup(): Promise<() => Promise<void>> {
  let made: Promise<string> | undefined;
  const desk = createServer(async (_request, response) => {
    try {
      made ??= bundleExample();
      response.end(await made);
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
  await new Promise<void>((done) => desk.listen(0, "127.0.0.1", done));
  desk.unref();
  const address = desk.address();
  if (address === null || typeof address === "string") throw new Error("The desk has no port.");
  process.env.ONCEKEY_TEST_PROGRAMS = String(address.port);
  return async () => {
    desk.close();
    await made?.then(removePrograms, () => {});
  };
}
