// A search as one types: the hits with what speaks for them, beside the answer a model reads.

import { toolLink } from "./catalog.js";
import { choice, counted, field, h, number, settled, show } from "./dom.js";

const state = { q: "", left: {}, right: null, why: "" };

export function searchView(main, page) {
  if (page.rest) state.q = page.rest;
  const results = h("div", { class: "columns" });
  const reason = h("div", { role: "status" });
  let asked = 0;

  const draw = async () => {
    const own = (asked += 1);
    if (!state.q.trim()) return show(results, h("p", {}, "Type what a model would look for."));
    const sides = [state.left, ...(state.right ? [state.right] : [])];
    let found;
    try {
      found = await Promise.all(sides.map((side) => page.ask("search", { q: state.q, ...side })));
    } catch (error) {
      if (own === asked) show(results, h("p", { class: "error", role: "alert" }, error.message));
      return;
    }
    if (own !== asked) return; // a later letter was quicker
    show(results, found.map((each, i) => column(each, sides[i])));
    page.say(counted(found[0].hits.length, "hit"));
    await explain(own);
  };
  const explain = async (own) => {
    if (!state.why || !state.q.trim()) return show(reason);
    try {
      const found = await page.ask("why-not", { q: state.q, name: state.why, ...state.left });
      if (own === asked) show(reason, reasons(found));
    } catch (error) {
      show(reason, h("p", { class: "error" }, error.message));
    }
  };
  const soon = settled(120, draw);
  const query = h("input", {
    type: "search",
    value: state.q,
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "open a pull request | mail the team",
    on: {
      input: (event) => {
        state.q = event.target.value;
        soon();
      },
    },
  });
  const names = h(
    "datalist",
    { id: "names" },
    page.catalog.sources
      .flatMap((source) => source.tools)
      .slice(0, 2000)
      .map((tool) => h("option", { value: tool.name })),
  );
  const whyNot = h("input", {
    list: "names",
    value: state.why,
    autocomplete: "off",
    on: {
      input: (event) => {
        state.why = event.target.value;
        soon();
      },
    },
  });
  const beside = h("input", {
    type: "checkbox",
    checked: Boolean(state.right),
    on: {
      change: (event) => {
        state.right = event.target.checked ? { ranker: "bm25" } : null;
        searchView(main, page);
      },
    },
  });
  show(
    main,
    h("h2", {}, "What a search finds"),
    h(
      "form",
      { class: "controls", role: "search", on: { submit: (event) => event.preventDefault() } },
      field("Query", query),
      field("Why not this tool?", whyNot),
      field("Side by side", beside),
      names,
    ),
    h(
      "div",
      { class: "controls" },
      knobs(page, state.left, soon, "Left"),
      state.right ? knobs(page, state.right, soon, "Right") : null,
    ),
    reason,
    results,
  );
  query.focus();
  draw();
}

function knobs(page, side, changed, name) {
  const own = page.catalog.settings;
  const floor = h("input", {
    type: "number",
    min: "0",
    max: "1",
    step: "0.05",
    value: side.floor ?? own.floor,
    on: {
      input: (event) => {
        side.floor = event.target.value;
        changed();
      },
    },
  });
  const ranker = choice(["default", ...page.catalog.rankers], side.ranker ?? own.ranker, (value) => {
    side.ranker = value;
    changed();
  });
  return h(
    "fieldset",
    {},
    h("legend", {}, name),
    field("Ranker", ranker),
    field("Floor", floor),
  );
}

function column(found, side) {
  const rows = found.hits.map((hit, i) =>
    h(
      "li",
      { class: `hit ${hit.shown}` },
      h("div", {}, toolLink(hit.name), " ", h("span", { class: "score" }, score(hit, found))),
      bar(hit, found),
      hit.shown === "signature" ? h("code", {}, hit.signature) : null,
      hit.shown === "signature" ? h("p", {}, hit.summary) : null,
      h("p", { class: "why" }, `${hit.shown}: ${hit.why}`),
    ),
  );
  const missed = found.missed.map((miss) =>
    h(
      "div",
      { class: "missed" },
      h("p", {}, `Nothing for “${miss.need}”: every tool is below the floor of ${found.floor}.`),
      h(
        "ul",
        {},
        miss.nearest.map((hit) => h("li", {}, toolLink(hit.name), ` ${hit.score}: ${hit.why}`)),
      ),
    ),
  );
  return h(
    "section",
    { "aria-label": `hits of ${side.ranker ?? "the settings' ranker"}` },
    h("h3", {}, `${side.ranker ?? "default"}: ${counted(found.hits.length, "hit")}`),
    found.weak.length ? h("p", { class: "mark" }, `Weak: ${found.weak.join(", ")}`) : null,
    missed,
    h("ol", { class: "hits" }, rows),
    h("h3", {}, `What the model reads, ${number(found.tokens)} tokens`),
    h("pre", { tabindex: "0", "aria-label": "answer" }, found.answer),
  );
}

function score(hit, found) {
  return found.calibrated ? `${(hit.score * 100).toFixed(1)} %` : hit.score.toFixed(2);
}

function bar(hit, found) {
  if (!found.calibrated) return null;
  return h("meter", {
    min: "0",
    max: "1",
    low: String(found.floor),
    value: String(Math.min(hit.score, 1)),
    "aria-label": "probability",
  });
}

function reasons(found) {
  return h(
    "section",
    { class: "reasons" },
    h("h3", {}, "Why not ", toolLink(found.name), "?"),
    found.needs.map((row) =>
      h(
        "p",
        {},
        `“${row.need}”: `,
        row.place ? `place ${row.place}, ${row.why}. ` : `${row.why}. `,
        row.below_floor ? `The best of all is below the floor of ${row.floor}. ` : "",
        row.above.length ? "Above it: " : "",
        row.above.flatMap((hit) => [toolLink(hit.name), ` (${hit.why}) `]),
      ),
    ),
  );
}
