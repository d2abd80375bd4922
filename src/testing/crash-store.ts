import type { Session, Store, WithinTransaction } from "../core/store.ts";

/** A store, whatever its transactions are. */
export type AnyStore = Omit<Store, "transaction" | "within" | "owns" | "send">;

/** Whether a process lives. */
export interface Life {
  readonly died: Promise<void>;
  isDead(): boolean;
}

/** Rolls a transaction back whose process died; reaches nobody, because nobody lives who could catch it. */
class ProcessDied extends Error {
  override readonly name = "ProcessDied";
}

const never = (): Promise<never> => new Promise(() => {});

/** The same store for a process that may die: dead, it reaches nothing and hears nothing, and its transactions are undone. */
export function mortalStore<S extends AnyStore>(store: S, life: Life): S {
  const whole = store as unknown as Store<unknown>;
  const transaction = mortalTransaction(whole, life);
  const within = (tx: unknown): WithinTransaction<unknown> => mortal(whole.within(tx), life);
  return mortal(store, life, {
    transaction,
    within,
    outbox: mortal(store.outbox, life),
    bodies: mortal(store.bodies, life),
  });
}

/** As PostgreSQL does when a connection breaks: what is not committed is rolled back, and its locks are free. */
function mortalTransaction(store: Store<unknown>, life: Life): Store<unknown>["transaction"] {
  return (body) => {
    if (life.isDead()) return never();
    const undone = life.died.then((): never => {
      throw new ProcessDied();
    });
    undone.catch(() => {});
    const inLife = (session: Session<unknown>) => Promise.race([body(mortal(session, life)), undone]);
    return whileAlive(store.transaction(inLife), life);
  };
}

/** The object, with every method that gives a promise bound to the process's life; `own` members take the place of others. */
function mortal<T extends object>(target: T, life: Life, own: object = {}): T {
  return new Proxy(target, {
    get(_target, name) {
      if (Object.hasOwn(own, name)) return Reflect.get(own, name);
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...given: unknown[]) => {
        if (life.isDead()) return never();
        const result: unknown = member.apply(target, given);
        return isPromise(result) ? whileAlive(result, life) : result;
      };
    },
  });
}

/** Also one of another realm, as test frameworks make them. */
const isPromise = (value: unknown): value is Promise<unknown> =>
  typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";

/** The promise, of which a dead process hears nothing. */
function whileAlive<T>(promise: Promise<T>, life: Life): Promise<T> {
  return new Promise((resolve, reject) => {
    promise.then(
      (value) => life.isDead() || resolve(value),
      (error) => life.isDead() || reject(error),
    );
  });
}
