import { memoryStore } from "../../src/stores/memory/index.ts";
import { tablesOf } from "../../src/stores/memory/tables.ts";
import type { Backend, BackendTerms } from "./backend.ts";

/** The memory store as a backend. The engine over it is made of promises alone, so one turn of the event loop is rest. */
export function memoryBackend({ nowMs, random }: BackendTerms): Backend {
  const store = memoryStore({ clock: nowMs, random });
  return {
    name: "memory",
    connect: () => store,
    quiet: () => new Promise((resolve) => setImmediate(resolve)),
    moved: async () => {},
    cut: async () => {},
    tables: tablesOf(store),
  };
}
