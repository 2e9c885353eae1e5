// The gateways and proxies that run: their servers, their calls, what folding saves.

import { counted, empty, facts, failure, h, head, number, saved, show, stat, table, tag } from "./dom.js";
import { ask } from "./page.js";

const EVERY = 1000;

export function liveView(main) {
  const place = h("div", { class: "stack" }, h("p", { class: "soft" }, "Asking …"));
  show(main, h("div", { class: "stack" }, head("What runs now", "it follows by itself"), place));
  let last = "";
  let timer;
  const draw = async () => {
    try {
      const found = await ask("live");
      const text = JSON.stringify(found);
      if (text !== last) show(place, drawn(found.running));
      last = text;
    } catch (error) {
      last = "";
      show(place, failure(error));
    }
    timer = setTimeout(draw, EVERY);
  };
  draw();
  return () => clearTimeout(timer);
}

function drawn(running) {
  if (!running.length) {
    return empty("No gateway and no proxy of yours runs.", "Begin one in another terminal, and it appears here by itself.", [
      "toolfold serve --http 127.0.0.1:8765",
      "toolfold proxy",
    ]);
  }
  return running.map((each) => (each.transport === "proxy" ? proxy(each) : gateway(each)));
}

function title(kind, each) {
  return h("div", { class: "head" }, h("h3", {}, `${kind} ${each.pid}`, each.stopping ? [" ", tag("stopping", "warn")] : null), h("p", {}, each.config ?? ""));
}

function gateway(each) {
  if (each.error) return h("section", { class: "panel" }, title("Gateway", each), h("p", { class: "notice bad" }, each.error));
  const fold = each.folded;
  return h(
    "section",
    { class: "panel stack tight" },
    title("Gateway", each),
    h(
      "div",
      { class: "stats" },
      stat("Calls", number(each.calls), each.failed ? `${number(each.failed)} failed` : "none failed", { kind: each.failed ? "warn" : "" }),
      stat("Under way", number(each.in_flight), counted(each.clients, "client")),
      stat("Searches", number(each.searches)),
      fold ? stat("Tokens of definitions", number(fold.active ? fold.tokens_after : fold.tokens_before), fold.active ? saved(fold.tokens_before, fold.tokens_after) : "not folded", { kind: fold.active ? "good" : "" }) : null,
    ),
    facts([["Address", each.address ?? each.transport], ["Since", each.since], ["Version", each.version]]),
    servers(each),
  );
}

function servers(each) {
  const rows = [
    ...each.servers.map((server) => () =>
      h(
        "tr",
        {},
        h("td", {}, h("strong", {}, server.name), " ", h("small", {}, server.transport)),
        h("td", {}, tag(server.state, server.state)),
        h("td", { class: "number" }, number(server.tools)),
        h("td", { class: "number" }, called(server)),
        h("td", { class: "full" }, says(server)),
      ),
    ),
    ...each.functions.map((own) => () =>
      h("tr", {}, h("td", {}, h("strong", {}, own.name)), h("td", {}, tag(own.kind ?? "functions")), h("td", { class: "number" }, number(own.tools)), h("td", { class: "number" }, called(own)), h("td", {})),
    ),
  ];
  return h(
    "div",
    { class: "wide", tabindex: "0", role: "region", "aria-label": "Servers" },
    table(["Server", "State", { text: "Tools", kind: "number" }, { text: "Calls", kind: "number" }, "What it says"], rows, { kind: "cards", label: "Servers" }),
  );
}

function says(server) {
  return [
    server.cause,
    server.quarantined ? `${number(server.quarantined)} wait for approval` : null,
    server.restarts ? `restarted ${server.restarts}×` : null,
    server.retry_in === null || server.retry_in === undefined ? null : `tried again in ${Math.ceil(server.retry_in)} s`,
  ]
    .filter(Boolean)
    .join(", ");
}

function proxy(each) {
  const less = Math.max(each.tokens_before - each.tokens_after, 0);
  const rows = each.upstreams.map((up) => () =>
    h("tr", {}, h("td", {}, h("strong", {}, up.name)), h("td", {}, up.url), h("td", { class: "number" }, requested(up))),
  );
  return h(
    "section",
    { class: "panel stack tight" },
    title("Proxy", each),
    h(
      "div",
      { class: "stats" },
      stat("Requests", number(each.requests), each.failed ? `${number(each.failed)} failed` : "none failed", { kind: each.failed ? "warn" : "" }),
      stat("Under way", number(each.in_flight), counted(each.rounds, "round")),
      stat("Searches", number(each.searches), "answered without the client"),
      stat("Tokens saved", number(less), less ? saved(each.tokens_before, each.tokens_after) : "nothing to fold yet", { kind: less ? "good" : "" }),
    ),
    facts([["Address", each.address], ["Since", each.since], ["Version", each.version]]),
    table(["Upstream", "Address", { text: "Requests", kind: "number" }], rows, { label: "Upstreams" }),
  );
}

function called(each) {
  return `${number(each.calls)}${each.failed ? ` (${number(each.failed)} failed)` : ""}`;
}

function requested(each) {
  return `${number(each.requests)}${each.failed ? ` (${number(each.failed)} failed)` : ""}`;
}
