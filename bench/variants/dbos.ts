import { listenerOf, readBody, sendJson } from "../host.ts";
import type { Invoice, InvoiceInput } from "../invoice.ts";
import { inTransaction } from "./in-transaction.ts";
import type { Variant } from "./variant.ts";

type Workflow = (input: InvoiceInput) => Promise<Invoice>;

interface Dbos {
  setConfig(config: object): void;
  launch(): Promise<void>;
  shutdown(): Promise<void>;
  registerWorkflow(workflow: Workflow, options: object): Workflow;
  runStep<R>(step: () => Promise<R>, options: object): Promise<R>;
  startWorkflow(
    workflow: Workflow,
    options: { readonly workflowID: string },
  ): (input: InvoiceInput) => Promise<{ getResult(): Promise<Invoice> }>;
}

/** DBOS: a workflow whose id is the key, with the plain handler as its one step; its tables are in the same database. */
export const dbos: Variant = {
  name: "dbos",
  title: "DBOS on PostgreSQL",
  async open({ pool, handler, load, url }) {
    const { DBOS } = load("@dbos-inc/dbos-sdk") as { readonly DBOS: Dbos };
    const systemDatabasePoolSize = pool.options.max;
    DBOS.setConfig({ name: "bench", systemDatabaseUrl: url, systemDatabasePoolSize, logLevel: "error" });
    const workflow = DBOS.registerWorkflow(
      (input) =>
        DBOS.runStep(() => inTransaction(pool, (client) => handler.insert(client, input)), { name: "insertInvoice" }),
      { name: "createInvoice" },
    );
    await DBOS.launch();
    const listener = listenerOf(async (request, response) => {
      const input = JSON.parse(String(await readBody(request))) as InvoiceInput;
      const workflowID = String(request.headers["idempotency-key"]);
      const handle = await DBOS.startWorkflow(workflow, { workflowID })(input);
      sendJson(response, 201, JSON.stringify(await handle.getResult()));
    });
    return { listener, close: () => DBOS.shutdown() };
  },
};
