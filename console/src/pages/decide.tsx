import { useState } from "preact/hooks";
import { type Decision, type Row, resolve, retryNow } from "../data/entries.ts";
import { Confirm } from "../parts/confirm.tsx";
import { Choice, Field, Lines } from "../parts/field.tsx";

/** What a decision is about. */
export type Decided = Pick<Row, "id" | "operation" | "runKind" | "attempt">;

/** The entry as it stood when its dialog opened: an attempt that came since must not slip under the decision. */
interface Deciding {
  readonly act: "resolve" | "retry" | "release";
  readonly row: Decided;
}

/** The three things that can be done about an entry nobody knows the end of. */
export function DecisionButtons({
  row,
  mayRetry,
  onDone,
}: {
  readonly row: Decided;
  readonly mayRetry: boolean;
  readonly onDone: (message: string) => void;
}) {
  const [deciding, setDeciding] = useState<Deciding | null>(null);
  const close = () => setDeciding(null);
  const open = (act: Deciding["act"]) => () => setDeciding({ act, row });
  const done = (message: string) => {
    close();
    onDone(message);
  };
  return (
    <div class="actions">
      <button type="button" onClick={open("resolve")}>
        Resolve …
      </button>
      {mayRetry ? (
        <button type="button" onClick={open("retry")}>
          Retry now …
        </button>
      ) : null}
      <button type="button" onClick={open("release")}>
        Release …
      </button>
      {deciding === null ? null : <DecisionDialog {...deciding} onDone={done} onClose={close} />}
    </div>
  );
}

const DIALOGS = { resolve: ResolveDialog, retry: RetryDialog, release: ReleaseDialog };

function DecisionDialog({ act, ...rest }: Deciding & Dialogue) {
  const Shown = DIALOGS[act];
  return <Shown {...rest} />;
}

interface Dialogue {
  readonly row: Decided;
  readonly onDone: (message: string) => void;
  readonly onClose: () => void;
}

function RetryDialog({ row, onDone, onClose }: Dialogue) {
  return (
    <Confirm
      title="Retry now"
      act="Ask the sweeper now"
      consequence={
        <p>
          The next sweeper that knows <strong>{row.operation}</strong> takes it up at once, not at its next time. It
          looks at what was recorded and asks the other side by the rules of its code; it sends nothing that those do
          not allow.
        </p>
      }
      onAct={async (reason) => onDone((await retryNow(row.id, reason)).message)}
      onClose={onClose}
    />
  );
}

function ReleaseDialog({ row, onDone, onClose }: Dialogue) {
  const [force, setForce] = useState(false);
  const goesOn = row.runKind === "phases";
  return (
    <Confirm
      title="Release"
      act="Release it"
      danger
      consequence={
        <p>
          No outcome is stored, and the key stays taken.{" "}
          {goesOn
            ? "The next retry, or the sweeper, goes on from its recovery point: calls that were sent are asked about by their rules."
            : "The next retry with this key runs the whole operation again. If the first run did its work, it is done twice: look before you release."}
        </p>
      }
      onAct={async (reason) => {
        const decision: Decision = { verdict: "released", attempt: row.attempt, force, reason };
        onDone((await resolve(row.id, decision)).message);
      }}
      onClose={onClose}
    >
      <Force value={force} onValue={setForce} />
    </Confirm>
  );
}

/** An outcome as it stands in the fields. */
interface TypedOutcome {
  readonly status: string;
  readonly headers: string;
  readonly body: string;
}

const STATUS = { succeeded: "200", failed: "402" } as const;

function ResolveDialog({ row, onDone, onClose }: Dialogue) {
  const [verdict, setVerdict] = useState<"succeeded" | "failed">("succeeded");
  const [typed, setTyped] = useState<TypedOutcome>({ status: STATUS.succeeded, headers: "", body: "" });
  const [force, setForce] = useState(false);
  const choose = (chosen: string) => {
    const known = chosen === "failed" ? "failed" : "succeeded";
    setVerdict(known);
    setTyped({ ...typed, status: STATUS[known] });
  };
  return (
    <Confirm
      title="Resolve"
      act={`Settle as ${verdict}`}
      danger
      consequence={<ResolveConsequence row={row} verdict={verdict} typed={typed} />}
      onAct={async (reason) => {
        const outcome = outcomeIn(typed);
        onDone((await resolve(row.id, { verdict, attempt: row.attempt, outcome, force, reason })).message);
      }}
      onClose={onClose}
    >
      <Choice
        label="What the other side shows"
        value={verdict}
        choices={[
          ["succeeded", "It was done"],
          ["failed", "It was not done, and never will be"],
        ]}
        onValue={choose}
      />
      <OutcomeFields verdict={verdict} typed={typed} onTyped={setTyped} />
      <Force value={force} onValue={setForce} />
    </Confirm>
  );
}

function OutcomeFields({
  verdict,
  typed,
  onTyped,
}: {
  readonly verdict: keyof typeof STATUS;
  readonly typed: TypedOutcome;
  readonly onTyped: (typed: TypedOutcome) => void;
}) {
  const code = { mono: true, spellcheck: false };
  return (
    <>
      <Field
        label="Status"
        hint={verdict === "succeeded" ? "200 to 399" : "400 to 599"}
        value={typed.status}
        onValue={(status) => onTyped({ ...typed, status })}
        inputMode="numeric"
        required
      />
      <Lines
        label="Body"
        hint="JSON, kept digit by digit. Empty: none."
        value={typed.body}
        onValue={(body) => onTyped({ ...typed, body })}
        {...code}
      />
      <Lines
        label="Headers"
        hint="One a line: Location: /charges/1"
        value={typed.headers}
        onValue={(headers) => onTyped({ ...typed, headers })}
        rows={2}
        {...code}
      />
    </>
  );
}

function ResolveConsequence({
  row,
  verdict,
  typed: { status, body },
}: {
  readonly row: Decided;
  readonly verdict: string;
  readonly typed: TypedOutcome;
}) {
  return (
    <>
      <p>
        <strong>{row.operation}</strong>, attempt {row.attempt}, is settled as <strong>{verdict}</strong>. For 24 hours
        every retry is answered <strong>{status}</strong>
        {body.trim() !== "" ? " with the body below" : " without a body"}. Nothing is called, and your own tables are
        not touched.
      </p>
      <p>This cannot be taken back. It is refused if it was attempted again since you looked.</p>
    </>
  );
}

function Force({ value, onValue }: { readonly value: boolean; readonly onValue: (value: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={value} onChange={(event) => onValue(event.currentTarget.checked)} />
      Decide although something that was sent may still land: I know that it will not
    </label>
  );
}

const outcomeIn = ({ status, headers, body }: TypedOutcome) => ({
  status: Number(status),
  headers: headersIn(headers),
  bodyText: bodyIn(body),
});

function headersIn(text: string): Readonly<Record<string, string>> {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(":");
      if (colon < 1) throw new Error('A header line is not of the form "Name: value". Nothing was sent.');
      return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
}

/** As it was typed: digits that a number of this language cannot hold stay. */
function bodyIn(text: string): string | null {
  if (text.trim() === "") return null;
  try {
    JSON.parse(text);
  } catch {
    throw new Error("The body is not JSON. Nothing was sent; put a plain text in quotes.");
  }
  return text.trim();
}
