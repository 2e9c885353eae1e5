// What a model would see of the catalog under each strategy and for each model; the gate as a
// slider.

import { choice, copying, failure, field, h, head, latest, meter, number, panel, pretty, saved, segments, show, table, tag } from "./dom.js";
import { ask, remember, say } from "./page.js";

const WINDOWS = [4096, 8192, 16384, 32768, 65536, 131072, 200000, 262144, 400000, 524288, 1000000, 2000000];
const MODELS = ["claude-opus-5", "claude-sonnet-5", "gpt-6", "gpt-5.6", "gemini-3-pro", "gpt-oss-120b", "qwen3-coder", "llama-3.3-70b", "mistral-small-3.2"];
const APIS = { "": "any", "anthropic-messages": "Anthropic Messages", "openai-responses": "OpenAI Responses" };
const WHAT = {
  bridge: "three tools stand for all",
  reveal: "what a search finds joins the list",
  stub: "names stay, parameters go",
  native: "the provider defers, our search finds",
  hosted: "the provider defers and searches",
};
const NAMES = ["strategy", "enabled", "listing", "api", "model", "context_length", "gate"];
const DEFAULT_WINDOW = 131072;

let kept = {};

export function foldView(main, page) {
  const state = Object.keys(page.values).length ? page.values : kept;
  kept = state;
  const seen = h("div", { class: "stack" });
  const ways = h("section", { class: "panel ways" }, h("h3", {}, "Every strategy, on these tools"), h("p", { class: "soft" }, "Folding …"));
  let rows = null;
  let last = null;
  let asked = 0;
  const options = () => {
    const given = Object.fromEntries(NAMES.map((name) => [name, state[name]]));
    if (!given.model && !given.context_length) given.context_length = DEFAULT_WINDOW;
    return given;
  };
  const draw = async () => {
    const own = (asked += 1);
    remember("fold", [], state);
    try {
      const found = await ask("fold", options());
      if (own !== asked) return;
      show(seen, report(found), ways, guidance(found), sent(found));
      follow(found.report.context_length);
      say(found.says);
      last = found;
      if (rows) show(ways, strategies(rows, found, pick));
      compare();
    } catch (error) {
      if (own === asked) show(seen, failure(error));
    }
  };
  const soon = latest(draw);
  // Every strategy takes a moment where there are thousands of tools: what was asked for first.
  const compare = latest(async () => {
    const all = await ask("strategies", options()).catch(() => null);
    rows = all?.rows;
    if (rows) show(ways, strategies(rows, last, pick));
  });
  const set = (name) => (value) => {
    state[name] = value;
    soon();
  };
  const pick = (row) => {
    state.strategy = row.strategy;
    state.api = row.api ?? "";
    strategy.value = row.strategy;
    api.value = state.api;
    soon();
  };
  const strategy = choice(page.catalog.strategies, state.strategy ?? page.catalog.settings.strategy, set("strategy"));
  const api = choice(["", ...page.catalog.apis], state.api ?? "", set("api"), APIS);
  const model = h("input", {
    value: state.model ?? "",
    list: "models",
    autocomplete: "off",
    placeholder: "any",
    on: {
      input: () => {
        delete state.context_length; // a model that is known has a window of its own
        set("model")(model.value);
      },
    },
  });
  const size = h("output", { class: "number" });
  const slider = h("input", {
    type: "range",
    min: "0",
    max: String(WINDOWS.length - 1),
    on: { input: () => (follow(WINDOWS[Number(slider.value)]), set("context_length")(WINDOWS[Number(slider.value)])) },
  });
  const follow = (length) => {
    const nearest = WINDOWS.findIndex((each) => each >= (length ?? DEFAULT_WINDOW));
    slider.value = String(nearest < 0 ? WINDOWS.length - 1 : nearest);
    size.textContent = length ? `${number(length)} tokens` : "not known";
    slider.setAttribute("aria-valuetext", size.textContent);
  };
  follow(Number(state.context_length) || DEFAULT_WINDOW);
  const percent = h("output", { class: "number" });
  const gate = h("input", {
    type: "range",
    min: "0",
    max: "50",
    step: "0.5",
    value: state.gate ?? page.catalog.settings.gate,
    on: { input: () => (told(), set("gate")(gate.value)) },
  });
  const told = () => {
    percent.textContent = `${gate.value} % of the window`;
    gate.setAttribute("aria-valuetext", percent.textContent);
  };
  told();
  show(
    main,
    h(
      "div",
      { class: "stack" },
      head("What a model sees", "and what it costs, in every request"),
      h(
        "form",
        { class: "panel stack tight", on: { submit: (event) => event.preventDefault() } },
        h(
          "div",
          { class: "controls" },
          field("Strategy", strategy),
          field("Folding", choice(["auto", "on", "off"], state.enabled ?? page.catalog.settings.enabled, set("enabled"), { auto: "above the gate", on: "always", off: "never" })),
          field("The search tool lists", choice(["off", "sources", "names"], state.listing ?? page.catalog.settings.listing, set("listing"), { off: "nothing" })),
          field("Model", model, "grow"),
          field("API", api),
          h("datalist", { id: "models" }, MODELS.map((value) => h("option", { value }))),
        ),
        h(
          "div",
          { class: "two" },
          h("div", {}, field("Context window", slider), size),
          h("div", {}, field("The gate", gate), percent),
        ),
      ),
      seen,
    ),
  );
  soon();
}

function guidance(found) {
  if (!found.guidance) return null;
  return panel("What the system prompt says", h("pre", { tabindex: "0", "aria-label": "guidance" }, found.guidance));
}

function report(found) {
  const { tokens_before: before, tokens_after: after, deferrable_tokens: may, threshold_tokens: gate } = found.report;
  const most = Math.max(before, after, may, Math.min(gate, before * 1.5), 1);
  const line = (name, value, kind) => [h("span", {}, name), meter(value, most, { kind }), h("span", { class: "number" }, number(value))];
  return [
    h(
      "section",
      { class: "panel stack tight" },
      h("p", { class: "headline" }, `${number(before)} → `, h(found.active ? "em" : "span", {}, number(after)), " tokens in every request"),
      h("p", {}, found.active ? tag(`${found.report.strategy}: ${saved(before, after)}`, "good") : tag("not folded"), " ", found.report.reason, "."),
      h(
        "div",
        { class: "bars" },
        line("before", before, "soft"),
        line("after", after, "good"),
        found.counts === "tokens" ? line("gate", gate, "") : null,
      ),
      h("p", { class: "soft" }, tips(found, may, gate)),
    ),
  ];
}

// Where the gate tips: the window from which on the tools go out as they are.
function tips(found, may, gate) {
  if (found.counts !== "tokens") return `Stubs fold by number: from ${number(found.report.tools_before)} tools here on, whatever they cost.`;
  const length = found.report.context_length;
  if (!length || !gate) return `${number(may)} tokens of definitions may be folded.`;
  const tipping = Math.round((may * length) / gate);
  return `These ${number(may)} tokens are folded in windows of up to ${number(tipping)}; in larger ones they take less than the gate and go out as they are.`;
}

function strategies(rows, found, pick) {
  const most = Math.max(...rows.map((row) => row.before), 1);
  const lines = rows.map((row) => () => {
    const chosen = found.active && found.report.strategy === row.strategy && (!row.api || row.api === apiOf(found.shape));
    const fell = row.comes_to !== row.strategy;
    return h(
      "tr",
      { class: chosen ? "chosen" : null },
      h(
        "td",
        { class: "full" },
        h("button", { type: "button", class: "small", "aria-pressed": String(Boolean(chosen)), on: { click: () => pick(row) } }, row.strategy),
        row.api ? [" ", h("small", {}, APIS[row.api])] : null,
      ),
      h("td", { class: "full" }, WHAT[row.strategy], fell ? [" ", tag(row.comes_to === "not folded" ? "not folded" : `here: ${row.comes_to}`, "warn")] : null),
      h("td", { class: "number", "data-label": "tools seen" }, number(row.tools)),
      h("td", { class: "number", "data-label": "tokens" }, number(row.after)),
      h("td", { class: "full" }, meter(row.after, most, { kind: "good" })),
      h("td", { class: "number soft" }, row.after < row.before ? saved(row.before, row.after) : ""),
    );
  });
  const heads = ["Strategy", "What it does", { text: "Tools seen", kind: "number" }, { text: "Tokens", kind: "number" }, "of all", { text: "", kind: "number" }];
  return [
    h("h3", {}, "Every strategy, on these tools"),
    h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Strategies" }, table(heads, lines, { kind: "cards", label: "Strategies" })),
  ];
}

function apiOf(shape) {
  return { anthropic: "anthropic-messages", "openai-responses": "openai-responses" }[shape];
}

function sent(found) {
  let exact = false;
  const list = h("div", { class: "stack tight" });
  const draw = () => {
    show(
      list,
      found.tools.slice(0, 20).map((tool, i) =>
        h(
          "details",
          { open: i === 0 && found.tools.length < 8 },
          h("summary", {}, h("code", {}, nameOf(tool.text)), h("small", {}, `  ${number(tool.tokens)} tokens`)),
          h("pre", { tabindex: "0", "aria-label": "tool" }, exact ? tool.text : pretty(tool.text)),
        ),
      ),
    );
  };
  draw();
  const more = found.tools.length - 20 + found.more_tools;
  return panel(
    `The tools, as they go out (${found.shape})`,
    h(
      "div",
      { class: "stack tight" },
      h(
        "div",
        { class: "row" },
        segments("Layout", ["indented", "exact"], "indented", (value) => {
          exact = value === "exact";
          draw();
        }),
        copying(`[${found.tools.map((tool) => tool.text).join(",")}]`),
      ),
      list,
      more > 0 ? h("p", { class: "soft" }, `and ${number(more)} more`) : null,
    ),
  );
}

function nameOf(text) {
  try {
    const tool = JSON.parse(text);
    return tool.name ?? tool.function?.name ?? tool.type ?? "tool";
  } catch {
    return "tool";
  }
}
