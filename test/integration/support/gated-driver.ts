import type { Driver } from "oncekey/postgres";
import { statements } from "../../../src/stores/postgres/sql.gen.ts";
import { type Gate, gate } from "../../support/gate.ts";

/** A driver that holds statements back when told to, and remembers what it sent. */
export interface GatedDriver<Tx> {
  readonly driver: Driver<Tx>;
  /** The names of our statements since the last call, in the order in which they were asked for. */
  take(): string[];
  /** Holds the next statement of that name back until the gate is opened. */
  hold(name: keyof typeof statements): Gate;
  /** Puts an error in the place of the next statement of that name. */
  fail(name: keyof typeof statements, error: Error): void;
}

const names = new Map<string, string>(Object.entries(statements).map(([name, sql]) => [sql, name]));

/** Wraps a driver. */
export function gatedDriver<Tx>(inner: Driver<Tx>): GatedDriver<Tx> {
  let sent: string[] = [];
  const held = new Map<string, Gate>();
  const failing = new Map<string, Error>();
  const taken = <Value>(from: Map<string, Value>, name: string): Value | undefined => {
    const value = from.get(name);
    from.delete(name);
    return value;
  };
  return {
    driver: {
      ...inner,
      async run(sql, parameters, tx) {
        const name = names.get(sql) ?? sql;
        sent.push(name);
        await taken(held, name)?.promise;
        const error = taken(failing, name);
        if (error !== undefined) throw error;
        return inner.run(sql, parameters, tx);
      },
    },
    take() {
      const before = sent;
      sent = [];
      return before;
    },
    hold(name) {
      const closed = gate();
      held.set(name, closed);
      return closed;
    },
    fail: (name, error) => void failing.set(name, error),
  };
}
