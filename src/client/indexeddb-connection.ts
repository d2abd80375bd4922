/** The part of `IDBRequest` that is used. */
export interface Request {
  readonly result: unknown;
  readonly error: unknown;
  onsuccess: (() => void) | null;
  onerror: (() => void) | null;
}

/** The part of `IDBObjectStore` that is used; keys are given with each value. */
export interface ObjectStore {
  get(key: string): Request;
  getAll(): Request;
  put(value: unknown, key: string): Request;
  delete(key: string): Request;
  readonly transaction: { commit(): void };
}

interface Transaction {
  readonly error: unknown;
  objectStore(name: string): ObjectStore;
  oncomplete: (() => void) | null;
  onabort: (() => void) | null;
}

interface Database {
  createObjectStore(name: string): unknown;
  transaction(store: string, mode: Mode, options: { readonly durability: "strict" }): Transaction;
  close(): void;
  onversionchange: (() => void) | null;
  onclose: (() => void) | null;
}

interface OpenRequest extends Request {
  onupgradeneeded: (() => void) | null;
  onblocked: (() => void) | null;
}

type Mode = "readonly" | "readwrite";

/** A database that is opened when it is first used, and again after its connection ended. */
export interface Connection {
  /** Runs `work` in one transaction on the store; resolves with what it gave once the transaction is committed. */
  run<T>(store: string, mode: Mode, work: (store: ObjectStore) => T): Promise<T>;
}

/** A connection to the database of that name, made with these object stores where it does not exist. */
export function connection(name: string, stores: readonly string[]): Connection {
  let opened: Promise<Database> | null = null;
  const forget = () => {
    opened = null;
  };
  const database = (): Promise<Database> => {
    if (opened === null) {
      opened = open(name, stores, forget);
      opened.catch(forget);
    }
    return opened;
  };
  return {
    async run(store, mode, work) {
      const attempt = async () => committed((await database()).transaction(store, mode, STRICT), store, work);
      try {
        return await attempt();
      } catch (error) {
        if (!wasEnded(error)) throw error;
        forget();
        return attempt();
      }
    },
  };
}

const STRICT = { durability: "strict" } as const;

/** The browser ended the connection (the user cleared the site's data) before or in the transaction: nothing was written. */
function wasEnded(error: unknown): boolean {
  const { name } = error as { readonly name?: unknown };
  return name === "InvalidStateError" || name === "AbortError";
}

function committed<T>(transaction: Transaction, store: string, work: (store: ObjectStore) => T): Promise<T> {
  return new Promise((resolve, reject) => {
    transaction.onabort = () =>
      reject(transaction.error ?? new DOMException("The transaction was ended.", "AbortError"));
    const result = work(transaction.objectStore(store));
    // Not at the request's success: the commit after it can still fail.
    transaction.oncomplete = () => resolve(result);
  });
}

function open(name: string, stores: readonly string[], forget: () => void): Promise<Database> {
  const { indexedDB } = globalThis as { indexedDB?: { open(name: string, version: number): OpenRequest } };
  return new Promise((resolve, reject) => {
    if (indexedDB === undefined) throw new Error("There is no IndexedDB here. Choose another storage.");
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => {
      for (const store of stores) (request.result as Database).createObjectStore(store);
    };
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error(`Another tab keeps an old database "${name}" open. Close that tab.`));
    request.onsuccess = () => {
      const database = request.result as Database;
      // Another tab wants to change or delete the database: nobody is to wait for this page.
      database.onversionchange = () => {
        forget();
        database.close();
      };
      database.onclose = forget;
      resolve(database);
    };
  });
}
