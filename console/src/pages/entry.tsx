import { useState } from "preact/hooks";
import { type EntryView, entryView, type OutcomeSummary } from "../data/entries.ts";
import { useLive } from "../live.ts";
import { useChange, useLoad } from "../load.ts";
import { Facts, StateBadge, When } from "../parts/facts.tsx";
import { DoneNotice, Failed, Loading } from "../parts/states.tsx";
import { Table } from "../parts/table.tsx";
import { useOperator } from "../session.ts";
import { bytes, shortId } from "../words.ts";
import { DecisionButtons } from "./decide.tsx";
import { MESSAGE_COLUMNS } from "./outbox.tsx";
import { RevealButtons } from "./reveal.tsx";
import { Timeline } from "./timeline.tsx";

/** One entry: what it is, what happened to it, and what can be done. */
export function EntryPage({ id }: { readonly id: string }) {
  const [done, setDone] = useState<string | null>(null);
  const loaded = useLoad(id, (asking) => entryView(id, asking));
  const { value, error, reload } = loaded;
  const isOpen = value !== null && value.entry.expiresAt === null;
  const tick = useLive().overview?.now;
  // An open entry goes on while one looks.
  useChange(tick, () => {
    if (isOpen) reload(true);
  });
  const decided = (message: string) => {
    setDone(message);
    reload();
  };
  return (
    <>
      <h1>
        Entry <span class="mono">{shortId(id)}</span>
      </h1>
      <DoneNotice text={done} />
      {error === null ? null : <Failed error={error} retry={() => reload()} />}
      {value === null && error === null ? <Loading what="the entry" /> : null}
      {value === null ? null : <Shown view={value} onDone={decided} onRevealed={() => reload()} />}
    </>
  );
}

interface Showing {
  readonly view: EntryView;
  readonly onDone: (message: string) => void;
  readonly onRevealed: () => void;
}

function Shown({ view, onDone, onRevealed }: Showing) {
  const { entry, timeline, messages, messagesHidden } = view;
  return (
    <>
      <p class="lead">
        <StateBadge state={entry.state} /> {entry.operation} for {entry.tenant}
        {entry.client === null ? "" : ` / ${entry.client}`}
      </p>
      {entry.reason === null ? null : <p class="notice bad">{entry.reason}</p>}
      <Decisions view={view} onDone={onDone} />
      <div class="columns">
        <section aria-labelledby="timeline">
          <h2 id="timeline">Timeline</h2>
          <Timeline items={timeline} />
        </section>
        <section aria-labelledby="facts">
          <h2 id="facts">Facts</h2>
          <EntryFacts entry={entry} />
          <RevealButtons id={entry.id} onRevealed={onRevealed} />
        </section>
      </div>
      <section aria-labelledby="messages">
        <h2 id="messages">Messages</h2>
        {messages.length === 0 ? <p class="quiet">{messagesHidden ?? "The outbox holds none of it."}</p> : null}
        {messages.length > 0 ? (
          <Table
            caption="Messages of this entry"
            columns={MESSAGE_COLUMNS}
            items={messages}
            keyOf={(message) => message.id}
          />
        ) : null}
      </section>
    </>
  );
}

function Decisions({ view: { entry, decisions }, onDone }: Pick<Showing, "view" | "onDone">) {
  const { readOnly } = useOperator();
  const { mayResolve, mayRetry, why, attempt } = decisions;
  return (
    <div class="decisions">
      {mayResolve && !readOnly ? (
        <DecisionButtons row={{ ...entry, attempt }} mayRetry={mayRetry} onDone={onDone} />
      ) : null}
      {why === null ? null : <p class="quiet">{why}</p>}
    </div>
  );
}

function EntryFacts({ entry }: { readonly entry: EntryView["entry"] }) {
  const when = (at: string | null) => (at === null ? null : <When at={at} />);
  return (
    <Facts
      facts={[
        ["Id", <span class="mono break">{entry.id}</span>],
        ["Key", <span class="mono">{entry.key}</span>],
        ["Run kind", `${entry.runKind}, version ${entry.version}`],
        ["Attempt", entry.attempt],
        ["Status", entry.status],
        ["Recovery point", entry.recoveryPoint],
        ["First claimed", when(entry.createdAt)],
        ["Completed", when(entry.completedAt)],
        ["Lease until", when(entry.leaseUntil)],
        ["Rests until", when(entry.notBefore)],
        ["Sweeper asks", when(entry.sweepAt)],
        ["Nothing can land after", when(entry.settlesAt)],
        ["Expires", when(entry.expiresAt)],
        ["Late retries refused until", when(entry.tombstoneUntil)],
        ["Correlation", entry.correlation === null ? null : <span class="mono break">{entry.correlation}</span>],
        ["Outcome", <Outcome outcome={entry.outcome} />],
      ]}
    />
  );
}

function Outcome({ outcome }: { readonly outcome: OutcomeSummary }) {
  const { kind, why, bodyBytes, bodySha256, headerNames, storedBytes, keyId, pointer } = outcome;
  if (kind === "none") return <>none yet</>;
  if (kind === "gone") return <>stored once, no longer kept</>;
  const parts = [
    kind,
    bodyBytes === undefined ? null : `body of ${bytes(bodyBytes)}`,
    storedBytes === undefined ? null : `${bytes(storedBytes)} stored`,
    keyId === null || keyId === undefined ? null : `sealed under key ${keyId}`,
    pointer === null || pointer === undefined ? null : "its body lies in the body store",
    headerNames === undefined || headerNames.length === 0 ? null : `headers ${headerNames.join(", ")}`,
    why ?? null,
  ];
  return (
    <>
      {parts.filter((part) => part !== null).join("; ")}
      {bodySha256 ? <span class="mono break quiet"> sha256 {bodySha256}</span> : null}
    </>
  );
}
