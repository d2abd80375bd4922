import { type WireProxy, wireProxy } from "../support/wire-proxy.ts";
import type { Ports } from "./ports.ts";

/** Every wire of the service goes through a proxy that can harm it. */
export interface Network {
  /** Clients to the three APIs, in turn. */
  readonly front: WireProxy;
  readonly frontUrl: string;
  /** To PostgreSQL, one for each kind of process. */
  readonly database: Readonly<Record<"api" | "worker" | "relay", WireProxy>>;
  readonly databaseUrls: Readonly<Record<"api" | "worker" | "relay", string>>;
  readonly psp: WireProxy;
  readonly pspUrl: string;
  close(): Promise<void>;
}

/** Opens the proxies. */
export async function openNetwork(ports: Ports, databaseUrl: string): Promise<Network> {
  const through = ({ port }: WireProxy) => Object.assign(new URL(databaseUrl), { port: String(port) }).href;
  const at = ({ port }: WireProxy) => `http://127.0.0.1:${port}`;
  const [front, psp] = [await wireProxy(ports.apis), await wireProxy([ports.psp])];
  const [api, worker, relay] = await Promise.all([1, 2, 3].map(() => wireProxy([ports.database])));
  if (api === undefined || worker === undefined || relay === undefined) throw new Error("A proxy is missing.");
  return {
    ...{ front, frontUrl: at(front), psp, pspUrl: at(psp) },
    database: { api, worker, relay },
    databaseUrls: { api: through(api), worker: through(worker), relay: through(relay) },
    close: async () => void (await Promise.all([front, psp, api, worker, relay].map((one) => one.close()))),
  };
}
