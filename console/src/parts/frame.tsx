import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type Session, signOut } from "../data/session.ts";
import { useKeys } from "../keyboard.ts";
import { type Mode, useLive } from "../live.ts";
import { hashOf, PAGES, type Route } from "../route.ts";
import { wantSearch } from "../search-focus.ts";
import { bounded } from "../words.ts";
import { Help } from "./help.tsx";

/** What stands around every page: the way to all others, who is there, and whether the figures are fresh. */
export function Frame({
  session,
  route,
  onOut,
  children,
}: {
  readonly session: Session;
  readonly route: Route;
  readonly onOut: () => void;
  readonly children: ComponentChildren;
}) {
  const [helping, setHelping] = useState(false);
  const [menu, setMenu] = useState(false);
  const main = useRef<HTMLElement>(null);
  useArrival(route, main);
  const help = useCallback(() => setHelping(true), []);
  useKeys(wantSearch, help);
  return (
    <div class="frame">
      <header>
        <button type="button" class="skip" onClick={() => main.current?.focus()}>
          Skip to the page
        </button>
        <p class="name">Oncekey</p>
        <LiveLine />
        <button
          type="button"
          class="menu"
          aria-expanded={menu}
          aria-controls="navigation"
          onClick={() => setMenu(!menu)}
        >
          Menu
        </button>
        <Navigation route={route} open={menu} onChosen={() => setMenu(false)} />
        <div class={menu ? "below open" : "below"}>
          <Whose session={session} onOut={onOut} onHelp={help} />
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {children}
      </main>
      {helping ? <Help onClose={() => setHelping(false)} /> : null}
    </div>
  );
}

function Navigation({
  route,
  open,
  onChosen,
}: {
  readonly route: Route;
  readonly open: boolean;
  readonly onChosen: () => void;
}) {
  const { overview } = useLive();
  const waiting: Readonly<Record<string, string | undefined>> = {
    unresolved: overview === null || overview.unresolved.count === 0 ? undefined : bounded(overview.unresolved),
    outbox: overview === null || overview.outbox.dead.count === 0 ? undefined : bounded(overview.outbox.dead),
  };
  return (
    <nav id="navigation" aria-label="Pages" class={open ? "open" : ""}>
      <ul>
        {PAGES.map(({ name, title }) => (
          <li key={name}>
            <a href={hashOf(name)} onClick={onChosen} aria-current={route.page === name ? "page" : undefined}>
              {title}
              {waiting[name] === undefined ? null : <span class="waiting">{waiting[name]}</span>}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

const MODES: Readonly<Record<Mode, readonly [words: string, title: string]>> = {
  connecting: ["Connecting", "The figures are on their way."],
  live: ["Live", "The console tells of changes as they happen."],
  polling: ["Polling", "There is no event stream: the figures are asked for every 5 seconds."],
  lost: ["No answer", "The console does not answer; it is asked again every 5 seconds. What you see may be old."],
};

function LiveLine() {
  const { mode } = useLive();
  const [words, title] = MODES[mode];
  return (
    <p class={`pulse ${mode}`} role="status" title={title}>
      {words}
    </p>
  );
}

function Whose({
  session,
  onOut,
  onHelp,
}: {
  readonly session: Session;
  readonly onOut: () => void;
  readonly onHelp: () => void;
}) {
  const { operator, signedIn, version } = session;
  const leave = () => void signOut().then(onOut, onOut);
  return (
    <div class="whose">
      <p>
        {operator.name}
        {operator.tenant === null ? null : <span class="quiet"> · tenant {operator.tenant}</span>}
        {operator.readOnly ? <span class="quiet"> · read only</span> : null}
      </p>
      <div class="actions">
        <button type="button" onClick={onHelp}>
          Keys
        </button>
        {signedIn === "here" ? (
          <button type="button" onClick={leave}>
            Sign out
          </button>
        ) : null}
      </div>
      <p class="quiet">Version {version}</p>
    </div>
  );
}

/** A new page begins at its heading, for those who read by ear and by key too; the first one does not take the focus. */
function useArrival(route: Route, main: { readonly current: HTMLElement | null }): void {
  const first = useRef(true);
  useEffect(() => {
    const title = PAGES.find(({ name }) => name === route.page)?.title ?? "";
    document.title = `${route.id === null ? title : `Entry ${route.id.slice(0, 12)}`} · Oncekey console`;
    // Who asked for the search is there already.
    if (!first.current && !document.activeElement?.closest("[data-search]")) {
      main.current?.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
    first.current = false;
  }, [route.page, route.id, main]);
}
