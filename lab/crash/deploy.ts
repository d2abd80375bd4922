import { createHash } from "node:crypto";

/** What is deployed at the moment: secrets and version, as the environment of every process of the service. */
export interface Deploy {
  env(): Readonly<Record<string, string>>;
  /** The next key seals from now on; the one after it is known already, so that a process that is late can read. */
  rotateKeys(): void;
  /** Newer fingerprints, and a newer version of the operations. */
  upgrade(): void;
  /** Every secret that any process was ever given, as it was written. */
  secrets(): readonly string[];
}

const FIRST = 1;

/** The deploys of a seed: the same secrets in the same order. */
export function deploysOf(seed: number): Deploy {
  let key = FIRST;
  let version = FIRST;
  const secret = (kind: string, id: number) =>
    createHash("sha256").update(`oncekey lab ${seed} ${kind} ${id}`).digest("base64");
  const ring = (kind: string, ids: readonly number[]) =>
    ids
      .filter((id) => id >= FIRST)
      .map((id) => `${id}:${secret(kind, id)}`)
      .join(",");
  return {
    env: () => ({
      ONCEKEY_ENCRYPTION_KEYS: ring("key", [key, key + 1, key - 1]),
      ONCEKEY_FINGERPRINT_SECRETS: ring("fingerprint", [version, version - 1]),
      ONCEKEY_OPERATION_VERSION: String(version),
    }),
    rotateKeys() {
      key++;
    },
    upgrade() {
      version++;
    },
    secrets: () =>
      (["key", "fingerprint"] as const).flatMap((kind) =>
        Array.from({ length: (kind === "key" ? key : version) + 1 }, (_, index) => secret(kind, index + FIRST)),
      ),
  };
}
