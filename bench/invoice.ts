import { createHash } from "node:crypto";

/** What the measured handler writes to; the same table for every variant. */
export const INVOICE_TABLE = `CREATE TABLE invoice (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  customer text NOT NULL,
  amount_minor bigint NOT NULL,
  note text NOT NULL
)`;

/** The one business statement of every variant, pgbench included. */
export const INSERT_INVOICE =
  "INSERT INTO invoice (customer, amount_minor, note) VALUES ($1::text, $2::bigint, $3::text) RETURNING id::text AS id";

/** What a client sends. */
export interface InvoiceInput {
  readonly customer: string;
  readonly amount_minor: number;
  readonly note: string;
}

/** The request of every client: the key alone tells them apart. */
export const INPUT: InvoiceInput = {
  customer: "cus_9f8e7d6c5b4a",
  amount_minor: 129_900,
  note: "Twelve chairs, delivered to the side entrance.",
};

/** Its bytes. */
export const REQUEST_BODY = JSON.stringify(INPUT);

/** What the handler answers. */
export interface Invoice extends InvoiceInput {
  readonly id: string;
  readonly status: "draft";
  readonly terms: string;
}

/** What is used of a `pg` client or pool. */
export interface Querying {
  query(statement: { name?: string; text: string; values: unknown[] }): Promise<{ rows: { id: string }[] }>;
}

/** The measured handler, whose answer is JSON of a given length. */
export interface InvoiceHandler {
  /** Inserts the row, as a named statement, and gives the answer's value. */
  insert(client: Querying, input: InvoiceInput): Promise<Invoice>;
}

/** Makes the handler. `answerBytes`: length of its answers as JSON; raises where that is too short for an invoice. */
export function invoiceHandler(answerBytes: number): InvoiceHandler {
  const bare = invoiceOf("0", INPUT, "");
  const terms = filler(answerBytes - JSON.stringify(bare).length);
  return {
    async insert(client, input) {
      const values = [input.customer, input.amount_minor, input.note];
      const { rows } = await client.query({ name: "insert_invoice", text: INSERT_INVOICE, values });
      return invoiceOf(rows[0]?.id ?? "", input, terms);
    },
  };
}

// All ids are of one length, and with them all answers.
const invoiceOf = (id: string, input: InvoiceInput, terms: string): Invoice => ({
  id: `inv_${id.padStart(12, "0")}`,
  status: "draft",
  ...input,
  terms,
});

/** Text that compresses about as well as prose does: what is stored compressed must not shrink to nothing. */
function filler(length: number): string {
  if (length < 0) throw new Error("The answer is too short for an invoice.");
  let text = "";
  for (let n = 0; text.length < length; n++) text += createHash("sha256").update(String(n)).digest("hex");
  return text.slice(0, length);
}
