// Recorded conversations: what was said, the real calls, and what was asked behind the scenes.

import { auditLog } from "./audit.js";
import { toolLink } from "./catalog.js";
import { counted, empty, failure, field, h, head, number, seconds, show, tag, tags } from "./dom.js";
import { address, ask } from "./page.js";

const KINDS = { chat: "chat", ab: "A/B", proxy: "proxy", audit: "audit log" };
const SHOWN = 500;

export async function conversationsDrawn(main, page) {
  const [chosen] = page.parts;
  const place = h("article", { class: "panel", tabindex: "-1" }, h("p", { class: "soft" }, "Choose one."));
  show(main, h("div", { class: "stack" }, head("Conversations")));
  let found;
  try {
    found = (await ask("conversations")).conversations;
  } catch (error) {
    return show(main, failure(error));
  }
  if (!found.length) {
    return show(
      main,
      h(
        "div",
        { class: "stack" },
        head("Conversations"),
        empty(
          "None was given",
          "Begin the inspector with what was recorded: a transcript of toolfold chat or toolfold ab, the folder of toolfold proxy --save, or the audit log of a gateway.",
          ["toolfold chat --script demo --transcript chat.jsonl", "toolfold inspect chat.jsonl", "toolfold inspect traffic/ audit.jsonl"],
        ),
      ),
    );
  }
  const list = h("ul", {});
  const filter = h("input", {
    type: "search",
    "data-filter": true,
    autocomplete: "off",
    on: { input: () => show(list, items(found, filter.value, chosen)) },
  });
  show(list, items(found, "", chosen));
  show(
    main,
    h(
      "div",
      { class: "stack" },
      head("Conversations", counted(found.length, "conversation")),
      h("div", { class: "beside" }, h("nav", { class: "panel list", "aria-label": "Conversations" }, field("Filter", filter), list), place),
    ),
  );
  const first = chosen ?? (found.length === 1 ? String(found[0].id) : undefined);
  if (first === undefined) return;
  try {
    const own = await ask("conversation", { id: first });
    show(place, own.kind === "audit" ? auditLog(own) : conversation(own));
  } catch (error) {
    show(place, failure(error));
  }
}

export function conversationsView(main, page) {
  conversationsDrawn(main, page);
}

function items(found, text, chosen) {
  const words = text.toLowerCase();
  const own = found.filter((each) => `${each.title} ${each.name} ${each.kind} ${each.model}`.toLowerCase().includes(words));
  if (!own.length) return h("li", { class: "soft" }, "None has this in it.");
  return own.slice(0, SHOWN).map((each) =>
    h(
      "li",
      {},
      h(
        "a",
        {
          href: address("conversations", [String(each.id)]),
          "aria-current": String(each.id) === chosen ? "page" : null,
          title: `${each.folder}/${each.name}`,
        },
        h("strong", {}, each.title || each.name),
        h(
          "small",
          {},
          [
            KINDS[each.kind] ?? "",
            each.kind === "audit" ? counted(each.turns, "line") : each.kind ? counted(each.turns, "turn") : "",
            each.model,
            each.requests > 1 ? counted(each.requests, "request") : "",
            each.title ? each.name : "",
            each.error,
          ]
            .filter(Boolean)
            .join(" · "),
        ),
      ),
    ),
  );
}

function conversation(found) {
  const about = Object.entries(found.about ?? {}).map(([key, value]) => `${key} ${value}`);
  const total = (name) => found.turns.reduce((sum, each) => sum + (each[name] ?? 0), 0);
  const sums = [counted(found.turns.length, "turn"), ...metrics({ ...Object.fromEntries(["seconds", "round_trips", "prompt", "completion", "saved"].map((name) => [name, total(name) || undefined])) })];
  return [
    h("h3", {}, found.name),
    h("p", { class: "soft" }, [KINDS[found.kind], ...about].join(" · ")),
    h("p", { class: "sums" }, sums.map((text) => h("span", {}, text))),
    found.error ? h("p", { class: "notice bad" }, found.error) : null,
    found.turns.length ? found.turns.map(turn) : h("p", { class: "soft" }, "Nobody said anything."),
  ];
}

function metrics(each) {
  return [
    each.seconds === undefined ? null : seconds(each.seconds),
    each.round_trips === undefined ? null : counted(each.round_trips, "round trip"),
    each.searches ? `${number(each.searches)} answered without the client` : null,
    each.prompt === undefined ? null : `${number(each.prompt)} tokens read${each.cached ? ` (${number(each.cached)} cached)` : ""}`,
    each.completion === undefined ? null : `${number(each.completion)} written`,
    each.saved ? `${number(each.saved)} saved by folding` : null,
    each.stop && each.stop !== "answer" && each.stop !== "done" ? `ended: ${each.stop}` : null,
  ].filter(Boolean);
}

function turn(each, i) {
  const used = new Set(each.used);
  const sums = metrics(each);
  if (!sums.length) sums.push(`about ${number(each.spoken)} tokens said and read`);
  return h(
    "section",
    { class: "turn", "aria-label": `turn ${i + 1}` },
    h("div", { class: "said user" }, h("span", { class: "who" }, "user"), each.user),
    each.note ? h("details", { class: "bridge" }, h("summary", {}, "tools named before the model asked"), h("pre", { tabindex: "0" }, each.note)) : null,
    each.steps.map(step),
    h("p", { class: "sums" }, sums.map((text) => h("span", {}, text))),
    each.found.length || used.size
      ? h(
          "div",
          { class: "row" },
          h("small", {}, each.found.length ? `found ${number(each.found.length)}, used ${number(used.size)}` : "used"),
          tags([...used].map((name) => tag(name, "good")).concat(each.found.filter((name) => !used.has(name)).slice(0, 12).map((name) => tag(name)))),
        )
      : null,
  );
}

function step(each) {
  if (each.kind === "text") return h("div", { class: "said model" }, h("span", { class: "who" }, "model"), each.text);
  const result = h("pre", { class: each.is_error ? "error" : null, tabindex: "0", "aria-label": "result" }, each.result ?? "no result");
  if (each.kind === "bridge") {
    const asked = each.needs.length ? each.needs.map((need) => `“${need}”`).join(", ") : each.arguments;
    const led = each.found.length ? ` → ${counted(each.found.length, "tool")}` : "";
    return h("details", { class: "bridge" }, h("summary", {}, `${each.tool} ${asked}${led}, ${number(each.tokens)} tokens`), result);
  }
  return h(
    "div",
    { class: `called ${each.is_error ? "failed" : ""}` },
    h(
      "div",
      { class: "row" },
      h("strong", {}, toolLink(each.tool)),
      each.is_error ? tag("failed", "bad") : null,
      each.via ? h("small", {}, `by ${each.via}`) : null,
      each.recovered ? h("small", {}, "read out of text") : null,
    ),
    given(each.arguments),
    h("details", {}, h("summary", {}, h("small", {}, `result, ${number(each.tokens)} tokens`)), result),
  );
}

export function given(values) {
  const entries = Object.entries(values ?? {});
  if (!entries.length) return h("small", {}, "no arguments");
  return h(
    "dl",
    { class: "arguments" },
    entries.flatMap(([key, value]) => [h("dt", {}, key), h("dd", {}, typeof value === "string" ? value : JSON.stringify(value))]),
  );
}
