// An audit log: each call with who made it, what it gave and what came of it.

import { toolLink } from "./catalog.js";
import { choice, counted, field, h, number, pretty, seconds, show, table, tag } from "./dom.js";

export function auditLog(found) {
  const state = { outcome: "", text: "", session: "" };
  const place = h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Calls" });
  const draw = () => {
    const own = found.calls.filter(
      (call) =>
        (!state.outcome || call.outcome === state.outcome) &&
        (!state.session || call.session === state.session) &&
        `${call.tool ?? call.model ?? call.verb} ${call.server ?? call.upstream ?? call.target} ${call.detail ?? ""} ${call.principal} ${call.arguments ?? ""} ${call.error ?? ""}`.toLowerCase().includes(state.text),
    );
    show(place, own.length ? calls(own) : h("p", { class: "soft" }, "No call is like this."));
  };
  const text = h("input", { type: "search", autocomplete: "off", on: { input: () => ((state.text = text.value.toLowerCase()), draw()) } });
  const sessions = [...new Set(found.calls.map((call) => call.session).filter(Boolean))];
  draw();
  return h(
    "div",
    { class: "stack tight" },
    h("h3", {}, found.name),
    h(
      "p",
      { class: "row" },
      h("span", { class: "soft" }, `${counted(found.calls.length, "line")}${found.older ? `, the newest of ${number(found.calls.length + found.older)}` : ""}`),
      Object.entries(found.outcomes).map(([name, count]) => tag(`${name} ${number(count)}`, name)),
    ),
    found.unreadable ? h("p", { class: "notice warn" }, `${counted(found.unreadable, "line")} could not be read.`) : null,
    h(
      "div",
      { class: "controls" },
      field("Text", text, "grow"),
      field("Outcome", choice(["", ...Object.keys(found.outcomes)], "", (value) => ((state.outcome = value), draw()), { "": "every" })),
      sessions.length > 1 ? field("Session", choice(["", ...sessions], "", (value) => ((state.session = value), draw()), { "": "every" })) : null,
    ),
    place,
  );
}

function calls(own) {
  const rows = [...own].reverse().map((call) => () =>
    h(
      "tr",
      {},
      h("td", { class: "number" }, h("time", { datetime: call.at, title: call.at }, moment(call.at))),
      h("td", {}, tag(call.outcome, call.outcome)),
      h(
        "td",
        { class: "full" },
        call.tool ? h("strong", {}, toolLink(call.tool)) : h("strong", {}, call.verb || call.model || "request"),
        " ",
        h("small", {}, [call.server ?? call.upstream ?? call.target, call.principal, call.via].filter(Boolean).join(" · ")),
        call.error ? h("p", { class: "error-text" }, call.error) : null,
        details(call),
      ),
      h("td", { class: "number" }, seconds(call.seconds)),
      h("td", { class: "number soft" }, size(call)),
    ),
  );
  return table([{ text: "At", kind: "number" }, "Came to", "Call", { text: "Took", kind: "number" }, { text: "Size", kind: "number" }], rows, { kind: "cards", label: "Calls" });
}

function details(call) {
  if (call.verb) return call.detail ? h("p", { class: "soft" }, call.detail) : null;
  if (call.arguments) return h("details", {}, h("summary", {}, h("small", {}, "arguments")), h("pre", { tabindex: "0" }, pretty(call.arguments)));
  if (call.tokens_before === undefined) return null;
  return h("p", { class: "soft" }, `${counted(call.rounds ?? 0, "round")}, ${call.searches === 1 ? "1 search" : `${number(call.searches)} searches`}, tools ${number(call.tokens_before)} → ${number(call.tokens_after)} tokens`);
}

function size(call) {
  if (call.verb) return "";
  if (call.result_size !== undefined) return `${number(call.result_size)} characters`;
  return `${number(call.prompt_tokens)} + ${number(call.completion_tokens)} tokens`;
}

function moment(at) {
  const when = new Date(at);
  return Number.isNaN(when.getTime()) ? String(at) : when.toLocaleTimeString("en-GB");
}
