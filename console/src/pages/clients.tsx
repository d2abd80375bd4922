import { clientFindings, type Finding } from "../data/clients.ts";
import { useLoad } from "../load.ts";
import { EntryLink, When } from "../parts/facts.tsx";
import { Empty, Failed, Loading } from "../parts/states.tsx";
import { count } from "../words.ts";

const TITLES: Readonly<Record<Finding["kind"], string>> = {
  key_per_attempt: "A new key for each attempt",
  key_from_payload: "Keys made of the payload",
  mismatches: "One key for different payloads",
};

/** Clients that use their keys so that they do not protect them. */
export function ClientsPage() {
  const { value, error, reload } = useLoad("clients", clientFindings);
  return (
    <>
      <h1>Clients</h1>
      <p class="lead">Clients whose keys do not protect them, from a sample of the latest entries.</p>
      {error === null ? null : <Failed error={error} retry={() => reload()} />}
      {value === null && error === null ? <Loading what="what was found" /> : null}
      {value === null ? null : (
        <>
          {value.findings.length === 0 ? (
            <Empty title="Nothing stands out">The clients in the sample use their keys as they should.</Empty>
          ) : (
            <ul class="cards">
              {value.findings.map((finding) => (
                <FindingCard
                  key={`${finding.kind} ${finding.tenant} ${finding.client} ${finding.operation}`}
                  finding={finding}
                />
              ))}
            </ul>
          )}
          <p class="quiet">
            Looked at {count(value.sampled.entries)} entries, first claimed <When at={value.sampled.fromAt} /> to{" "}
            <When at={value.sampled.toAt} />.
          </p>
        </>
      )}
    </>
  );
}

function FindingCard({ finding }: { readonly finding: Finding }) {
  const { kind, tenant, client, operation, count: times, firstAt, lastAt, entryIds, advice } = finding;
  return (
    <li class="card">
      <h2>
        {TITLES[kind] ?? kind} <span class="badge warn">{count(times)} times</span>
      </h2>
      <p>
        {tenant}
        {client === null ? "" : ` / ${client}`}, {operation}
      </p>
      <p>{advice}</p>
      <p class="quiet">
        <When at={firstAt} /> to <When at={lastAt} />
      </p>
      {entryIds.length === 0 ? null : (
        <p class="ids">
          {entryIds.map((id) => (
            <EntryLink key={id} id={id} />
          ))}
        </p>
      )}
    </li>
  );
}
