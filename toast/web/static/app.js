// The page's frame: which view is shown, the daemon's state, and keys that work everywhere.

import { acceptDrops, showAdd } from "./add.js";
import { h, icon, say, setText, show } from "./dom.js";
import { bytes, rate } from "./format.js";
import { isTyping, showHelp } from "./keys.js";
import { Library } from "./library.js";
import { Player } from "./player.js";
import { Store } from "./store.js";

const store = new Store();
const main = document.getElementById("main");
const connection = document.getElementById("connection");
let view = null;
let shown = null;
let restTimer = 0;
const REST_MS = 30_000; // out of sight for so long, the page is not being looked at

function filmOf(hash) {
  const match = /^#\/film\/([^/]+)$/.exec(hash);
  try {
    return match ? decodeURIComponent(match[1]) : null;
  } catch {
    return null; // a broken escape is no film
  }
}

function missing() {
  return {
    title: "Not here",
    element: h("div", { class: "empty" }, h("h1", { class: "empty-title" }, "This film is not here"), h("p", {}, "It was removed, or was never added."), h("a", { class: "button", href: "#/" }, "To the films")),
    close() {},
  };
}

function route() {
  if (!store.loaded) return;
  const id = filmOf(location.hash);
  const key = id === null ? "library" : `${id} ${store.films.has(id)}`;
  if (key === shown) return;
  if (view instanceof Player && id !== null && shown.startsWith(`${id} `)) {
    say(`${view.title} was removed`);
    location.hash = "#/";
    return;
  }
  const first = shown === null;
  shown = key;
  view?.close();
  if (id === null) view = new Library(store, () => showAdd(store));
  else view = store.films.has(id) ? new Player(store, store.films.get(id)) : missing();
  main.replaceChildren(view.element);
  document.title = id === null ? "Toast" : `${view.title} · Toast`;
  scrollTo(0, 0);
  if (!first) main.focus({ preventScroll: true });
}

function lockedForm() {
  const token = h("input", { type: "password", "aria-label": "Token", autocomplete: "current-password", placeholder: "Token" });
  return h("form", { class: "locked", onsubmit: (event) => { event.preventDefault(); location.assign(`/?token=${encodeURIComponent(token.value.trim())}`); } },
    h("span", {}, "This browser is not let in yet. Run “toast open”, or give the daemon's token: "), token, h("button", { type: "submit" }, "Let me in"));
}

function showConnection() {
  const state = store.connection;
  show(connection, state === "away" || state === "locked");
  document.body.dataset.connection = state;
  if (state === "locked") {
    connection.replaceChildren(lockedForm());
    if (!store.loaded) main.replaceChildren();
  } else if (state === "away") {
    const retry = h("button", { type: "button", class: "plain", onclick: () => store.start() }, "Try now");
    connection.replaceChildren("The daemon is away. What is shown may be old; it is tried again every few seconds. ", retry);
    if (!store.loaded) main.replaceChildren(h("p", { class: "loading" }, "Waiting for the daemon…"));
  } else if (state === "here") {
    connection.replaceChildren();
  }
}

function showStatus() {
  const status = store.status;
  if (!status) return;
  setText(document.getElementById("rates"), `↓ ${rate(status.down_rate)}  ↑ ${rate(status.up_rate)}`);
  const parts = [];
  if (status.disk) {
    const quota = status.disk.quota_bytes ? ` of ${bytes(status.disk.quota_bytes)}` : "";
    parts.push(`Disk: ${bytes(status.disk.used_bytes)}${quota}, ${bytes(status.disk.free_bytes)} free`);
  }
  const allowed = status.origin_quota_bytes ? ` of ${bytes(status.origin_quota_bytes)}` : "";
  parts.push(`From servers today: ${bytes(status.origin_bytes_today)}${allowed}`);
  parts.push(`Given to others: ${bytes(status.uploaded_bytes)}`);
  parts.push(`Toast ${status.version ?? ""}`);
  const foot = document.getElementById("foot");
  if (foot.textContent !== parts.join("")) foot.replaceChildren(...parts.map((part) => h("span", {}, part)));
}

function press(event) {
  if (isTyping(event) || document.querySelector("dialog[open]")) return;
  if (view?.press?.(event)) return;
  const keys = { "?": showHelp, a: () => showAdd(store), "/": () => { location.hash = "#/"; } };
  const run = keys[event.key];
  if (!run) return;
  event.preventDefault();
  run();
}

function rest() {
  clearTimeout(restTimer);
  if (document.hidden) restTimer = setTimeout(() => store.rest(), REST_MS);
  else if (store.isResting) store.start();
}

document.getElementById("bar-actions").append(
  h("button", { type: "button", class: "main", "aria-keyshortcuts": "A", onclick: () => showAdd(store) }, icon("add"), h("span", {}, "Add a film")),
  h("button", { type: "button", class: "round", "aria-label": "Keys", title: "Keys (?)", "aria-keyshortcuts": "?", onclick: showHelp }, icon("help")));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names the view
  main.focus();
});
addEventListener("hashchange", route);
addEventListener("keydown", press);
document.addEventListener("visibilitychange", rest);
addEventListener("online", () => { if (store.connection === "away") store.start(); });
store.addEventListener("connection", showConnection);
store.addEventListener("status", showStatus);
store.addEventListener("films", route);
acceptDrops(store);
store.start();
