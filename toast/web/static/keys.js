// The keyboard: one table, from which both the handling and the help are made.

import { h } from "./dom.js";

/** What keys do in the player, as told; `keys` are KeyboardEvent.key, in small letters. */
export const PLAYER_KEYS = [
  { keys: [" ", "k"], shown: "Space, k", does: "play or pause", run: (player) => player.toggle() },
  { keys: ["arrowleft"], shown: "←", does: "5 seconds back", run: (player) => player.skip(-5) },
  { keys: ["arrowright"], shown: "→", does: "5 seconds on", run: (player) => player.skip(5) },
  { keys: ["j"], shown: "j", does: "10 seconds back", run: (player) => player.skip(-10) },
  { keys: ["l"], shown: "l", does: "10 seconds on", run: (player) => player.skip(10) },
  { keys: ["arrowup"], shown: "↑", does: "louder", run: (player) => player.louder(0.1) },
  { keys: ["arrowdown"], shown: "↓", does: "softer", run: (player) => player.louder(-0.1) },
  { keys: ["m"], shown: "m", does: "sound off or on", run: (player) => player.mute() },
  { keys: ["c"], shown: "c", does: "next subtitles, or none", run: (player) => player.nextSubtitles() },
  { keys: ["f"], shown: "f", does: "whole screen, or not", run: (player) => player.fullscreen() },
  { keys: ["<", ","], shown: "<", does: "slower", run: (player) => player.faster(-1) },
  { keys: [">", "."], shown: ">", does: "faster", run: (player) => player.faster(1) },
  { keys: [..."0123456789"], shown: "0 … 9", does: "to that tenth of the film", run: (player, key) => player.tenth(Number(key)) },
  { keys: ["home"], shown: "Home", does: "to the start", run: (player) => player.tenth(0) },
  { keys: ["escape"], shown: "Esc", does: "leave the whole screen; back to the films", run: (player) => player.leave() },
];

const ELSEWHERE = [
  ["?", "this help"],
  ["/", "search the films"],
  ["a", "add a film"],
  ["Arrows", "from film to film"],
];

/** Whether a key pressed there is meant for the element itself. */
export function isTyping(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return true;
  const target = event.target;
  if (!(target instanceof Element)) return false;
  if (target.closest("dialog")) return true;
  if (target.closest("textarea, select, [contenteditable]")) return true;
  return target instanceof HTMLInputElement && !["range", "checkbox", "button"].includes(target.type);
}

/** Whether the element under the focus does something of its own with this key. */
export function isForFocus(event) {
  const target = event.target;
  const key = event.key;
  if (!(target instanceof Element)) return false;
  if ((key === " " || key === "Enter") && target.closest("button, a, summary, [type=checkbox]")) return true;
  return target.closest("[data-own-arrows]") !== null && key.startsWith("Arrow");
}

/** Let the player have a key; returns whether it was one of its own. */
export function pressPlayerKey(event, player) {
  if (isTyping(event) || isForFocus(event)) return false;
  const key = event.key.toLowerCase();
  const found = PLAYER_KEYS.find(({ keys }) => keys.includes(key));
  if (!found) return false;
  event.preventDefault();
  found.run(player, key);
  return true;
}

/** Show what the keys do. */
export function showHelp() {
  if (document.querySelector("dialog[open]")) return;
  const row = (shown, does) => h("tr", {}, h("th", { scope: "row" }, shown.split(", ").map((key) => h("kbd", {}, key))), h("td", {}, does));
  const table = (title, rows) => h("table", {}, h("caption", {}, title), h("tbody", {}, rows));
  const dialog = h("dialog", { class: "dialog help", "aria-labelledby": "help-title", onclose: () => dialog.remove() },
    h("h2", { id: "help-title" }, "Keys"),
    h("div", { class: "help-tables" },
      table("While a film is open", PLAYER_KEYS.map(({ shown, does }) => row(shown, does))),
      table("Everywhere", ELSEWHERE.map(([shown, does]) => row(shown, does)))),
    h("div", { class: "dialog-actions" }, h("button", { type: "button", class: "main", autofocus: true, onclick: () => dialog.close() }, "Close")));
  document.body.append(dialog);
  dialog.showModal();
}
