import type { BodyStore } from "../core/body-store.ts";
import { OncekeyError } from "../core/errors.ts";
import type { StoreTraits } from "../core/store.ts";
import type { Operation } from "./operation.ts";
import type { Settings } from "./settings.ts";

/** What a row can hold, with the texts that drivers make of it and the JSON (256 MiB a string) in which a rotation sends it. */
const MOST_BYTES = 134_217_728;

/** Refuses settings under which outcomes could not be stored. Raises `oncekey_config_invalid`. */
export function checkStorageSettings(
  settings: Settings,
  traits: StoreTraits,
  operations: readonly Pick<Operation, "name" | "definition">[],
): void {
  const { bodyStore } = settings;
  for (const name of ["maxStoredBodyBytes", "bodyThresholdBytes"] as const) checkBytes(name, settings[name]);
  for (const { name, definition } of operations) {
    const { maxStoredBodyBytes } = definition;
    if (maxStoredBodyBytes !== undefined) checkBytes(`Operation ${name}: maxStoredBodyBytes`, maxStoredBodyBytes);
  }
  if (bodyStore === null) return;
  if (!isBodyStore(bodyStore)) {
    throw refused("bodyStore has no put, get and remove; make it by fileBodyStore or s3BodyStore");
  }
  if (traits.renews === true) return;
  // A body is noted in a commit of its own while its transaction is open.
  throw refused(
    "a bodyStore needs a connection beside the one of a transaction. Give the store a pool of at least two, or a control driver",
  );
}

function checkBytes(name: string, bytes: number): void {
  if (Number.isInteger(bytes) && bytes >= 0 && bytes <= MOST_BYTES) return;
  throw refused(`${name} is a whole number of bytes from 0 to ${MOST_BYTES}`);
}

function isBodyStore(given: unknown): boolean {
  const { put, get, remove } = given as Partial<BodyStore>;
  return [put, get, remove].every((method) => typeof method === "function");
}

function refused(what: string): OncekeyError {
  return new OncekeyError("oncekey_config_invalid", `${what}. Nothing was started.`);
}
