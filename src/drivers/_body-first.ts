/**
 * Runs a body in a library's transaction. The body's own error is raised, where it has one: a library whose ROLLBACK fails
 * on a lost connection tells of that instead.
 */
export async function bodyFirst<Tx, R>(
  open: (inside: (tx: Tx) => Promise<R>) => Promise<unknown>,
  body: (tx: Tx) => Promise<R>,
): Promise<R> {
  let ended: { readonly error: unknown } | undefined;
  const inside = async (tx: Tx) => {
    try {
      return await body(tx);
    } catch (error) {
      ended = { error };
      throw error;
    }
  };
  try {
    return (await open(inside)) as R;
  } catch (error) {
    throw ended === undefined ? error : ended.error;
  }
}
