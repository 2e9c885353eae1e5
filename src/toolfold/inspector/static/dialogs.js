// Dialogs: the list of keys, and a question before something is done that cannot be undone.

import { checkbox, failure, h } from "./dom.js";

const SINGLE = "toolfold-single-keys";

export const KEYS = [
  ["1 … 5", "Catalog, Search, Fold, Conversations, Live"],
  ["/", "Search, with the cursor in the query"],
  ["f", "Filter the list of this view"],
  ["← →", "On the tabs: the view before, the next"],
  ["↓ ↑", "In Search: the next hit, the one before"],
  ["Esc", "Close what is open"],
  ["?", "This list"],
];

export function hasSingleKeys() {
  return localStorage.getItem(SINGLE) !== "off";
}

function opened(dialog) {
  const before = document.activeElement;
  document.body.append(dialog);
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (before?.isConnected) before.focus();
  });
  dialog.showModal();
  return dialog;
}

export function showKeys() {
  if (document.querySelector("dialog[open]")) return;
  const dialog = h(
    "dialog",
    { "aria-labelledby": "keys-title" },
    h(
      "form",
      { method: "dialog", class: "stack" },
      h("h2", { id: "keys-title" }, "Keys"),
      h("dl", {}, KEYS.flatMap(([key, about]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, about)])),
      checkbox("Single letters and digits are keys", hasSingleKeys(), (on) =>
        localStorage.setItem(SINGLE, on ? "on" : "off"),
      ),
      h("div", { class: "row" }, h("button", { class: "primary", autofocus: true }, "Close")),
    ),
  );
  opened(dialog);
}

// Ask, then do: what fails is said in the dialog, which stays open.
export function confirming({ title, about, word, danger = false, broad = false, more = [], act }) {
  const place = h("div", {});
  const yes = h("button", { type: "button", class: danger ? "danger" : "primary" }, word);
  const dialog = h(
    "dialog",
    { "aria-labelledby": "question-title", class: broad ? "broad" : null },
    h(
      "form",
      { method: "dialog", class: "stack" },
      h("h2", { id: "question-title" }, title),
      about ? h("p", {}, about) : null,
      more,
      place,
      h("div", { class: "row" }, h("button", { autofocus: true }, "Cancel"), yes),
    ),
  );
  yes.addEventListener("click", async () => {
    yes.disabled = true;
    try {
      await act();
      dialog.close();
    } catch (error) {
      place.replaceChildren(failure(error));
      yes.disabled = false;
    }
  });
  return opened(dialog);
}
