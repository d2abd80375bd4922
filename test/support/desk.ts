import { createServer } from "node:http";

/** A desk of a run's `globalSetup`, at which test files (processes of their own) ask over a port of the loopback. */
export interface Desk {
  readonly port: number;
  close(): void;
}

/** Opens a desk. `serve` answers a request's path; what it raises is told to whoever asked. */
export async function openDesk(serve: (path: string) => Promise<string>): Promise<Desk> {
  const desk = createServer(async (request, response) => {
    try {
      response.end(await serve(request.url ?? ""));
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
  await new Promise<void>((done) => desk.listen(0, "127.0.0.1", done));
  desk.unref();
  const address = desk.address();
  if (address === null || typeof address === "string") throw new Error("The desk has no port.");
  return { port: address.port, close: () => void desk.close() };
}
