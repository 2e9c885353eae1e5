// The gateways and proxies that run: their servers, their calls, what waits for a person.
//
// Each part is drawn anew only when what it shows has changed, and keeps the focus that was in it.

import { confirming } from "./dialogs.js";
import { counted, empty, facts, failure, h, head, number, saved, seconds, show, stat, table, tag, tags } from "./dom.js";
import { act, ask, say } from "./page.js";
import { toolLink } from "./catalog.js";
import { trustPart } from "./trust.js";

const EVERY = 1000;
const NONE = {
  title: "No gateway and no proxy of yours runs.",
  about: "Begin one in another terminal, and it appears here by itself.",
  commands: ["toolfold serve --http 127.0.0.1:8765", "toolfold proxy --upstream URL"],
};

export function liveView(main) {
  const place = h("div", { class: "stack" }, h("p", { class: "soft" }, "Asking …"));
  show(main, h("div", { class: "stack" }, head("What runs now", "it follows by itself"), place));
  const panels = new Map();
  let timer;
  let left = false;
  const update = async () => {
    clearTimeout(timer);
    let running;
    try {
      ({ running } = await ask("live"));
    } catch (error) {
      panels.clear();
      show(place, failure(error));
      running = null;
    }
    if (left) return;
    if (running) drawn(running, panels, place, update);
    timer = setTimeout(update, EVERY);
  };
  update();
  return () => {
    left = true;
    clearTimeout(timer);
  };
}

function drawn(running, panels, place, update) {
  const pids = running.map((each) => each.pid).join();
  if (place.dataset.pids !== pids || !place.querySelector("section")) {
    for (const each of running) if (!panels.has(each.pid)) panels.set(each.pid, processPanel(each, update));
    for (const pid of panels.keys()) if (!running.some((each) => each.pid === pid)) panels.delete(pid);
    place.dataset.pids = pids;
    show(place, running.length ? running.map((each) => panels.get(each.pid).element) : empty(NONE.title, NONE.about, NONE.commands));
  }
  for (const each of running) panels.get(each.pid).update(each);
}

function processPanel(first, update) {
  const kind = first.transport === "proxy" ? "Proxy" : "Gateway";
  const trust = trustPart(first.pid, update);
  const parts = kind === "Proxy" ? [title, proxyStats, upstreams, requests, vain, memory] : [title, gatewayStats, servers, working, recent, vain, memory];
  const places = parts.map((make) => ({ make, place: h("div", { class: "stack tight" }) }));
  const element = h("section", { class: "panel stack", "aria-label": `${kind} ${first.pid}` });
  show(element, places.slice(0, 3).map(({ place }) => place), trust.element, places.slice(3).map(({ place }) => place));
  return {
    element,
    update(each) {
      const own = { ...each, kind, update };
      for (const part of places) {
        const made = each.error && part.make !== title ? [] : part.make(own);
        redrawn(part, made);
      }
      if (!each.error && kind === "Gateway") trust.update(each);
    },
  };
}

// What has changed is put in place, and the focus stays on what had it.
function redrawn(part, made) {
  const fresh = h("div", { class: "stack tight" }, made);
  if (part.place.isEqualNode(fresh)) return;
  const key = part.place.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
  part.place.replaceChildren(...fresh.childNodes);
  if (key) part.place.querySelector(`[data-focus="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

function title(each) {
  return [
    h("div", { class: "head" }, h("h3", {}, `${each.kind} ${each.pid}`, each.stopping ? [" ", tag("stopping", "warn")] : null), h("p", {}, each.config ?? "")),
    each.error ? h("p", { class: "notice bad" }, each.error) : h("p", { class: "soft" }, [each.address ?? each.transport, `since ${moment(each.since)}`, `version ${each.version}`].join(" · ")),
  ];
}

function gatewayStats(each) {
  const fold = each.folded;
  return h(
    "div",
    { class: "stats" },
    stat("Calls", number(each.calls), each.failed ? `${number(each.failed)} failed` : "none failed", { kind: each.failed ? "warn" : "" }),
    stat("Under way", number(each.in_flight), counted(each.clients, "client")),
    stat("Searches", number(each.searches), vainly(each)),
    fold
      ? stat("Tokens of definitions", number(fold.active ? fold.tokens_after : fold.tokens_before), fold.active ? saved(fold.tokens_before, fold.tokens_after) : "not folded", { kind: fold.active ? "good" : "" })
      : null,
  );
}

function vainly(each) {
  if (!each.searches || !each.activity) return "none so far";
  const count = each.activity.empty_searches.length;
  return count ? `${number(count)} found nothing` : "all found something";
}

function servers(each) {
  if (!each.servers.length && !each.functions.length) return [];
  const rows = [
    ...each.servers.map((server) => () =>
      h(
        "tr",
        {},
        h("td", {}, h("strong", {}, server.name), " ", h("small", {}, server.transport)),
        h("td", {}, tag(server.state, server.state)),
        h("td", { class: "number", "data-label": "tools" }, number(server.tools)),
        h("td", { class: "number", "data-label": "calls" }, called(server)),
        h("td", { class: "full" }, says(server)),
        h("td", { class: "full" }, buttons(each, server)),
      ),
    ),
    ...each.functions.map((own) => () =>
      h("tr", {}, h("td", {}, h("strong", {}, own.name)), h("td", {}, tag(own.kind ?? "functions")), h("td", { class: "number", "data-label": "tools" }, number(own.tools)), h("td", { class: "number", "data-label": "calls" }, called(own)), h("td", {}), h("td", {})),
    ),
  ];
  return [
    h(
      "div",
      { class: "wide", tabindex: "0", role: "region", "aria-label": "Servers", "data-focus": "servers" },
      table(["Server", "State", { text: "Tools", kind: "number" }, { text: "Calls", kind: "number" }, "What it says", "Do"], rows, { kind: "cards", label: "Servers" }),
    ),
    each.left_out?.length ? h("p", { class: "soft" }, `Left out by the configuration: ${each.left_out.join(", ")}`) : null,
  ];
}

function says(server) {
  return [
    server.cause,
    server.quarantined ? `${counted(server.quarantined, "tool")} waiting for approval` : null,
    server.restarts ? `restarted ${server.restarts}×` : null,
    server.retry_in === null || server.retry_in === undefined ? null : `tried again in ${Math.ceil(server.retry_in)} s`,
  ]
    .filter(Boolean)
    .join(", ");
}

function buttons(each, server) {
  const button = (word, listener) =>
    h("button", { type: "button", class: "small", "data-focus": `${word} ${server.name}`, "aria-label": `${word} ${server.name}`, on: { click: listener } }, word);
  const change = (verb, did) => async () => {
    await act("live/change", { pid: each.pid, verb, arguments: { name: server.name } });
    say(`${server.name}: ${did}`);
    await each.update();
  };
  const log = button("Log", () => showLog(each.pid, server.name));
  if (server.state === "disabled") {
    return h("div", { class: "row" }, button("Enable", () => tried(change("servers.enable", "enabled"))), log);
  }
  return h(
    "div",
    { class: "row" },
    button("Restart", () =>
      confirming({
        title: `Restart ${server.name}?`,
        about: "Its calls under way end, and its tools come back once it stands again.",
        word: "Restart",
        act: change("servers.restart", "restarting"),
      }),
    ),
    button("Disable", () =>
      confirming({
        title: `Disable ${server.name}?`,
        about: "Its tools are gone for every client until it is enabled again or the gateway ends; the configuration stays as it is.",
        word: "Disable",
        danger: true,
        act: change("servers.disable", "disabled"),
      }),
    ),
    log,
  );
}

// What needs no question is done at once; what fails is said in a dialog.
async function tried(change) {
  try {
    await change();
  } catch (error) {
    confirming({ title: "It was not done", about: error.message, word: "Try again", act: change });
  }
}

function showLog(pid, name) {
  const lines = h("pre", { tabindex: "0", "aria-label": "log" }, "…");
  const about = h("p", { class: "soft" });
  const load = async () => {
    const found = await ask("live/log", { pid, name });
    about.textContent = [found.state, found.error].filter(Boolean).join(": ");
    lines.textContent = found.lines.map((line) => `${line.at}  ${line.text}`).join("\n") || "It has written nothing.";
    lines.scrollTop = lines.scrollHeight;
  };
  confirming({
    title: `What ${name} wrote last`,
    word: "Load again",
    cancel: "Close",
    broad: true,
    stays: true,
    more: [about, lines],
    act: load,
  });
  load().catch((error) => (lines.textContent = error.message));
}

function working(each) {
  const own = each.activity?.under_way ?? [];
  if (!own.length) return [];
  const rows = own.map((call) => () =>
    h("tr", {}, h("td", {}, toolLink(call.tool)), h("td", {}, call.server), h("td", {}, call.principal), h("td", { class: "number" }, seconds(call.seconds))),
  );
  return [h("h4", {}, "Calls that run"), table(["Tool", "Server", "Who", { text: "For", kind: "number" }], rows, { label: "Calls that run" })];
}

function recent(each) {
  const own = each.activity?.calls ?? [];
  if (!own.length) return each.activity ? [h("h4", {}, "Last calls"), h("p", { class: "soft" }, "None yet.")] : [];
  const rows = own.map((call) => () =>
    h(
      "tr",
      {},
      h("td", { class: "number" }, clock(call.at)),
      h("td", {}, tag(call.outcome, call.outcome)),
      h("td", { class: "full" }, toolLink(call.tool), " ", h("small", {}, [call.server, call.principal, call.via].filter(Boolean).join(" · ")), call.error ? h("p", { class: "error-text" }, call.error) : null),
      h("td", { class: "number" }, seconds(call.seconds)),
    ),
  );
  return [h("h4", {}, "Last calls"), table([{ text: "At", kind: "number" }, "Came to", "Call", { text: "Took", kind: "number" }], rows, { most: 15, kind: "cards", label: "Last calls" })];
}

function vain(each) {
  const own = each.activity?.empty_searches ?? [];
  if (!own.length) return [];
  return [h("h4", {}, "Searches that found nothing"), tags(own.map((search) => h("span", { class: "tag warn", title: `${search.at}, ${search.principal}` }, search.query)))];
}

function memory(each) {
  const own = each.activity?.memory;
  if (!own) return [];
  if (own.error) return [h("h4", {}, "Memory"), h("p", { class: "error-text" }, own.error)];
  return [
    h("h4", {}, "Memory"),
    facts([
      ["Holds", `${counted(own.requests, "request")} for ${counted(own.tools, "tool")}: ${number(own.worked)} worked, ${number(own.failed)} failed`],
      ["Counts", `${Math.round((own.weight ?? 0) * 100) / 100} in searches: ${own.why}`],
    ]),
  ];
}

function proxyStats(each) {
  const less = Math.max(each.tokens_before - each.tokens_after, 0);
  return h(
    "div",
    { class: "stats" },
    stat("Requests", number(each.requests), each.failed ? `${number(each.failed)} failed` : "none failed", { kind: each.failed ? "warn" : "" }),
    stat("Under way", number(each.in_flight), counted(each.rounds, "round")),
    stat("Searches", number(each.searches), "answered without the client"),
    stat("Tokens saved", number(less), less ? saved(each.tokens_before, each.tokens_after) : "nothing to fold yet", { kind: less ? "good" : "" }),
  );
}

function requests(each) {
  const own = each.activity?.requests ?? [];
  if (!own.length) return each.activity ? [h("h4", {}, "Last requests"), h("p", { class: "soft" }, "None yet.")] : [];
  const rows = own.map((request) => () =>
    h(
      "tr",
      {},
      h("td", { class: "number" }, clock(request.at)),
      h("td", {}, tag(request.outcome, request.outcome === "folded" ? "good" : request.outcome)),
      h("td", { class: "full" }, h("strong", {}, request.model || "request"), " ", h("small", {}, [request.upstream, request.principal, request.status].filter(Boolean).join(" · ")), request.error ? h("p", { class: "error-text" }, request.error) : null),
      h("td", { class: "full number" }, request.tokens_before ? `${number(request.tokens_before)} → ${number(request.tokens_after)} tokens` : ""),
      h("td", { class: "number" }, `${counted(request.rounds, "round")}, ${seconds(request.seconds)}`),
    ),
  );
  return [
    h("h4", {}, "Last requests"),
    table([{ text: "At", kind: "number" }, "Came to", "Request", { text: "Tools", kind: "number" }, { text: "Took", kind: "number" }], rows, { most: 15, kind: "cards", label: "Last requests" }),
  ];
}

function upstreams(each) {
  const rows = each.upstreams.map((up) => () =>
    h("tr", {}, h("td", {}, h("strong", {}, up.name)), h("td", { class: "full" }, up.url), h("td", { class: "number" }, `${number(up.requests)}${up.failed ? ` (${number(up.failed)} failed)` : ""}`)),
  );
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Upstreams", "data-focus": "upstreams" }, table(["Upstream", "Address", { text: "Requests", kind: "number" }], rows, { label: "Upstreams" }));
}

function called(each) {
  return `${number(each.calls)}${each.failed ? ` (${number(each.failed)} failed)` : ""}`;
}

function moment(at) {
  const when = new Date(at);
  return Number.isNaN(when.getTime()) ? String(at) : when.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

function clock(at) {
  const when = new Date(at);
  const text = Number.isNaN(when.getTime()) ? String(at) : when.toLocaleTimeString("en-GB");
  return h("time", { datetime: at, title: at }, text);
}
