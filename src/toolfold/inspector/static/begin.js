// The first of the scripts, and all that runs before the frame is painted: the theme, and what
// the views are made of, asked for at once when that is done.

const FILES = [
  "page", "inspector", "dom", "catalog", "findings", "treemap", "tool", "search", "fold",
  "conversations", "audit", "live", "trust", "dialogs",
];

function begin() {
  for (const name of FILES) {
    const link = document.createElement("link");
    link.rel = "modulepreload";
    link.href = `${name}.js`;
    document.head.append(link);
  }
  import("./page.js"); // asks for the catalog while the others come
  import("./inspector.js");
}

const theme = localStorage.getItem("toolfold-theme");
if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;

// A tab that nobody sees is not painted: what would be waited for does not come.
if (document.visibilityState === "hidden") begin();
else requestAnimationFrame(() => setTimeout(begin));
