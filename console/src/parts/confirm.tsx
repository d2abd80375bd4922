import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { messageOf } from "../words.ts";
import { Dialog } from "./dialog.tsx";
import { Lines } from "./field.tsx";

/** What a confirmation asks. */
export interface Confirming {
  readonly title: string;
  /** Exactly what will happen. */
  readonly consequence: ComponentChildren;
  /** What the button says. */
  readonly act: string;
  readonly danger?: boolean;
  /** More fields. */
  readonly children?: ComponentChildren;
  /** Does it; what it raises is shown, and the dialog stays. */
  readonly onAct: (reason: string) => Promise<void>;
  readonly onClose: () => void;
}

const LONGEST_REASON = 2_000;

/** Says what will happen, asks why, and does it. Nothing happens before its button. */
export function Confirm({ title, consequence, act, danger = false, children, onAct, onClose }: Confirming) {
  const [reason, setReason] = useState("");
  const [refusal, setRefusal] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setRefusal(null);
    await onAct(reason.trim()).catch((error: unknown) => setRefusal(messageOf(error)));
    setBusy(false);
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <div class="consequence">{consequence}</div>
        {children}
        <Lines
          label="Reason"
          hint="Kept in the audit with your name. Write no keys or card data into it."
          value={reason}
          onValue={setReason}
          required
          maxLength={LONGEST_REASON}
        />
        <div aria-live="assertive">{refusal === null ? null : <p class="notice bad">{refusal}</p>}</div>
        <div class="actions">
          <button type="submit" class={danger ? "danger" : "primary"} disabled={busy || reason.trim() === ""}>
            {act}
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
