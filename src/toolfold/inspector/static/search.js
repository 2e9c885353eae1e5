// A search as one types: the hits with what speaks for them, beside the answer a model reads;
// two rankers, settings or catalogs side by side; why a tool is not among them.

import { toolLink } from "./catalog.js";
import { checkbox, choice, counted, failure, field, h, head, latest, meter, number, panel, segments, show, table, tag } from "./dom.js";
import { ask, remember, say } from "./page.js";

const KNOBS = ["catalog", "ranker", "floor", "limit", "memory"];
const EXAMPLES = ["open a pull request", "remind me tonight", "refund a customer | mail the receipt"];

let kept = {}; // what was typed, while another view was shown

export function searchView(main, page) {
  const state = Object.keys(page.values).length ? page.values : kept;
  kept = state;
  if (page.parts[0]) state.q = page.parts.join("/");
  state.as ??= "both";
  const results = h("div", {});
  const reason = h("div", {});
  const second = h("div", {});
  let asked = 0;

  const side = (prefix) => Object.fromEntries(KNOBS.map((name) => [name, state[prefix + name]]));
  const draw = async () => {
    const own = (asked += 1);
    remember("search", [], state);
    if (!(state.q ?? "").trim()) {
      show(reason);
      return show(results, blank(query, changed));
    }
    const sides = [side(""), ...(state.vs ? [side("b_")] : [])];
    let found;
    try {
      found = await Promise.all(sides.map((each) => ask("search", { q: state.q, ...each })));
    } catch (error) {
      if (own === asked) show(results, failure(error));
      return;
    }
    if (own !== asked) return; // a later letter was quicker
    const names = sides.map((each, i) => sideName(page, each, i));
    show(
      results,
      h("div", { class: found.length > 1 ? "two" : "" }, found.map((each, i) => column(each, names[i], found[1 - i], state.as, found.length > 1))),
    );
    results.dataset.query = found[0].query;
    say(found.map((each) => counted(each.hits.length, "hit")).join(", "));
    explain(own);
  };
  const explain = async (own) => {
    if (!state.why) return show(reason);
    try {
      const { ranker, floor, catalog } = side("");
      const found = await ask("why-not", { q: state.q, name: state.why, ranker, floor, catalog });
      if (own === asked) show(reason, reasons(found));
    } catch (error) {
      if (own === asked) show(reason, h("p", { class: "notice warn" }, `“${state.why}”: ${error.message}`));
    }
  };
  const soon = latest(draw);
  const changed = (name, value) => {
    state[name] = value;
    soon();
  };
  const query = h("input", {
    type: "search",
    id: "query",
    class: "query",
    value: state.q ?? "",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "what a model would look for; several needs with | between them",
    on: { input: () => changed("q", query.value) },
  });
  const names = h("datalist", { id: "names" });
  const why = h("input", {
    list: "names",
    value: state.why ?? "",
    autocomplete: "off",
    placeholder: "a tool’s name",
    on: {
      input: () => changed("why", why.value),
      focus: () => names.children.length || names.append(...tools(page).map((name) => h("option", { value: name }))),
    },
  });
  const first = h("div", {});
  const beside = (on) => {
    show(first, knobs(page, state, "", changed, on ? "This" : ""));
    show(second, on ? knobs(page, state, "b_", changed, "Beside it") : null);
  };
  const compare = checkbox("Compare with another ranker, setting or catalog", Boolean(state.vs), (on) => {
    if (on && !KNOBS.some((name) => state[`b_${name}`])) Object.assign(state, firstBeside(page));
    beside(on);
    changed("vs", on ? "1" : "");
  });
  show(
    main,
    h(
      "div",
      { class: "stack", on: { keydown: (event) => onArrow(event, main) } },
      head("What a search finds", `among ${counted(page.catalog.tools, "tool")}`),
      h(
        "form",
        { class: "panel stack tight", role: "search", on: { submit: (event) => event.preventDefault() } },
        field("Query", query, "grow"),
        h(
          "details",
          { open: Boolean(state.vs) || KNOBS.some((name) => state[name]) },
          h("summary", { class: "soft" }, "Settings, and what to compare"),
          h("div", { class: "stack tight" }, h("div", { class: "two" }, first, second), compare),
        ),
        h(
          "div",
          { class: "controls" },
          h("div", { class: "field" }, h("span", { class: "label" }, "Show"), segments("Show", ["table", "answer", "both"], state.as, (value) => changed("as", value), { table: "Hits", answer: "The model’s answer", both: "Both" })),
          field("Why not this tool?", why, "grow"),
          names,
        ),
      ),
      reason,
      results,
    ),
  );
  beside(Boolean(state.vs));
  if (!document.activeElement?.matches("[role=tab]")) query.focus({ preventScroll: true });
  soon();
}

function tools(page) {
  return page.catalog.sources.flatMap((source) => source.tools.map((tool) => tool.name)).slice(0, 5000);
}

// What is worth comparing first: another catalog, what was remembered, or words alone.
function firstBeside(page) {
  if (page.catalog.catalogs.length > 1) return { b_catalog: "1" };
  if (page.catalog.has_memory) return { b_memory: "off" };
  return { b_ranker: "bm25" };
}

function sideName(page, side, place) {
  const { settings, catalogs } = page.catalog;
  const parts = [side.ranker || settings.ranker, `floor ${side.floor || settings.floor}`];
  if (catalogs.length > 1) parts.unshift(catalogs[Number(side.catalog || 0)]);
  if (side.limit) parts.push(`${side.limit} hits`);
  if (side.memory === "off") parts.push("without memory");
  return { text: parts.join(", "), place };
}

function knobs(page, state, prefix, changed, name) {
  const { settings, rankers, catalogs, has_memory: remembers } = page.catalog;
  const set = (key) => (value) => changed(prefix + key, value);
  const numeric = (key, props) => {
    const box = h("input", { type: "number", ...props, value: state[prefix + key] ?? "", on: { input: () => set(key)(box.value) } });
    return box;
  };
  return h(
    "fieldset",
    {},
    name ? h("legend", {}, name) : null,
    catalogs.length > 1
      ? field("Catalog", choice(catalogs.map((_, i) => String(i)), state[`${prefix}catalog`] || "0", set("catalog"), { ...catalogs }))
      : null,
    field("Ranker", choice(["", ...rankers], state[`${prefix}ranker`] ?? "", set("ranker"), { "": `as set (${settings.ranker})` })),
    field("Floor", numeric("floor", { min: "0", max: "1", step: "0.05", placeholder: settings.floor })),
    field("Hits", numeric("limit", { min: "1", max: settings.most, step: "1", placeholder: settings.limit })),
    remembers ? field("Memory", choice(["", "off"], state[`${prefix}memory`] ?? "", set("memory"), { "": "counts", off: "is left out" })) : null,
  );
}

function blank(query, changed) {
  const fill = (text) => () => {
    query.value = text;
    changed("q", text);
    query.focus();
  };
  return h(
    "section",
    { class: "panel empty" },
    h("h3", {}, "Type what a model would look for"),
    h("p", {}, "Hits come as you type, with their probability, what speaks for each, and the text that the model is answered. Try one:"),
    h("div", { class: "row" }, EXAMPLES.map((text) => h("button", { type: "button", on: { click: fill(text) } }, text))),
  );
}

function column(found, name, other, as, compared) {
  const parts = [];
  if (as !== "answer" && found.hits.length) parts.push(h("div", { class: "stack" }, hits(found, other)));
  if (as !== "table") {
    parts.push(
      panel(
        `What the model reads: ${number(found.tokens)} tokens`,
        h("pre", { tabindex: "0", "aria-label": "answer" }, found.answer),
      ),
    );
  }
  const both = as === "both" && !compared && found.hits.length;
  return h(
    "section",
    { class: "stack", "aria-label": `Results: ${name.text}` },
    compared ? h("h3", {}, name.text) : null,
    found.weak.length ? h("p", { class: "notice warn" }, `Probably wrong: the best for ${quoted(found.weak)} is hardly likely, and the model is told so.`) : null,
    found.missed.map((miss) => missed(miss, found)),
    both ? h("div", { class: "two wide-left" }, parts) : parts,
  );
}

function quoted(needs) {
  return needs.map((need) => `“${need}”`).join(" and ");
}

function missed(miss, found) {
  return h(
    "div",
    { class: "notice warn" },
    h("p", {}, `Nothing for “${miss.need}”: no tool reaches the floor of ${found.floor}.`, miss.nearest.length ? " The nearest:" : ""),
    h("ul", {}, miss.nearest.map((hit) => h("li", {}, toolLink(hit.name), ` ${percent(hit.score)}, ${hit.why}`))),
  );
}

function percent(score) {
  return `${(score * 100).toFixed(1)} %`;
}

function hits(found, other) {
  if (!found.hits.length) return null;
  const groups = [...new Set(found.hits.map((hit) => hit.need))];
  const places = new Map((other?.hits ?? []).map((hit) => [`${hit.need}\n${hit.name}`, place(other, hit)]));
  return groups.map((need) => {
    const own = found.hits.filter((hit) => hit.need === need);
    const rows = own.map((hit, i) => () =>
      h(
        "tr",
        { class: "hit" },
        h("td", { class: "place" }, hit.shown === "companion" ? "·" : i + 1),
        h(
          "td",
          {},
          h("span", { class: "hit-name" }, toolLink(hit.name)),
          " ",
          hit.shown === "companion" ? tag("may be needed too") : hit.shown === "signature" ? null : tag("by name"),
          other && hit.shown !== "companion" ? [" ", moved(i + 1, places.get(`${need}\n${hit.name}`))] : null,
          hit.shown === "signature" ? h("code", {}, hit.signature) : null,
          hit.shown === "signature" ? h("span", { class: "summary" }, hit.summary) : null,
          h("span", { class: "why" }, hit.why),
        ),
        h("td", { class: "number probability full" }, hit.shown === "companion" ? "" : score(hit, found), hit.shown === "companion" ? null : bar(hit, found)),
      ),
    );
    const heads = [{ text: "#", kind: "place" }, "Tool, and what speaks for it", { text: found.calibrated ? "Probability" : "Score", kind: "number" }];
    const beside = own.filter((hit) => hit.shown === "companion").length;
    const count = counted(own.length - beside, "hit") + (beside ? `, ${number(beside)} that may be needed too` : "");
    const title = groups.length > 1 ? `${need}: ${count}` : count;
    return panel(title, table(heads, rows, { kind: "cards", label: `Hits for ${need}` }));
  });
}

function place(found, hit) {
  return found.hits.filter((each) => each.need === hit.need).indexOf(hit) + 1;
}

function moved(now, there) {
  if (!there) return tag("only here", "accent");
  if (there === now) return null;
  return tag(now < there ? `${there - now} higher` : `${now - there} lower`, now < there ? "good" : "warn");
}

function score(hit, found) {
  return found.calibrated ? percent(hit.score) : hit.score.toFixed(2);
}

function bar(hit, found) {
  return found.calibrated ? meter(hit.score, 1, { mark: found.floor || null, kind: hit.score < found.floor ? "soft" : "" }) : null;
}

function reasons(found) {
  return h(
    "section",
    { class: "panel reasons stack tight" },
    h("h3", {}, "Why not ", toolLink(found.name), "?"),
    found.needs.map((row) =>
      h(
        "div",
        {},
        h(
          "p",
          {},
          `For “${row.need}” `,
          row.place === 1 ? "it is the first of all: " : row.place ? `it stands at place ${number(row.place)}: ` : "",
          `${row.why}.`,
          row.below_floor ? ` The best of all is below the floor of ${row.floor}, so nothing is shown.` : "",
        ),
        row.above.length
          ? h("p", { class: "soft" }, "Above it: ", row.above.map((hit, i) => [i ? "; " : "", toolLink(hit.name), ` (${hit.why})`]))
          : null,
      ),
    ),
  );
}

// Down from the query to the hits, and up again.
function onArrow(event, main) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const from = event.target;
  if (!step || (from.id !== "query" && !from.closest?.(".hit"))) return;
  const stops = [document.getElementById("query"), ...main.querySelectorAll(".hit-name a")];
  const next = stops[stops.indexOf(from) + step];
  if (next) {
    event.preventDefault();
    next.focus();
  }
}
