import { capture } from "./capture.ts";
import { dbos } from "./dbos.ts";
import { expressIdempotency } from "./express-idempotency.ts";
import { handwritten } from "./handwritten.ts";
import { nodeIdempotency } from "./node-idempotency.ts";
import { phases } from "./phases.ts";
import { plain } from "./plain.ts";
import { powertools } from "./powertools.ts";
import { read } from "./read.ts";
import { transaction } from "./transaction.ts";
import { transactionExpress } from "./transaction-express.ts";
import type { Variant } from "./variant.ts";

/** Every variant that serves, one row each. */
const VARIANTS: readonly Variant[] = [
  plain,
  read,
  handwritten(),
  handwritten({ named: false }),
  transaction(),
  transaction({ named: false }),
  phases,
  capture(),
  capture({ groups: true }),
  capture({ groups: false }),
  transactionExpress,
  nodeIdempotency,
  expressIdempotency,
  powertools,
  dbos,
];

/** The variant of a name. Raises where there is none. */
export function variantOf(name: string): Variant {
  const found = VARIANTS.find((variant) => variant.name === name);
  if (found === undefined) throw new Error(`There is no variant ${name}.`);
  return found;
}
