// The gateways and proxies that run: their servers, their calls, what folding saves.

import { counted, h, number, show } from "./dom.js";

const EVERY = 2000;

export function liveView(main, page) {
  const place = h("div", { "aria-live": "off" }, h("p", {}, "…"));
  show(main, h("h2", {}, "What runs now"), place);
  let last = "";
  const draw = async () => {
    if (!place.isConnected) return; // another view is shown
    try {
      const found = await page.ask("live");
      const text = JSON.stringify(found);
      if (text !== last) show(place, drawn(found.running));
      last = text;
    } catch (error) {
      last = "";
      show(place, h("p", { class: "error", role: "alert" }, error.message));
    }
    setTimeout(draw, EVERY);
  };
  draw();
}

function drawn(running) {
  if (!running.length) {
    return h(
      "p",
      {},
      "No gateway and no proxy of yours runs. ",
      h("code", {}, "toolfold serve"),
      " and ",
      h("code", {}, "toolfold proxy"),
      " appear here by themselves.",
    );
  }
  return running.map((each) => (each.transport === "proxy" ? proxy(each) : gateway(each)));
}

function heading(kind, each) {
  return h("h3", {}, `${kind} ${each.pid}`, each.stopping ? " (stopping)" : "");
}

function facts(rows) {
  const said = rows.filter(([, text]) => text !== undefined && text !== null && text !== "");
  return h(
    "dl",
    {},
    said.flatMap(([term, text]) => [h("dt", {}, term), h("dd", {}, String(text))]),
  );
}

function gateway(each) {
  if (each.error) return h("section", {}, heading("gateway", each), h("p", { class: "error" }, each.error));
  const fold = each.folded;
  return h(
    "section",
    {},
    heading("gateway", each),
    facts([
      ["Address", each.address ?? each.transport],
      ["Configuration", each.config],
      ["Since", each.since],
      ["Clients", number(each.clients)],
      ["Calls", called(each)],
      ["Under way", number(each.in_flight)],
      ["Searches", number(each.searches)],
      ["Definitions", fold ? saved(fold) : undefined],
    ]),
    table(
      ["Server", "State", "Tools", "Calls", "What it says"],
      [
        ...each.servers.map((server) => [
          server.name,
          badge(server.state),
          number(server.tools),
          called(server),
          [
            server.cause,
            server.quarantined ? `${number(server.quarantined)} wait for approval` : null,
            server.restarts ? `restarted ${server.restarts}×` : null,
            server.retry_in === null ? null : `tried again in ${Math.ceil(server.retry_in)} s`,
          ]
            .filter(Boolean)
            .join(", "),
        ]),
        ...each.functions.map((own) => [own.name, "functions", number(own.tools), called(own), ""]),
      ],
    ),
  );
}

function proxy(each) {
  return h(
    "section",
    {},
    heading("proxy", each),
    facts([
      ["Address", each.address],
      ["Configuration", each.config],
      ["Since", each.since],
      ["Requests", requested(each)],
      ["Rounds", each.rounds],
      ["Searches", number(each.searches)],
      ["Tokens saved", number(Math.max(each.tokens_before - each.tokens_after, 0))],
    ]),
    table(
      ["Upstream", "Address", "Requests"],
      each.upstreams.map((up) => [up.name, up.url, requested(up)]),
    ),
  );
}

function saved(fold) {
  const tools = counted(fold.tools, "tool");
  if (!fold.active) return `${tools}, not folded`;
  return `${tools}: ${number(fold.tokens_before)} → ${number(fold.tokens_after)} tokens`;
}

function called(each) {
  return `${number(each.calls)}${each.failed ? ` (${number(each.failed)} failed)` : ""}`;
}

function requested(each) {
  return `${number(each.requests)}${each.failed ? ` (${number(each.failed)} failed)` : ""}`;
}

function badge(state) {
  return h("span", { class: `state ${state}` }, state);
}

function table(heads, rows) {
  return h(
    "div",
    { class: "wide", tabindex: "0", role: "region", "aria-label": heads[0] },
    h(
      "table",
      { class: "plain" },
      h("thead", {}, h("tr", {}, heads.map((text) => h("th", { scope: "col" }, text)))),
      h(
        "tbody",
        {},
        rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))),
      ),
    ),
  );
}
