/** What is used of a transaction of Postgres.js. */
export interface PostgresJsTransaction {
  unsafe(query: string, parameters?: any[], options?: { prepare?: boolean }): PromiseLike<readonly any[]>;
}

/**
 * A socket's close comes one phase of the event loop after its error. A statement sent in between is never answered, and
 * spoils the connection for whoever gets it next.
 */
export async function closeNoticed(): Promise<void> {
  await new Promise(setImmediate);
  await new Promise(setImmediate);
}

/**
 * A transaction of Postgres.js that refuses every use after its end: a lost connection may be opened again for others,
 * and statements would run outside any transaction (porsager/postgres issue 1133).
 */
export function guarded(tx: any, isOver: () => boolean): any {
  const use = <T>(value: T): T => {
    if (isOver()) throw Object.assign(new Error("The transaction is over."), { code: "CONNECTION_CLOSED" });
    return value;
  };
  const wrapped = (arg: unknown) => (typeof arg === "function" ? (inner: any) => arg(guarded(inner, isOver)) : arg);
  return new Proxy(tx, {
    apply: (target, self, args) => Reflect.apply(use(target), self, args),
    get: (target, name) =>
      name === "savepoint" || name === "unsafe" || name === "file"
        ? (...args: any[]) => use(target)[name](...(name === "savepoint" ? args.map(wrapped) : args))
        : target[name],
  });
}
