/** Try-locks that are held until their transaction ends. */
export interface AdvisoryLocks {
  /** `true`: held now, or held by the same transaction already. Never waits. */
  tryAcquire(name: string, holder: object): boolean;
  isHeld(name: string): boolean;
  releaseAll(holder: object): void;
}

/** Makes an empty set of try-locks. */
export function advisoryLocks(): AdvisoryLocks {
  const holders = new Map<string, object>();
  return {
    tryAcquire(name, holder) {
      const current = holders.get(name);
      if (current === undefined) holders.set(name, holder);
      return current === undefined || current === holder;
    },
    isHeld: (name) => holders.has(name),
    releaseAll(holder) {
      for (const [name, current] of [...holders]) if (current === holder) holders.delete(name);
    },
  };
}
