import { type ComponentChildren, Fragment } from "preact";
import type { State } from "../data/entries.ts";
import { useLive } from "../live.ts";
import { hashOf } from "../route.ts";
import { apart, localTime, plainWord, shortId } from "../words.ts";

/** An instant in local time, with the exact one as its title, and how far it is away. */
export function When({ at, none = "–" }: { readonly at: string | null | undefined; readonly none?: string }) {
  // Told anew with each overview; the browser's clock may be a wrong one, only its steps are used.
  const { overview } = useLive();
  if (at === null || at === undefined) return <>{none}</>;
  const nowMs = overview === null ? Date.now() : Date.parse(overview.now);
  return (
    <time dateTime={at} title={at}>
      {localTime(at)} <span class="quiet">{apart(at, nowMs)}</span>
    </time>
  );
}

const WEIGHTS: Readonly<Record<State, string>> = {
  in_progress: "plain",
  needs_recovery: "bad",
  released: "warn",
  succeeded: "good",
  failed: "warn",
};

/** The state of an entry: a word, and a colour beside it. */
export function StateBadge({ state }: { readonly state: State }) {
  return <span class={`badge ${WEIGHTS[state] ?? "plain"}`}>{plainWord(state)}</span>;
}

/** The beginning of an entry's id, leading to its page. */
export function EntryLink({ id }: { readonly id: string }) {
  return (
    <a class="mono" href={hashOf("entries", id)} title={id}>
      {shortId(id)}
    </a>
  );
}

/** A name of the application's, which breaks at its dots first where it has to. */
export function Name({ of }: { readonly of: string }) {
  return (
    <>
      {of.split(/(?<=[./])/).map((part, place) => (
        <Fragment key={`${place} ${part}`}>
          {part}
          <wbr />
        </Fragment>
      ))}
    </>
  );
}

/** Named facts, one below the other; what is `null` is left out. */
export function Facts({ facts }: { readonly facts: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
