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
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function show(parent, ...children) {
  parent.replaceChildren(...children.flat().filter((child) => child !== null));
}

export function number(value) {
  return value.toLocaleString("en");
}

export function counted(count, noun) {
  return count === 1 ? `1 ${noun}` : `${number(count)} ${noun}s`;
}

// Called again within the time, only the last call counts.
export function settled(milliseconds, act) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...values), milliseconds);
  };
}

let labels = 0;

export function field(label, control) {
  control.id ||= `field-${(labels += 1)}`;
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control);
}

export function choice(values, chosen, changed, names = {}) {
  const options = values.map((value) =>
    h("option", { value, selected: value === chosen }, names[value] ?? value),
  );
  return h("select", { on: { change: (event) => changed(event.target.value) } }, options);
}

export function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
