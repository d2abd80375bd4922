import type { ComponentChildren } from "preact";
import { messageOf } from "../words.ts";

/** Something is on its way. */
export function Loading({ what }: { readonly what: string }) {
  return (
    <p class="quiet" role="status">
      Loading {what} …
    </p>
  );
}

/** Something did not come, and what to do next. */
export function Failed({ error, retry }: { readonly error: unknown; readonly retry: () => void }) {
  return (
    <div class="notice bad" role="alert">
      <p>{messageOf(error)}</p>
      <button type="button" onClick={retry}>
        Try again
      </button>
    </div>
  );
}

/** There is nothing, and what that means. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      <p>{children}</p>
    </div>
  );
}

/** What was done, said to those who do not see it too. */
export function DoneNotice({ text }: { readonly text: string | null }) {
  return (
    <div aria-live="polite">
      {text === null ? null : (
        <p class="notice good" data-done>
          {text}
        </p>
      )}
    </div>
  );
}
