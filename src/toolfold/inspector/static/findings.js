// What would hurt, as `toolfold check` finds it, with the words to add; looked for while one reads.

import { toolLink } from "./catalog.js";
import { copying, counted, failure, h, number, show, table, tag, tags } from "./dom.js";
import { ask, say } from "./page.js";

const EVERY = 600;

export function findingsPanel(page) {
  const place = h("div", { class: "stack tight" });
  const section = h("section", { class: "panel stack tight", "aria-labelledby": "hurts" }, h("h3", { id: "hurts" }, "What would hurt"), place);
  let retrieval = false;
  let told = "";
  const draw = async () => {
    let found;
    try {
      found = await ask("findings", { retrieval: retrieval ? 1 : "" });
    } catch (error) {
      return show(place, failure(error));
    }
    const text = JSON.stringify(found);
    if (text !== told) show(place, drawn(found, begin));
    told = text;
    const waits = found.findings === null || found.searching;
    if (waits && !found.error && section.isConnected) setTimeout(draw, EVERY);
    else if (retrieval) say(`${counted(found.hard_to_find?.length ?? 0, "tool")} hard to find`);
  };
  const begin = () => {
    retrieval = true;
    draw();
  };
  show(place, waiting("Looking over the definitions …"));
  setTimeout(draw); // the page first
  return section;
}

function waiting(text, done, total) {
  const bar = h("progress", { value: done, max: total, "aria-label": text });
  return h("p", { class: "soft" }, bar, " ", text);
}

function drawn(found, begin) {
  const parts = [];
  if (found.error) parts.push(h("p", { class: "notice bad" }, found.error));
  if (found.findings === null) parts.push(waiting("Looking over the definitions …"));
  else parts.push(listed(found));
  if (found.searching) {
    parts.push(waiting(`Searching for each tool by its own words and by others: ${number(found.searched)} of ${number(found.tools)}`, found.searched, found.tools));
  } else if (found.hard_to_find !== null) {
    parts.push(hard(found));
  } else if (!found.error) {
    parts.push(
      h(
        "div",
        { class: "row" },
        h("button", { type: "button", on: { click: begin } }, `Search for each of the ${number(found.tools)} tools`),
        h("small", {}, "by its own words and by others; it takes a while and goes on beside your work"),
      ),
    );
  }
  return parts;
}

function listed(found) {
  if (!found.findings.length) return h("p", {}, "No definition is missing, over-long, unusable or another’s near-duplicate.");
  const rows = found.findings.map((finding) => () =>
    h(
      "tr",
      {},
      h("td", {}, tag(finding.severity, finding.severity)),
      h("td", {}, finding.kind),
      h("td", { class: "full" }, finding.tools.map((name, i) => [i ? ", " : "", toolLink(name)])),
      h("td", { class: "full" }, finding.message),
    ),
  );
  return h(
    "div",
    { class: "stack tight" },
    table(["", "What", "Tool", "Why it hurts"], rows, { most: 12, kind: "cards", label: "Findings" }),
    found.more ? h("p", { class: "soft" }, `${number(found.more)} more: see toolfold check`) : null,
  );
}

function hard(found) {
  if (!found.hard_to_find.length) {
    return h("p", {}, "Each tool is found by its own description and by paraphrases of it.");
  }
  const rows = found.hard_to_find.map((each) => () =>
    h(
      "tr",
      {},
      h("td", { class: "full" }, toolLink(each.name)),
      h("td", { class: "full" }, each.by_description === null ? "not by its own description" : "not in other words"),
      h("td", { class: "full" }, words(each.words_to_add)),
      h("td", { class: "full" }, each.shadowed_by.map((name, i) => [i ? ", " : "", toolLink(name)])),
    ),
  );
  return h(
    "div",
    { class: "stack tight" },
    h("h4", {}, `Hard to find: ${counted(found.hard_to_find.length + found.hard_more, "tool")}`),
    table(["Tool", "Is found", "Words to add", "Ranked above it"], rows, { most: 12, kind: "cards", label: "Hard to find" }),
  );
}

export function words(list) {
  if (!list.length) return h("span", { class: "soft" }, "none");
  return h("div", { class: "row" }, tags(list.map((word) => tag(word, "accent"))), copying(list.join(" ")));
}
