import type { PspRecover } from "../../examples/payments/settings.ts";

/** How an API process of the campaign works. */
export interface ApiSettings {
  /** Through the router. */
  readonly databaseUrl: string;
  readonly pspUrl: string;
  readonly pspRecover: PspRecover;
}

/** What an API process tells of: a message that its relay has delivered. */
export interface Delivered {
  readonly id: string;
  readonly topic: string;
  readonly payload: string;
}

/** Times of the API processes in milliseconds: short, so that what a failover leaves behind is settled within a round. */
export const API_TIMES = { leaseMs: 5_000, waitMs: 2_000, maxDurationMs: 10_000 };
