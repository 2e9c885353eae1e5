// The page: which view is shown, its tabs, the theme and the keys.

import { catalogView } from "./catalog.js";
import { conversationsView } from "./conversations.js";
import { hasSingleKeys, showKeys } from "./dialogs.js";
import { failure, show } from "./dom.js";
import { foldView } from "./fold.js";
import { liveView } from "./live.js";
import { VIEWS, catalog as wanted, shown } from "./page.js";
import { searchView } from "./search.js";

const DRAW = { catalog: catalogView, search: searchView, fold: foldView, conversations: conversationsView, live: liveView };
const NAMES = { catalog: "Catalog", search: "Search", fold: "Fold", conversations: "Conversations", live: "Live" };
const THEMES = ["system", "light", "dark"];

const main = document.getElementById("main");
const tabs = document.getElementById("tabs");
let catalog;
let leave = null;

function draw() {
  const { view, parts, values } = shown();
  for (const tab of tabs.children) {
    const is = tab.dataset.view === view;
    tab.setAttribute("aria-selected", String(is));
    tab.tabIndex = is ? 0 : -1;
  }
  main.setAttribute("aria-labelledby", `tab-${view}`);
  document.title = `${NAMES[view]} · toolfold`;
  leave?.();
  leave = DRAW[view](main, { catalog, parts, values }) ?? null;
}

function onTabKey(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const next = (VIEWS.indexOf(shown().view) + step + VIEWS.length) % VIEWS.length;
  location.hash = VIEWS[next];
  tabs.children[next].focus();
}

function onKey(event) {
  const writing = event.target.closest?.("input, select, textarea, dialog");
  if (event.ctrlKey || event.metaKey || event.altKey || writing || !hasSingleKeys()) return;
  if (event.key === "?") return void showKeys();
  if (event.key === "/") {
    event.preventDefault();
    if (shown().view !== "search") location.hash = "search";
    setTimeout(() => document.getElementById("query")?.focus());
  } else if (event.key === "f") {
    const filter = document.querySelector("main [data-filter]");
    if (filter) {
      event.preventDefault();
      filter.focus();
    }
  } else if (VIEWS[Number(event.key) - 1]) {
    location.hash = VIEWS[Number(event.key) - 1];
    main.focus({ preventScroll: true });
  }
}

function themed(next) {
  const button = document.getElementById("theme");
  const theme = THEMES.includes(next) ? next : "system";
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  button.textContent = { system: "Auto", light: "Light", dark: "Dark" }[theme];
  button.title = `Theme: ${theme === "system" ? "as the system" : theme}`;
  button.setAttribute("aria-label", button.title);
  localStorage.setItem("toolfold-theme", theme);
  return theme;
}

async function begin() {
  for (const tab of tabs.children) {
    tab.addEventListener("click", () => (location.hash = tab.dataset.view));
    tab.addEventListener("keydown", onTabKey);
  }
  let theme = themed(localStorage.getItem("toolfold-theme"));
  document.getElementById("theme").addEventListener("click", () => {
    theme = themed(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]);
  });
  document.getElementById("keys").addEventListener("click", showKeys);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // what stands behind the # is the view
    main.focus();
  });
  document.addEventListener("keydown", onKey);
  for (const button of document.querySelectorAll(".bar button")) button.disabled = false;
  try {
    catalog = await wanted;
  } catch (error) {
    show(main, failure(error));
    return;
  }
  const title = document.getElementById("title");
  title.textContent = catalog.title;
  title.title = catalog.title;
  addEventListener("hashchange", draw);
  draw();
}

begin();
