// Tools that wait for a person: what is different in each, and the decision. A decision names
// what was seen: where something else waits by then, the gateway decides nothing and says so.

import { confirming } from "./dialogs.js";
import { counted, failure, h, number, show, tag } from "./dom.js";
import { act, ask, say } from "./page.js";

export function trustPart(pid, update) {
  const element = h("div", { class: "stack tight" });
  let told = "";
  const load = async (each) => {
    let found;
    try {
      found = await ask("live/trust", { pid });
    } catch (error) {
      return show(element, failure(error));
    }
    const text = JSON.stringify(found);
    if (text === told) return;
    told = text;
    const key = element.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
    show(element, found.count ? drawn(pid, found, () => load(each).then(update)) : null);
    if (key) element.querySelector(`[data-focus="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
  };
  return {
    element,
    update(each) {
      const waits = each.servers.some((server) => server.quarantined);
      if (waits || told) load(each);
    },
  };
}

function drawn(pid, found, changed) {
  return [
    h("h4", {}, `Waiting for you: ${counted(found.count, "tool")}`),
    h("p", { class: "soft" }, "No client sees what waits until you approve it."),
    found.servers.map((server) => [
      h(
        "div",
        { class: "row" },
        h("strong", {}, server.server),
        h("small", {}, `${number(server.count)} waiting`),
        server.digest && server.count > 1 ? decisions(pid, server.server, { digest: server.digest }, `all ${number(server.count)} of ${server.server}`, server.tools, changed) : null,
      ),
      server.tools.map((tool) => waiting(pid, server.server, tool, changed)),
    ]),
  ];
}

function waiting(pid, server, tool, changed) {
  return h(
    "div",
    { class: "called" },
    h("div", { class: "row" }, h("strong", {}, tool.tool), tag(tool.reason, tool.reason === "changed" ? "warn" : "accent"), decisions(pid, server, { tool: tool.tool, fingerprint: tool.fingerprint }, tool.tool, [tool], changed)),
    tool.marks.map((mark) => h("p", { class: "notice warn" }, mark)),
    h("details", { open: tool.reason === "changed" }, h("summary", {}, tool.reason === "changed" ? "What changed" : "What it says"), difference(tool.difference)),
  );
}

function decisions(pid, server, seen, name, tools, changed) {
  const decide = (verb, word) => async () => {
    const done = await act("live/change", { pid, verb, arguments: { server, ...seen } });
    say(`${counted((done.approved ?? done.rejected ?? []).length, "tool")} ${word}`);
    await changed();
  };
  const button = (word, listener) =>
    h("button", { type: "button", class: "small", "data-focus": `${word} ${server} ${name}`, "aria-label": `${word} ${name}`, on: { click: listener } }, word);
  return h(
    "span",
    { class: "row" },
    button("Approve", () =>
      confirming({
        title: `Approve ${name}?`,
        about: "Models may read and call it from now on, as it is here. If it changes again, it waits again.",
        word: "Approve",
        broad: true,
        more: tools.slice(0, 20).map((tool) => h("div", { class: "stack tight" }, h("strong", {}, tool.tool), difference(tool.difference))),
        act: decide("trust.approve", "approved"),
      }),
    ),
    button("Reject", () =>
      confirming({
        title: `Reject ${name}?`,
        about: "It stays away until it changes again.",
        word: "Reject",
        danger: true,
        act: decide("trust.reject", "rejected"),
      }),
    ),
  );
}

function difference(text) {
  const kinds = { "  - ": "went", "  + ": "came" };
  const lines = text.split("\n").map((line) => h("span", { class: kinds[line.slice(0, 4)] ?? null }, `${line}\n`));
  return h("pre", { class: "diff", tabindex: "0", "aria-label": "difference" }, lines);
}
