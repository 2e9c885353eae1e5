// What the catalog costs: a treemap of sources, then of tools; one tool in full; what would hurt.

import { counted, h, number, pretty, show } from "./dom.js";
import { treemap } from "./treemap.js";

const NONE = "(no source)";
const SHOWN = 200;

export function catalogView(main, page) {
  const [kind, name] = split(page.rest);
  if (kind === "tool") return toolView(main, page, name);
  const source = kind === "source" ? page.catalog.sources.find((s) => s.name === name) : undefined;
  show(
    main,
    source ? crumbs(source.name || NONE) : h("h2", {}, "What costs what"),
    source ? tools(source) : sources(page.catalog),
    source ? null : hurting(page),
  );
}

export function toolLink(name) {
  return h("a", { href: `#catalog/tool:${encodeURIComponent(name)}` }, name);
}

function split(rest) {
  const at = rest.indexOf(":");
  return at < 0 ? ["", ""] : [rest.slice(0, at), rest.slice(at + 1)];
}

function crumbs(name) {
  return h("h2", {}, h("a", { href: "#catalog" }, "All sources"), " / ", name);
}

function sources(catalog) {
  return drawn(
    catalog.sources.map((source) => ({
      name: source.name || NONE,
      about: `${counted(source.tools.length, "tool")}, ${number(source.tokens)} tokens`,
      value: source.tokens,
      link: `#catalog/source:${encodeURIComponent(source.name)}`,
    })),
    ["Source", "Cost"],
  );
}

function tools(source) {
  return drawn(
    source.tools.map((tool) => ({
      name: tool.name,
      about: `${number(tool.tokens)} tokens`,
      value: tool.tokens,
      link: `#catalog/tool:${encodeURIComponent(tool.name)}`,
    })),
    ["Tool", "Cost"],
  );
}

function drawn(items, heads) {
  const first = items.slice(0, SHOWN);
  const places = treemap(first.map((item) => item.value), 100, 56);
  // The table below says the same to whoever reads and does not look.
  const map = h(
    "div",
    { class: "treemap", "aria-hidden": "true" },
    first.map((item, i) => tile(item, places[i], i)),
  );
  const rows = items.map((item) =>
    h(
      "tr",
      {},
      h("td", {}, h("a", { href: item.link }, item.name)),
      h("td", { class: "number" }, item.about),
    ),
  );
  const head = h("tr", {}, heads.map((text) => h("th", { scope: "col" }, text)));
  return h("div", {}, map, h("table", {}, h("thead", {}, head), h("tbody", {}, rows)));
}

function tile(item, place, i) {
  if (!place) return null;
  return h(
    "a",
    {
      href: item.link,
      tabindex: "-1",
      class: `tile tone-${i % 6}`,
      title: `${item.name}: ${item.about}`,
      place: {
        left: `${place.x}%`,
        top: `${(place.y / 56) * 100}%`,
        width: `${place.width}%`,
        height: `${(place.height / 56) * 100}%`,
      },
    },
    place.width > 7 && place.height > 5 ? h("span", {}, item.name) : null,
    place.width > 12 && place.height > 9 ? h("small", {}, item.about) : null,
  );
}

let found;

function hurting(page) {
  const section = h("section", {}, h("h2", {}, "What would hurt"), h("p", {}, "Looking …"));
  found ??= page.ask("findings");
  found
    .then((value) => show(section, h("h2", {}, "What would hurt"), findings(value)))
    .catch((error) => section.append(h("p", { class: "error" }, error.message)));
  return section;
}

function findings(value) {
  const list = value.findings.map((finding) =>
    h(
      "li",
      { class: finding.severity },
      h("strong", {}, `${finding.severity}: ${finding.kind}`),
      " ",
      finding.tools.flatMap((name) => [toolLink(name), " "]),
      finding.message,
    ),
  );
  return h(
    "div",
    {},
    list.length ? h("ul", { class: "findings" }, list) : h("p", {}, "Nothing was found."),
    value.more ? h("p", {}, `${number(value.more)} more.`) : null,
  );
}

async function toolView(main, page, name) {
  show(main, crumbs(name), h("p", {}, "…"));
  let tool;
  try {
    tool = await page.ask("tool", { name });
  } catch (error) {
    show(main, crumbs(name), h("p", { class: "error", role: "alert" }, error.message));
    return;
  }
  const shapes = Object.keys(tool.wire);
  const bytes = h("pre", { tabindex: "0", "aria-label": "definition" });
  const size = h("p", {});
  const draw = (shape) => {
    bytes.textContent = pretty(tool.wire[shape]);
    size.textContent = `${number(tool.wire[shape].length)} characters as it is sent, compact`;
  };
  draw(shapes[0]);
  const picked = h(
    "select",
    { "aria-label": "Wire shape", on: { change: (event) => draw(event.target.value) } },
    shapes.map((shape) => h("option", { value: shape }, shape)),
  );
  show(
    main,
    crumbs(tool.name),
    h("p", { class: "signature" }, tool.signature),
    h("p", { class: "description" }, tool.description || "It has no description."),
    facts(tool),
    tool.findings.length
      ? h(
          "ul",
          { class: "findings" },
          tool.findings.map((finding) =>
            h("li", { class: finding.severity }, `${finding.kind}: ${finding.message}`),
          ),
        )
      : null,
    h("h3", {}, "What a model reads after tool_describe"),
    h("pre", { tabindex: "0", "aria-label": "described" }, tool.described),
    h("h3", {}, "On the wire ", picked),
    size,
    bytes,
  );
}

function facts(tool) {
  const place = (found) => (found === null ? "not found" : `found, place ${found}`);
  const rows = [
    ["Tokens", number(tool.tokens)],
    ["Policy", tool.policy],
    ["Hints", Object.keys(tool.annotations ?? {}).join(", ") || "none"],
    ["By its own description", place(tool.found.by_description)],
    ["In other words", place(tool.found.by_paraphrase)],
    ["Words to add", tool.found.words_to_add.join(", ") || "none"],
    ["Stands behind", tool.found.shadowed_by.join(", ") || "none"],
  ];
  return h(
    "dl",
    {},
    rows.flatMap(([term, text]) => [h("dt", {}, term), h("dd", {}, text)]),
  );
}
