/** A handler that has ended while a transaction nested in its own goes on. The code is PostgreSQL's for such a state. */
export function overWhileNested(): Error {
  const message =
    "The handler ended while a nested transaction was open. All was rolled back. Await nested transactions.";
  return Object.assign(new Error(message), { code: "25001" });
}
