import type { RequestListener } from "node:http";
import type pg from "pg";
import type { InvoiceHandler } from "../invoice.ts";

/** What a variant is given: the same for all. */
export interface VariantWorld {
  readonly url: string;
  /** Of the size that every variant has. */
  readonly pool: pg.Pool;
  readonly handler: InvoiceHandler;
  /** Of the Redis that peers keep their records in; `null`: there is none. */
  readonly redisPort: number | null;
  /** Loads a package of bench/peers. */
  readonly load: NodeRequire;
}

/** A variant that serves. */
export interface OpenVariant {
  /** Answers requests of `node:http`. */
  readonly listener: RequestListener;
  /** The same work without HTTP, called by as many callers as there are clients; absent where there is no such form. */
  readonly call?: (key: string) => Promise<void>;
  close?(): Promise<unknown>;
}

/** One way to do the measured work. */
export interface Variant {
  readonly name: string;
  /** One line for the report. */
  readonly title: string;
  open(world: VariantWorld): Promise<OpenVariant>;
}

/** The address of the peers' Redis. Raises where there is none. */
export function redisUrl(port: number | null): string {
  if (port === null) throw new Error("This variant needs a Redis.");
  return `redis://127.0.0.1:${port}`;
}
