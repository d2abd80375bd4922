/** A transaction that the caller opened, for `once.run`. */
export interface OpenedTransaction<Tx> {
  readonly tx: Tx;
}

/**
 * Lets `once.run` work in a transaction that you opened, and will commit or roll back:
 * `once.run(operation, { scope, key, input, transaction: fromTransaction(tx) })`. `tx` is what the store's driver hands to
 * operations. It must be open, must not have written yet, and takes one key.
 */
export function fromTransaction<Tx>(tx: Tx): OpenedTransaction<Tx> {
  return { tx };
}
