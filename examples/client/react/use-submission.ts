import type { Client, SubmissionRequest, SubmissionResult } from "oncekey/client";
import { useCallback, useEffect, useState } from "react";

/** What a component shows of a submission. */
export type SubmissionState =
  /** Looking for what an earlier page may have left. */
  | { readonly kind: "looking" }
  | { readonly kind: "idle" }
  | { readonly kind: "sending" }
  | { readonly kind: "ended"; readonly result: SubmissionResult }
  /** The storage cannot be read, or the request cannot be kept. */
  | { readonly kind: "broken"; readonly error: unknown };

/** What `useSubmission` gives a component. */
export interface UsedSubmission {
  readonly state: SubmissionState;
  /** Sends that request as the submission of the hook's name. Calling it twice sends once. */
  readonly submit: (request: SubmissionRequest) => void;
  /** Goes on with what is kept: after `unknown`, or after an error. */
  readonly resume: () => void;
}

type Named = SubmissionState & { readonly name: string };

/**
 * The submission of that name, for as long as a component shows it. `name` is the action of the user (a cart's id, a
 * draft's id kept with the form's state), never made while rendering: a new name is a new submission. What an earlier page
 * or component left under the name goes on when the component appears. Unmounting ends nothing: the client sends on, and
 * the next component with the name shows the result.
 */
export function useSubmission(client: Client, name: string): UsedSubmission {
  const [shown, setShown] = useState<Named>({ kind: "looking", name });

  const follow = useCallback(
    (work: () => Promise<SubmissionState>, meanwhile: SubmissionState) => {
      setShown({ ...meanwhile, name });
      // A result that comes after the component has turned to another name is the other component's to show.
      const show = (state: SubmissionState) => setShown((now) => (now.name === name ? { ...state, name } : now));
      work().then(show, (error: unknown) => show({ kind: "broken", error }));
    },
    [name],
  );

  const resume = useCallback(() => {
    follow(() => goOn(client, name), { kind: "looking" });
  }, [client, name, follow]);

  // Strict mode runs an effect twice: both look, and the client lets both share one sending.
  useEffect(resume, [resume]);

  const submit = useCallback(
    (request: SubmissionRequest) => {
      follow(async () => ended(await client.submit(name, request)), { kind: "sending" });
    },
    [client, name, follow],
  );

  return { state: shown.name === name ? shown : { kind: "looking" }, submit, resume };
}

async function goOn(client: Client, name: string): Promise<SubmissionState> {
  const kept = await client.find(name);
  return kept === null ? { kind: "idle" } : ended(await kept.send());
}

const ended = (result: SubmissionResult): SubmissionState => ({ kind: "ended", result });
