import { StoreFailure } from "oncekey";
import { describe, expect, it } from "vitest";
import { TransactionAborted } from "../../src/stores/postgres/driver-port.ts";
import { commitFailure, looksDisconnected, ownFailure, serverFailure } from "../../src/stores/postgres/errors.ts";

const coded = (code: string, more: object = {}) => Object.assign(new Error("of the driver"), { code, ...more });

describe("what the server's answers mean", () => {
  const kinds: Record<string, readonly string[]> = {
    contention: ["40001", "40P01", "55P03"],
    aborted: ["25P02"],
    timeout: ["57014", "25P03", "25P04", "57P05"],
    unavailable: ["08006", "08001", "57P01", "57P02", "57P03", "53300", "53100", "25006"],
  };
  for (const [kind, states] of Object.entries(kinds)) {
    for (const state of states) {
      it(`${state} is ${kind}`, () => {
        expect(serverFailure(coded(state))).toMatchObject({ kind });
      });
    }
  }

  it("finds the SQLSTATE below what an ORM wrapped around it", () => {
    const wrapped = new Error("query failed", { cause: new Error("again", { cause: coded("40001") }) });
    expect(serverFailure(wrapped)).toMatchObject({ kind: "contention", cause: wrapped });
  });

  it("leaves the business's own violations alone", () => {
    for (const state of ["23505", "23503", "23514", "22P02", "P0001"]) expect(serverFailure(coded(state))).toBeNull();
  });

  it("does not mistake EPIPE for an SQLSTATE, nor survive a cause that points at itself", () => {
    expect(serverFailure(coded("EPIPE"))).toBeNull();
    const circular: { cause?: unknown } = new Error("round");
    circular.cause = circular;
    expect(serverFailure(circular)).toBeNull();
  });
});

describe("failures of our own statements", () => {
  it("a unique violation of the entry's key is a conflict, however the driver spells the constraint", () => {
    const spellings = [{ constraint: "entry_pkey" }, { constraint_name: "entry_pkey" }];
    for (const spelling of spellings) {
      expect(ownFailure(coded("23505", spelling))).toMatchObject({ kind: "conflict" });
    }
    const onlyText = Object.assign(new Error('duplicate key value violates unique constraint "entry_pkey"'), {
      code: "23505",
    });
    expect(ownFailure(onlyText)).toMatchObject({ kind: "conflict" });
  });

  it("a unique violation of another key passes as it is", () => {
    const error = coded("23505", { constraint: "invoices_pkey" });
    expect(ownFailure(error)).toBe(error);
  });

  for (const code of ["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "CONNECTION_CLOSED", "CONNECT_TIMEOUT"]) {
    it(`${code} is unavailable`, () => {
      expect(ownFailure(coded(code))).toMatchObject({ kind: "unavailable" });
    });
  }

  it("knows node-postgres' connection errors that have no code", () => {
    for (const message of ["Connection terminated unexpectedly", "timeout exceeded when trying to connect"]) {
      expect(looksDisconnected(new Error(message))).toBe(true);
    }
    expect(looksDisconnected(new Error("of the business"))).toBe(false);
  });

  it("passes a StoreFailure as it is, and never quotes the driver's message", () => {
    const failure = new StoreFailure("conflict", "known");
    expect(ownFailure(failure)).toBe(failure);
    const secret = Object.assign(new Error("Key (key)=(sk_secret) already exists"), { code: "40001" });
    expect((ownFailure(secret) as Error).message).not.toContain("sk_secret");
  });
});

describe("failures of COMMIT", () => {
  it("is unknown without a verdict of the server", () => {
    for (const error of [coded("ECONNRESET"), coded("CONNECTION_CLOSED"), new Error("Connection terminated")]) {
      expect(commitFailure(error)).toMatchObject({ kind: "commit_unknown" });
    }
  });

  it("is unknown when the server went away while it committed", () => {
    for (const state of ["57P01", "57P02", "08006", "08007", "40003"]) {
      expect(commitFailure(coded(state))).toMatchObject({ kind: "commit_unknown" });
    }
  });

  it("is what the server said where it did say something", () => {
    expect(commitFailure(coded("40001"))).toMatchObject({ kind: "contention" });
    expect(commitFailure(coded("25P03"))).toMatchObject({ kind: "timeout" });
    expect(commitFailure(new TransactionAborted("ROLLBACK"))).toMatchObject({ kind: "aborted" });
    const deferred = coded("23503", { constraint: "invoice_customer_fkey" });
    expect(commitFailure(deferred)).toBe(deferred);
  });
});
