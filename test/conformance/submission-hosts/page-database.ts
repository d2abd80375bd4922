/** A look into a database of the page, beside the storage that is tested. */
export interface PageDatabase {
  /** Raises also where the commit fails. */
  put(value: unknown, key: string, store: string): Promise<void>;
  remove(): Promise<void>;
}

interface Request {
  readonly result: {
    transaction(store: string, mode: string): Transaction;
    close(): void;
  };
  readonly error: unknown;
  onsuccess: () => void;
  onerror: () => void;
  onblocked: () => void;
}

interface Transaction {
  readonly error: unknown;
  objectStore(name: string): { put(value: unknown, key: string): unknown };
  oncomplete: () => void;
  onabort: () => void;
}

const { indexedDB } = globalThis as unknown as {
  indexedDB: { open(name: string): Request; deleteDatabase(name: string): Request };
};

function done(request: Request): Promise<Request["result"]> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error("A connection stays open."));
  });
}

/** The database of that name. */
export function databaseIn(name: string): PageDatabase {
  return {
    async put(value, key, store) {
      const database = await done(indexedDB.open(name));
      const transaction = database.transaction(store, "readwrite");
      transaction.objectStore(store).put(value, key);
      await new Promise<void>((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error);
      }).finally(() => database.close());
    },
    async remove() {
      await done(indexedDB.deleteDatabase(name));
    },
  };
}
