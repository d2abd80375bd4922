/** A row that only a real database, or a check at start, can show: the test that shows it. */
export interface Elsewhere {
  readonly id: string;
  readonly why: string;
  /** File and part of the title. `null`: there is nothing here that could break. */
  readonly test: { readonly file: string; readonly title: string } | null;
}

/** Rows that no world shows. */
export const elsewhere: readonly Elsewhere[] = [
  {
    id: "V21",
    why: "COMMIT that answers ROLLBACK is PostgreSQL's own; the memory store raises instead",
    test: { file: "test/integration/engine-drivers.test.ts", title: "is a clear error (V21)" },
  },
  {
    id: "V22",
    why: "business code of a world has no COMMIT of its own to send",
    test: { file: "test/integration/engine-drivers.test.ts", title: "is a clear error (V22)" },
  },
  {
    id: "V23",
    why: "the partitioned layout is PostgreSQL's own: there the world of V17 is driven beside the memory store",
    test: { file: "test/unit/explore-postgres.test.ts", title: "that phases code has claimed meanwhile (V23)" },
  },
  {
    id: "Q5",
    why: "a host that dies without a word leaves its transaction to the server's idle time-out",
    test: { file: "test/integration/engine-zombies.test.ts", title: "a host that is gone without a word (Q5)" },
  },
  {
    id: "Q6",
    why: "the memory store has no pool whose connections could run out",
    test: { file: "test/integration/engine-pool.test.ts", title: "leases while business holds connections (Q6)" },
  },
];
