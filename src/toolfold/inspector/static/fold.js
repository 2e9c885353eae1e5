// What a model would see of the catalog under each strategy, with the gate as a slider.

import { choice, field, h, number, pretty, settled, show } from "./dom.js";

const WINDOWS = [4096, 8192, 16384, 32768, 65536, 131072, 200000, 400000, 1000000];
const state = { strategy: "auto", enabled: "auto", context_length: 131072, listing: "", model: "" };

export function foldView(main, page) {
  const seen = h("div", {});
  let asked = 0;
  const draw = async () => {
    const own = (asked += 1);
    try {
      const found = await page.ask("fold", state);
      if (own === asked) {
        show(seen, report(found));
        page.say(found.says);
      }
    } catch (error) {
      if (own === asked) show(seen, h("p", { class: "error", role: "alert" }, error.message));
    }
  };
  const soon = settled(100, draw);
  const set = (name) => (value) => {
    state[name] = value;
    soon();
  };
  const says = h("output", {}, `${number(state.context_length)} tokens`);
  const slider = h("input", {
    type: "range",
    min: "0",
    max: String(WINDOWS.length - 1),
    value: String(Math.max(WINDOWS.indexOf(state.context_length), 0)),
    "aria-valuetext": `${number(state.context_length)} tokens`,
    on: {
      input: (event) => {
        state.context_length = WINDOWS[Number(event.target.value)];
        says.textContent = `${number(state.context_length)} tokens`;
        event.target.setAttribute("aria-valuetext", says.textContent);
        soon();
      },
    },
  });
  const model = h("input", {
    value: state.model,
    autocomplete: "off",
    placeholder: "any",
    on: { input: (event) => set("model")(event.target.value) },
  });
  show(
    main,
    h("h2", {}, "What a model sees"),
    h(
      "form",
      { class: "controls", on: { submit: (event) => event.preventDefault() } },
      field("Strategy", choice(page.catalog.strategies, state.strategy, set("strategy"))),
      field("Folding", choice(["auto", "on", "off"], state.enabled, set("enabled"))),
      field("Listing", choice(["", "off", "sources", "names"], state.listing, set("listing"), { "": "as set" })),
      field("Context window", slider),
      says,
      field("Model", model),
    ),
    seen,
  );
  draw();
}

function report(found) {
  const { tokens_before: before, tokens_after: after } = found.report;
  const most = Math.max(before, after, 1);
  return h(
    "div",
    {},
    h("p", { class: "headline" }, `${number(before)} → ${number(after)} tokens in every request`),
    h(
      "div",
      { class: "bars" },
      gauge("before", before, most),
      gauge("after", after, most),
      gauge("gate", found.report.threshold_tokens, most),
    ),
    h("p", {}, found.says),
    found.guidance ? h("pre", { tabindex: "0", "aria-label": "guidance" }, found.guidance) : null,
    h("h3", {}, "The tools, as they go out"),
    found.tools.map((tool) => h("pre", { tabindex: "0", "aria-label": "tool" }, pretty(tool))),
    found.more_tools ? h("p", {}, `${number(found.more_tools)} more.`) : null,
  );
}

function gauge(name, value, most) {
  return h(
    "div",
    { class: `gauge ${name}` },
    h("span", {}, `${name} ${number(value)}`),
    h("span", { class: "bar", place: { width: `${Math.min((value / most) * 100, 100)}%` } }),
  );
}
