// Recorded conversations: what was said, the real calls, and what was asked behind the scenes.

import { toolLink } from "./catalog.js";
import { counted, h, number, show } from "./dom.js";

export async function conversationsView(main, page) {
  const list = h("nav", { "aria-label": "Conversations" });
  const place = h("article", {}, h("p", {}, "Choose a conversation."));
  show(main, h("h2", {}, "Conversations"), h("div", { class: "beside" }, list, place));
  let found;
  try {
    found = (await page.ask("conversations")).conversations;
  } catch (error) {
    show(place, h("p", { class: "error", role: "alert" }, error.message));
    return;
  }
  if (!found.length) {
    show(
      place,
      h("p", {}, "None was given. Begin with ", h("code", {}, "toolfold inspect --conversations FILE"), ", a transcript of ", h("code", {}, "toolfold chat"), " or ", h("code", {}, "toolfold ab"), ", or the folder of ", h("code", {}, "toolfold proxy --save"), "."),
    );
    return;
  }
  show(
    list,
    h(
      "ul",
      {},
      found.map((each) =>
        h(
          "li",
          {},
          h(
            "a",
            {
              href: `#conversations/${each.id}`,
              "aria-current": String(each.id) === page.rest ? "page" : null,
              title: each.folder,
            },
            each.name,
          ),
        ),
      ),
    ),
  );
  if (!page.rest) return;
  try {
    show(place, conversation(await page.ask("conversation", { id: page.rest })));
  } catch (error) {
    show(place, h("p", { class: "error", role: "alert" }, error.message));
  }
}

function conversation(found) {
  const about = Object.entries(found.run ?? {}).map(([key, value]) => `${key} ${value}`);
  return [
    h("h3", {}, found.name),
    h("p", { class: "why" }, [found.kind, ...about, counted(found.turns.length, "turn")].join(", ")),
    ...found.turns.map(turn),
  ];
}

function turn(each, i) {
  const sums = [
    each.seconds === undefined ? null : `${each.seconds} s`,
    each.round_trips === undefined ? null : counted(each.round_trips, "round trip"),
    each.tokens === undefined ? null : `${number(each.tokens)} tokens`,
    each.found.length ? `found ${each.found.join(", ")}` : null,
    each.used.length ? `used ${each.used.join(", ")}` : null,
  ].filter(Boolean);
  return h(
    "section",
    { class: "turn", "aria-label": `turn ${i + 1}` },
    h("div", { class: "said user" }, h("strong", {}, "user "), each.user),
    each.note ? h("details", {}, h("summary", {}, "named before it was asked"), h("pre", {}, each.note)) : null,
    each.steps.map(step),
    sums.length ? h("p", { class: "why" }, sums.join(" · ")) : null,
  );
}

function step(each) {
  if (each.kind === "text") return h("div", { class: "said model" }, h("strong", {}, "model "), each.text);
  const result = h("pre", { class: each.is_error ? "error" : null, tabindex: "0" }, each.result ?? "no result");
  if (each.kind === "bridge") {
    const asked = each.needs.length ? each.needs.join(" | ") : each.arguments;
    return h(
      "details",
      { class: "bridge" },
      h("summary", {}, `${each.tool}: ${asked} (${number(each.tokens)} tokens)`),
      result,
    );
  }
  return h(
    "div",
    { class: "called" },
    h(
      "p",
      {},
      toolLink(each.tool),
      each.via ? ` by ${each.via}` : "",
      each.recovered ? ", read out of text" : "",
      each.is_error ? h("strong", { class: "error" }, " failed") : "",
    ),
    h("pre", { tabindex: "0", "aria-label": "arguments" }, JSON.stringify(each.arguments, null, 2)),
    h("details", {}, h("summary", {}, `result, ${number(each.tokens)} tokens`), result),
  );
}
