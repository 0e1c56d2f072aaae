// The dialogs: a question before something that cannot be taken back, and help.
import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren, VNode } from "preact";
import { bounded, oneLine } from "../model/printable.ts";
import { shortcuts } from "../keys.ts";
import { helping, question } from "../page.ts";
import * as world from "../world.ts";
import { Command, moment, Switch } from "./parts.tsx";

function Modal({ label, close, children }: { label: string; close: () => void; children: ComponentChildren }): VNode {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current!;
    dialog.showModal();
    dialog.addEventListener("close", close);
    return () => {
      dialog.removeEventListener("close", close); // it would come late, and close the next one
      dialog.close(); // the focus goes back to where it was
    };
  }, []);
  return (
    <dialog ref={ref} aria-labelledby={label}>
      {children}
    </dialog>
  );
}

export function Question(): VNode | null {
  const q = question.value;
  const [asked, setAsked] = useState(false);
  useEffect(() => setAsked(false), [q]);
  if (!q) return null;
  const close = () => (question.value = undefined);
  const moot = q.moot();
  const yes = () => {
    setAsked(true);
    void q.act().then(close);
  };
  return (
    <Modal label="question" close={close}>
      <h2 id="question">{q.title}</h2>
      {q.subject && <Command text={bounded(q.subject, 2000)} />}
      <p>{moot || q.text}</p>
      <div class="buttons">
        <button type="button" autofocus onClick={close}>{moot ? "Close" : "Keep"}</button>
        {!moot && <button type="button" class="danger solid" disabled={asked} onClick={yes}>{q.yes}</button>}
      </div>
    </Modal>
  );
}

const keys: [string, string][] = [
  ["/", "Filter projects and threads"],
  ["j  k", "Next, previous thread"],
  ["↓  ↑", "Next, previous entry, in the list of threads"],
  ["o", "Overview"],
  ["i", "Inbox"],
  ["p", "Pause updates, resume them"],
  ["?", "This help"],
  ["Esc", "Clear the filter, close a dialog"],
];

export function Help(): VNode | null {
  if (!helping.value) return null;
  const close = () => (helping.value = false);
  return (
    <Modal label="help" close={close}>
      <h2 id="help">Keys</h2>
      <dl class="keys">
        {keys.map(([key, what]) => (
          <div key={key}><dt>{key.split("  ").map((k) => <kbd key={k}>{k}</kbd>)}</dt><dd>{what}</dd></div>
        ))}
      </dl>
      <Switch on={shortcuts.value} change={(on) => (shortcuts.value = on)}>Keys of one letter</Switch>
      <p class="hint">The page shows everything live. It opens one connection for all tabs and takes it up again by itself after a restart of the daemon or a sleep.</p>
      <Daemon />
      <div class="buttons"><button type="button" autofocus onClick={close}>Close</button></div>
    </Modal>
  );
}

/** Daemon says which one this is, for a person with several and for a report of a fault. */
function Daemon(): VNode | null {
  const hello = world.hello.value;
  if (!hello) return null;
  const place = [hello.account, hello.host].filter(Boolean).join(" on ");
  return (
    <p class="hint">
      <bdi>{oneLine(`Rig Bridge ${hello.version ?? ""}${place ? `, run by ${place}` : ""}`, 200)}</bdi>
      {hello.startedAt ? `, started ${moment(hello.startedAt)}` : ""}
      {world.updated.value > 0 ? `, last change ${moment(world.updated.value)}` : ""}.
    </p>
  );
}
