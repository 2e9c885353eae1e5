// Elements made of values. Every text is set as text: nothing of a stranger is ever markup.

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) {
        element.addEventListener(event, listener);
      }
    } else if (name === "place") {
      for (const [key, own] of Object.entries(value)) element.style.setProperty(key, own);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...kept(children));
  return element;
}

export function show(parent, ...children) {
  parent.replaceChildren(...kept(children));
}

function kept(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

export function number(value) {
  return Number(value ?? 0).toLocaleString("en");
}

export function counted(count, noun) {
  return count === 1 ? `1 ${noun}` : `${number(count)} ${noun}s`;
}

export function share(part, whole) {
  if (!whole) return "0 %";
  return `${((part / whole) * 100).toFixed(1)} %`;
}

export function saved(before, after) {
  if (!before || after >= before) return "nothing saved";
  const part = (1 - after / before) * 100;
  // Something is left: all of it is never saved.
  return `${part >= 99 ? Math.min(part, 99.9).toFixed(1) : Math.round(part)} % saved`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "";
  return value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(value < 10 ? 1 : 0)} s`;
}

// Begun at once; called again while it is under way, it is begun once more afterwards. So the
// first letter does not wait, and the last one is never passed over.
export function latest(act) {
  let under = false;
  let again = false;
  return async () => {
    again = true;
    if (under) return;
    under = true;
    try {
      while (again) {
        again = false;
        await act();
      }
    } finally {
      under = false;
    }
  };
}

let labels = 0;

export function field(label, control, kind = "") {
  control.id ||= `field-${(labels += 1)}`;
  return h("div", { class: `field ${kind}` }, h("label", { for: control.id }, label), control);
}

export function checkbox(label, checked, changed) {
  const box = h("input", { type: "checkbox", checked, on: { change: () => changed(box.checked) } });
  return h("label", { class: "check" }, box, label);
}

export function choice(values, chosen, changed, names = {}) {
  const options = values.map((value) =>
    h("option", { value, selected: value === chosen }, names[value] ?? value),
  );
  return h("select", { on: { change: (event) => changed(event.target.value) } }, options);
}

// One of a few, shown side by side.
export function segments(label, values, chosen, changed, names = {}) {
  const buttons = values.map((value) =>
    h(
      "button",
      {
        type: "button",
        "aria-pressed": String(value === chosen),
        on: {
          click: (event) => {
            for (const each of buttons) each.setAttribute("aria-pressed", String(each === event.currentTarget));
            changed(value);
          },
        },
      },
      names[value] ?? value,
    ),
  );
  return h("div", { class: "segments", role: "group", "aria-label": label }, buttons);
}

export function meter(part, whole, { kind = "", mark = null } = {}) {
  const width = whole ? Math.min((part / whole) * 100, 100) : 0;
  return h(
    "span",
    { class: `meter ${kind}`, "aria-hidden": "true" },
    h("i", { place: { width: `${width}%` } }),
    mark === null ? null : h("b", { place: { left: `${Math.min(mark, 1) * 100}%` } }),
  );
}

export function stat(label, value, about = "", { link = null, kind = "" } = {}) {
  return h(
    link ? "a" : "div",
    { class: `stat ${kind}`, href: link },
    h("span", {}, label),
    h("strong", {}, value),
    about ? h("span", {}, about) : null,
  );
}

export function panel(title, ...children) {
  return h("section", { class: "panel" }, title ? h("h3", {}, title) : null, ...children);
}

export function head(title, about = "") {
  return h("div", { class: "head" }, h("h2", {}, title), about ? h("p", {}, about) : null);
}

export function failure(error) {
  return h("p", { class: "notice bad", role: "alert" }, error.message ?? String(error));
}

export function tag(text, kind = "") {
  return h("span", { class: `tag ${kind}` }, text);
}

export function tags(items) {
  return h("ul", { class: "tags" }, items.map((item) => h("li", {}, item)));
}

// What to do where there is nothing yet, with the commands to type.
export function empty(title, about, commands = []) {
  return h(
    "section",
    { class: "panel empty" },
    h("h3", {}, title),
    h("p", {}, about),
    commands.map((command) => h("div", { class: "row" }, h("code", {}, command), copying(command))),
  );
}

export function copying(text, label = "Copy") {
  const button = h(
    "button",
    {
      type: "button",
      class: "small",
      on: {
        click: async () => {
          try {
            await navigator.clipboard.writeText(text);
            button.textContent = "Copied";
          } catch {
            button.textContent = "Not copied";
          }
          setTimeout(() => (button.textContent = label), 1500);
        },
      },
    },
    label,
  );
  return button;
}

export function facts(rows) {
  const told = rows.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return h("dl", {}, told.flatMap(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]));
}

// A table whose further rows are drawn when they are asked for.
export function table(heads, rows, { most = 200, kind = "", label = "" } = {}) {
  const body = h("tbody", {}, rows.slice(0, most).map((make) => make()));
  const cells = heads.map((text) =>
    typeof text === "string"
      ? h("th", { scope: "col" }, text)
      : h("th", { scope: "col", class: text.kind }, text.text),
  );
  const whole = h("table", { class: kind, "aria-label": label || null }, h("thead", {}, h("tr", {}, cells)), body);
  if (rows.length <= most) return whole;
  let shown = most;
  const more = h(
    "button",
    {
      type: "button",
      on: {
        click: () => {
          body.append(...rows.slice(shown, shown + most).map((make) => make()));
          shown += most;
          more.textContent = `Show more (${number(Math.max(rows.length - shown, 0))} left)`;
          if (shown >= rows.length) more.remove();
        },
      },
    },
    `Show more (${number(rows.length - shown)} left)`,
  );
  return h("div", { class: "stack tight" }, whole, more);
}

export function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
