import { useState } from "preact/hooks";
import { keysAreOn, turnKeys } from "../keyboard.ts";
import { PAGES } from "../route.ts";
import { Dialog } from "./dialog.tsx";

/** What keys do, and how to switch them off. */
export function Help({ onClose }: { readonly onClose: () => void }) {
  const [on, setOn] = useState(keysAreOn);
  const turn = (wanted: boolean) => {
    turnKeys(wanted);
    setOn(wanted);
  };
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="keys">
        <Key keys={["/"]} does="search entries" />
        {PAGES.map(({ name, title, key }) => (
          <Key key={name} keys={["g", key]} does={title} />
        ))}
        <Key keys={["?"]} does="this list" />
        <Key keys={["Esc"]} does="close a dialog; nothing is changed" />
      </dl>
      <label class="check">
        <input type="checkbox" checked={on} onChange={(event) => turn(event.currentTarget.checked)} />
        Single letters do something in this browser
      </label>
      <div class="actions">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

function Key({ keys, does }: { readonly keys: readonly string[]; readonly does: string }) {
  return (
    <div>
      <dt>
        {keys.map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </dt>
      <dd>{does}</dd>
    </div>
  );
}
