import { useEffect, useState } from "preact/hooks";
import { keepToken, RequestError } from "./data/request.ts";
import { currentSession, type Session } from "./data/session.ts";
import { LiveContext, useFollowing } from "./live.ts";
import { Pages } from "./pages/pages.tsx";
import { SignIn } from "./pages/sign-in.tsx";
import { Frame } from "./parts/frame.tsx";
import { Failed } from "./parts/states.tsx";
import { useRoute } from "./route.ts";
import { SessionContext } from "./session.ts";

type Standing =
  | { readonly kind: "asking" }
  | { readonly kind: "in"; readonly session: Session }
  /** `ended`: there was a session, and it is over. */
  | { readonly kind: "out"; readonly ended: boolean }
  | { readonly kind: "failed"; readonly error: unknown };

/** The whole page: asks who is there, then shows the sign-in or the pages. */
export function Console() {
  const [standing, setStanding] = useState<Standing>({ kind: "asking" });
  const begin = (session: Session) => {
    // Where the application signs people in, the question anew says so.
    const over = () => (session.signedIn === "here" ? setStanding({ kind: "out", ended: true }) : look());
    keepToken(session.csrf, over);
    setStanding({ kind: "in", session });
  };
  const look = () => {
    setStanding({ kind: "asking" });
    currentSession().then(begin, (error: unknown) => {
      const isOut = error instanceof RequestError && error.status === 401 && error.signIn;
      setStanding(isOut ? { kind: "out", ended: false } : { kind: "failed", error });
    });
  };
  useEffect(look, []);
  if (standing.kind === "asking")
    return (
      <p class="alone" role="status">
        Opening the console …
      </p>
    );
  if (standing.kind === "out") return <SignIn ended={standing.ended} onSession={begin} />;
  if (standing.kind === "failed") {
    return (
      <main class="alone">
        <h1>Oncekey console</h1>
        <Failed error={standing.error} retry={look} />
      </main>
    );
  }
  return <SignedIn session={standing.session} onOut={() => setStanding({ kind: "out", ended: false })} />;
}

function SignedIn({ session, onOut }: { readonly session: Session; readonly onOut: () => void }) {
  const live = useFollowing();
  const route = useRoute();
  return (
    <SessionContext.Provider value={session}>
      <LiveContext.Provider value={live}>
        <Frame session={session} route={route} onOut={onOut}>
          <Pages route={route} />
        </Frame>
      </LiveContext.Provider>
    </SessionContext.Provider>
  );
}
