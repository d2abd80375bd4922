import type { Route } from "../route.ts";
import { AuditPage } from "./audit.tsx";
import { ClientsPage } from "./clients.tsx";
import { EntriesPage } from "./entries.tsx";
import { EntryPage } from "./entry.tsx";
import { OutboxPage } from "./outbox.tsx";
import { OverviewPage } from "./overview.tsx";
import { UnresolvedPage } from "./unresolved.tsx";
import { UpkeepPage } from "./upkeep.tsx";

/** The page of a route. */
export function Pages({ route }: { readonly route: Route }) {
  switch (route.page) {
    case "overview":
      return <OverviewPage />;
    case "entries":
      return route.id === null ? <EntriesPage query={route.query} /> : <EntryPage key={route.id} id={route.id} />;
    case "unresolved":
      return <UnresolvedPage />;
    case "outbox":
      return <OutboxPage state={route.query.get("state") === "pending" ? "pending" : "dead"} />;
    case "clients":
      return <ClientsPage />;
    case "upkeep":
      return <UpkeepPage />;
    case "audit":
      return <AuditPage />;
  }
}
