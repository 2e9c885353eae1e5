// One tool: what it says, what it takes, how it is found, and the exact bytes that a model reads.

import { copying, facts, failure, h, number, panel, pretty, segments, show, table, tag } from "./dom.js";
import { words } from "./findings.js";
import { address, ask } from "./page.js";

export function toolView(main, page, name) {
  const body = h("div", { class: "stack" }, crumbs(page, name), h("h2", {}, name));
  show(main, body);
  ask("tool", { name, catalog: page.values.catalog })
    .then((tool) => show(body, crumbs(page, tool.name, tool.source), h("h2", {}, tool.name), ...drawn(tool)))
    .catch((error) => body.append(failure(error)));
}

function crumbs(page, name, source) {
  const own = source ?? page.catalog.sources.find((each) => each.tools.some((tool) => tool.name === name))?.name;
  return h(
    "nav",
    { class: "crumbs", "aria-label": "Where you are" },
    h("a", { href: "#catalog" }, "All sources"),
    own ? [" / ", h("a", { href: address("catalog", ["source", own]) }, own)] : null,
    " / ",
    name,
  );
}

function drawn(tool) {
  return [
    h("p", { class: "signature panel" }, tool.signature),
    h(
      "div",
      { class: "two wide-left" },
      h(
        "div",
        { class: "stack" },
        panel("What it says", h("p", { class: "description" }, tool.description || "It has no description: a search can find it by its name and parameters alone.")),
        parameters(tool.parameters),
        bytes(tool),
      ),
      h("div", { class: "stack" }, panel("Facts", about(tool)), found(tool), hurting(tool)),
    ),
  ];
}

function about(tool) {
  const hints = Object.entries(tool.annotations ?? {}).map(([key, value]) => `${key}: ${value}`);
  return facts([
    ["Tokens", number(tool.tokens)],
    ["Source", tool.source ?? "none"],
    ["Deferral", tool.policy],
    ["Hints", hints.length ? hints.join(", ") : "none"],
  ]);
}

function found(tool) {
  const place = (value) => (value === null ? tag("not found", "bad") : tag(`place ${value}`, value === 1 ? "good" : ""));
  return panel(
    "Is it found?",
    facts([
      ["By its own words", place(tool.found.by_description)],
      ["In other words", place(tool.found.by_paraphrase)],
      ["Words to add", words(tool.found.words_to_add)],
      ["Ranked above it", tool.found.shadowed_by.length ? tool.found.shadowed_by.map((name, i) => [i ? ", " : "", h("a", { href: address("catalog", ["tool", name]) }, name)]) : "none"],
    ].map(([term, value]) => [term, h("span", {}, value)])),
    h("p", {}, h("a", { href: address("search", [], { q: firstSentence(tool.description), why: tool.name }) }, "Search for it")),
  );
}

function firstSentence(text) {
  return (text.match(/^[^.\n]{1,160}/) ?? [""])[0];
}

function hurting(tool) {
  if (!tool.findings.length) return null;
  return panel(
    "What would hurt",
    h("ul", { class: "plain-list" }, tool.findings.map((each) => h("li", {}, tag(each.severity, each.severity), " ", h("strong", {}, each.kind), ": ", each.message))),
  );
}

function parameters(schema) {
  const own = Object.entries(schema?.properties ?? {});
  if (!own.length) return panel("What it takes", h("p", { class: "soft" }, "No arguments."));
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const rows = own.map(([name, value]) => () =>
    h(
      "tr",
      {},
      h("td", { class: "full" }, h("code", {}, name), required.has(name) ? [" ", tag("required", "accent")] : null),
      h("td", { class: "full" }, h("code", {}, kind(value))),
      h("td", { class: "full" }, value?.description ?? ""),
    ),
  );
  return panel("What it takes", table(["Argument", "Type", "Meaning"], rows, { most: 50, kind: "cards", label: "Arguments" }));
}

function kind(value) {
  if (value === null || typeof value !== "object") return "anything";
  if (Array.isArray(value.enum)) return value.enum.slice(0, 8).map((each) => JSON.stringify(each)).join(" | ");
  if (value.type === "array") return `${kind(value.items ?? {})}[]`;
  if (Array.isArray(value.type)) return value.type.join(" | ");
  const others = value.anyOf ?? value.oneOf;
  if (Array.isArray(others)) return others.slice(0, 6).map(kind).join(" | ");
  return value.format ?? value.type ?? "anything";
}

function bytes(tool) {
  const shapes = Object.keys(tool.wire);
  const choices = ["after a search", ...shapes];
  let shape = shapes[0];
  let exact = true;
  const text = h("pre", { tabindex: "0", "aria-label": "definition" });
  const size = h("p", { class: "soft" });
  const place = h("span", {});
  const draw = () => {
    const searched = shape === choices[0];
    const own = searched ? tool.described : tool.wire[shape].text;
    text.textContent = exact ? own : pretty(own);
    const tokens = searched ? Math.ceil(own.length / 4) : tool.wire[shape].tokens;
    size.textContent = `${number(own.length)} characters, ${number(tokens)} tokens` + (searched ? ", as tool_describe answers" : "");
    show(place, copying(own));
  };
  draw();
  return panel(
    "The exact bytes that a model reads",
    h(
      "div",
      { class: "stack tight" },
      segments("Wire shape", choices, shape, (value) => {
        shape = value;
        draw();
      }),
      h(
        "div",
        { class: "row" },
        segments("Layout", ["exact", "indented"], "exact", (value) => {
          exact = value === "exact";
          draw();
        }),
        place,
        size,
      ),
      text,
    ),
  );
}
