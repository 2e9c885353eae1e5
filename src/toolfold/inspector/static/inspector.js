// The page: which view is shown, and the one way to ask the server.

import { catalogView } from "./catalog.js";
import { conversationsView } from "./conversations.js";
import { counted, h, number, show } from "./dom.js";
import { foldView } from "./fold.js";
import { liveView } from "./live.js";
import { searchView } from "./search.js";

const VIEWS = { catalog: catalogView, search: searchView, fold: foldView, conversations: conversationsView, live: liveView };
const NAMES = { catalog: "Catalog", search: "Search", fold: "Fold", conversations: "Conversations", live: "Live" };
const KEY = "toolfold-token";

const main = document.getElementById("main");
const tabs = document.getElementById("tabs");
const said = document.getElementById("said");

// The key stands behind the # of the link, which browsers send to nobody. It is taken out of
// the address, so that it is in no history and on no picture of the screen.
const given = location.hash.slice(1);
if (given && !(given.split("/")[0] in VIEWS)) {
  sessionStorage.setItem(KEY, given);
  history.replaceState(null, "", "#catalog");
}

export async function ask(path, values = {}) {
  const query = new URLSearchParams(
    Object.entries(values).filter(([, value]) => value !== "" && value !== undefined),
  );
  const answer = await fetch(`api/${path}?${query}`, {
    headers: { authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` },
  });
  if (answer.status === 401) throw new Error("The key is not right: open the link anew.");
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error);
  return body;
}

export function say(text) {
  said.textContent = text;
}

function shown() {
  const [name, ...rest] = decodeURIComponent(location.hash.slice(1)).split("/");
  return { name: name in VIEWS ? name : "catalog", rest: rest.join("/") };
}

let catalog;

function draw() {
  const { name, rest } = shown();
  for (const tab of tabs.children) {
    const is = tab.dataset.view === name;
    tab.setAttribute("aria-selected", String(is));
    tab.tabIndex = is ? 0 : -1;
  }
  document.title = `${NAMES[name]} · toolfold`;
  VIEWS[name](main, { catalog, ask, say, rest });
}

function onKey(event) {
  const names = Object.keys(VIEWS);
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const next = (names.indexOf(shown().name) + step + names.length) % names.length;
  location.hash = names[next];
  tabs.children[next].focus();
}

async function begin() {
  show(
    tabs,
    Object.keys(VIEWS).map((name) =>
      h(
        "button",
        {
          role: "tab",
          type: "button",
          "aria-controls": "main",
          "data-view": name,
          on: { click: () => (location.hash = name), keydown: onKey },
        },
        NAMES[name],
      ),
    ),
  );
  try {
    catalog = await ask("catalog");
  } catch (error) {
    show(main, h("p", { class: "error", role: "alert" }, error.message));
    return;
  }
  document.getElementById("title").textContent = catalog.title;
  const sources = counted(catalog.sources.length, "source");
  document.getElementById("totals").textContent =
    `${counted(catalog.tools, "tool")} of ${sources}, ${number(catalog.tokens)} tokens of ` +
    "definitions in every request";
  addEventListener("hashchange", draw);
  draw();
}

begin();
