import type { Random } from "../../src/core/random.ts";
import type { Store } from "../../src/core/store.ts";
import type { Tables } from "../../src/stores/memory/tables.ts";
import type { WorldTransaction } from "./world.ts";

/** What a backend is told when it is made. */
export interface BackendTerms {
  /** The store's clock, in milliseconds since the epoch. */
  nowMs(): number;
  /** Where the store's own fences come from: the stream of the process whose step runs. */
  readonly random: Random;
}

/** Where the entries of a schedule live: the memory store, or PostgreSQL. New and empty for each schedule. */
export interface Backend {
  readonly name: "memory" | "postgres";
  /** The store as one process reaches it. */
  connect(process: string): Store<WorldTransaction>;
  /**
   * Resolves when everything that runs now has come to rest: the steps taken are settled, or wait for a lock, and the code
   * that they woke waits for its next steps. `unsettled`: how many steps that were taken have not been settled yet.
   */
  quiet(unsettled: () => number): Promise<void>;
  /** The store's clock was moved. */
  moved(): Promise<void>;
  /** Ends the connections of a process that died, but for the one of a transaction whose COMMIT is under way. */
  cut(process: string, spared: WorldTransaction | null): Promise<void>;
  /** All that the memory store holds; `null` where there is another store. */
  readonly tables: Tables | null;
}

/** Makes the backend of one schedule. */
export type MakeBackend = (terms: BackendTerms) => Backend | Promise<Backend>;
