// What the catalog costs: a map of sources and their tools, the same as tables, what would hurt.

import { counted, field, h, head, meter, number, panel, saved, share, show, stat, table } from "./dom.js";
import { findingsPanel } from "./findings.js";
import { address, ask } from "./page.js";
import { toolView } from "./tool.js";
import { drawnMap } from "./treemap.js";

const NONE = "(no source)";
const FOUND = 100;

export function catalogView(main, page) {
  const [kind, name] = page.parts;
  if (kind === "tool" && name !== undefined) return toolView(main, page, name);
  const source = kind === "source" ? page.catalog.sources.find((each) => each.name === name) : null;
  if (source) return sourceView(main, page, source);
  const { catalog } = page;
  const folded = h("strong", {}, "…");
  const less = h("span", {}, "in a window of 131,072");
  const after = h("a", { class: "stat good", href: "#fold" }, h("span", {}, "Tokens, folded"), folded, less);
  const place = h("div", {});
  const filter = filtering(catalog, place, () => sourcesTable(catalog));
  show(place, sourcesTable(catalog));
  const map = h("div", { class: "treemap", "aria-hidden": "true" });
  show(
    main,
    h(
      "div",
      { class: "stack" },
      head("What costs what", "Every definition is read with every request"),
      h(
        "div",
        { class: "stats" },
        stat("Tools", number(catalog.tools), counted(catalog.sources.length, "source")),
        stat("Tokens, as they are", number(catalog.tokens), "in every request"),
        after,
        stat("A tool, on average", number(Math.round(catalog.tokens / Math.max(catalog.tools, 1))), "tokens"),
      ),
      h(
        "div",
        { class: "two wide-left" },
        h("section", { class: "panel" }, map),
        h("section", { class: "panel stack tight" }, filter, place),
      ),
      findingsPanel(page),
    ),
  );
  ask("fold", { context_length: 131072 })
    .then(({ report }) => {
      folded.textContent = number(report.tokens_after);
      less.textContent = saved(report.tokens_before, report.tokens_after);
    })
    .catch((error) => (less.textContent = error.message));
  return drawnMap(map, catalog.sources.map(group));
}

function group(source, i) {
  return {
    name: source.name || NONE,
    value: source.tokens,
    hue: (i * 47 + 230) % 360,
    about: `${counted(source.tools.length, "tool")}, ${number(source.tokens)} tokens`,
    link: address("catalog", ["source", source.name]),
    parts: source.tools.map((tool) => ({
      name: tool.name,
      label: bare(tool.name, source.name),
      value: tool.tokens,
      about: `${number(tool.tokens)} tokens`,
      link: address("catalog", ["tool", tool.name]),
    })),
  };
}

// A tool's name without its source's, which stands above it.
function bare(name, source) {
  return source && name.startsWith(`${source}__`) ? name.slice(source.length + 2) : name;
}

// A list of all tools that is short until a name is typed.
function filtering(catalog, place, unfiltered) {
  const box = h("input", {
    type: "search",
    "data-filter": true,
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "part of a name",
    on: {
      input: () => {
        const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
        if (!words.length) return show(place, unfiltered());
        const found = catalog.sources
          .flatMap((source) => source.tools)
          .filter((tool) => words.every((word) => tool.name.toLowerCase().includes(word)))
          .sort((a, b) => b.tokens - a.tokens);
        if (!found.length) {
          return show(place, h("p", { class: "soft" }, "No tool has this in its name. Search finds by meaning: press /"));
        }
        show(place, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Tools found" }, toolsTable(found, catalog.tokens)));
      },
    },
  });
  return field("Find a tool by name", box);
}

function sourcesTable(catalog) {
  const rows = catalog.sources.map((source) => () =>
    h(
      "tr",
      {},
      h("td", {}, h("a", { href: address("catalog", ["source", source.name]) }, source.name || NONE), meter(source.tokens, catalog.sources[0].tokens)),
      h("td", { class: "number" }, number(source.tools.length)),
      h("td", { class: "number" }, number(source.tokens)),
      h("td", { class: "number soft" }, share(source.tokens, catalog.tokens)),
    ),
  );
  const heads = ["Source", { text: "Tools", kind: "number" }, { text: "Tokens", kind: "number" }, { text: "Share", kind: "number" }];
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Sources" },
    table(heads, rows, { most: FOUND, label: "Sources" }),
  );
}

function toolsTable(tools, whole) {
  const most = tools.reduce((found, tool) => Math.max(found, tool.tokens), 0);
  const rows = tools.map((tool) => () =>
    h(
      "tr",
      {},
      h("td", {}, toolLink(tool.name), meter(tool.tokens, most)),
      h("td", { class: "number" }, number(tool.tokens)),
      h("td", { class: "number soft" }, share(tool.tokens, whole)),
    ),
  );
  const heads = ["Tool", { text: "Tokens", kind: "number" }, { text: "Share", kind: "number" }];
  return table(heads, rows, { most: FOUND, label: "Tools" });
}

export function toolLink(name) {
  return h("a", { href: address("catalog", ["tool", name]) }, name);
}

function sourceView(main, page, source) {
  const map = h("div", { class: "treemap", "aria-hidden": "true" });
  show(
    main,
    h(
      "div",
      { class: "stack" },
      h("nav", { class: "crumbs", "aria-label": "Where you are" }, h("a", { href: "#catalog" }, "All sources"), " / ", source.name || NONE),
      head(source.name || NONE, `${counted(source.tools.length, "tool")}, ${number(source.tokens)} tokens, ${share(source.tokens, page.catalog.tokens)} of the catalog`),
      h(
        "div",
        { class: "two wide-left" },
        h("section", { class: "panel" }, map),
        panel("", h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Tools" }, toolsTable(source.tools, page.catalog.tokens))),
      ),
    ),
  );
  const place = page.catalog.sources.indexOf(source);
  return drawnMap(map, group(source, place).parts.map((tool) => ({ ...tool, hue: (place * 47 + 230) % 360 })));
}
