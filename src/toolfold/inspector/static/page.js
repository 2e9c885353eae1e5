// The one way to ask the server, and addresses within the page.
//
// An address is `#view/part/part?name=value`, so that any view can be linked to, kept and come
// back to.

const KEY = "toolfold-token";
const OTHERS = "toolfold-tabs";

export const VIEWS = ["catalog", "search", "fold", "conversations", "live"];

// The key stands behind the # of the link, which browsers send to nobody. It is taken out of
// the address, so that it is in no history and on no picture of the screen.
function takeKey() {
  const given = location.hash.slice(1);
  if (given && !VIEWS.includes(given.split(/[/?]/)[0])) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", "#catalog");
  }
}

// A view that is opened in another tab asks the tabs of this page that are open for the key.
const tabs = new BroadcastChannel(OTHERS);
tabs.addEventListener("message", ({ data }) => {
  const own = sessionStorage.getItem(KEY);
  if (data.ask && own) tabs.postMessage({ key: own });
});

function keyOfOthers() {
  if (sessionStorage.getItem(KEY)) return Promise.resolve(true);
  return new Promise((done) => {
    const answered = ({ data }) => {
      if (!data.key) return;
      sessionStorage.setItem(KEY, data.key);
      done(true);
    };
    tabs.addEventListener("message", answered);
    tabs.postMessage({ ask: true });
    setTimeout(() => {
      tabs.removeEventListener("message", answered);
      done(false);
    }, 150);
  });
}

async function answered(path, options) {
  let answer;
  try {
    answer = await fetch(path, {
      ...options,
      headers: { ...options.headers, authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` },
    });
  } catch {
    throw new Error("The inspector does not answer: is it still running in the terminal?");
  }
  if (answer.status === 401) {
    throw new Error("The key is not right: open the link anew that the terminal shows.");
  }
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error);
  return body;
}

export function ask(path, values = {}) {
  const given = Object.entries(values).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  return answered(`api/${path}?${new URLSearchParams(given)}`, {});
}

// What changes something. The server takes it as JSON only, with the key, from this page.
export function act(path, values) {
  return answered(`api/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(values),
  });
}

// What every view needs is asked for before the views themselves are there.
takeKey();
export const catalog = keyOfOthers().then(() => ask("catalog"));
catalog.catch(() => {}); // who waits for it says so

const said = document.getElementById("said");

export function say(text) {
  said.textContent = text;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function shown() {
  const hash = location.hash.slice(1);
  const at = hash.indexOf("?");
  const [view, ...parts] = (at < 0 ? hash : hash.slice(0, at)).split("/");
  return {
    view: VIEWS.includes(view) ? view : "catalog",
    parts: parts.map(decoded),
    values: Object.fromEntries(new URLSearchParams(at < 0 ? "" : hash.slice(at + 1))),
  };
}

export function address(view, parts = [], values = {}) {
  const path = [view, ...parts.map(encodeURIComponent)].join("/");
  const given = Object.entries(values).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  return `#${path}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

// The address follows what is typed, without a step back for each letter.
export function remember(view, parts, values) {
  history.replaceState(null, "", address(view, parts, values));
}
