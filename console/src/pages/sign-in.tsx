import { useState } from "preact/hooks";
import { type Session, signIn } from "../data/session.ts";
import { Field } from "../parts/field.tsx";
import { messageOf } from "../words.ts";

/** Asks who it is. `ended`: a session was there and is over; the page it stood at comes back. */
export function SignIn({
  ended,
  onSession,
}: {
  readonly ended: boolean;
  readonly onSession: (session: Session) => void;
}) {
  const [user, setUser] = useState("");
  const [password, setPassword] = useState("");
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<string | null>(null);
  const submit = (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setRefusal(null);
    signIn(user, password).then(onSession, (error: unknown) => {
      setBusy(false);
      setPassword("");
      setRefusal(messageOf(error));
    });
  };
  return (
    <main class="alone">
      <h1>Oncekey console</h1>
      {ended ? <p class="notice">Your session has ended. Sign in to go on where you were.</p> : null}
      <form onSubmit={submit}>
        <Field
          label="User"
          name="user"
          value={user}
          onValue={setUser}
          required
          autoComplete="username"
          spellcheck={false}
        />
        <Field
          label="Password"
          name="password"
          type="password"
          value={password}
          onValue={setPassword}
          required
          autoComplete="current-password"
        />
        <div aria-live="assertive">{refusal === null ? null : <p class="notice bad">{refusal}</p>}</div>
        <div class="actions">
          <button type="submit" class="primary" disabled={busy}>
            Sign in
          </button>
        </div>
      </form>
    </main>
  );
}
