// Adding a film: an address, a magnet link, a path of the daemon's machine, or a .torrent from here.

import { api } from "./api.js";
import { h, say, setText, show } from "./dom.js";

const MOST_TORRENT_BYTES = 16 * 1024 * 1024;

const MODES = [
  ["watch", "Watch now"],
  ["download", "Download"],
  ["queue", "Queue"],
];
const BEHAVIOURS = [
  ["", "As the daemon is set"],
  ["download-only", "Leave when it is complete"],
  ["streaming", "Share while I watch"],
  ["seeding", "Go on sharing"],
];

/** Say at once what the daemon would refuse anyway. */
async function check(file) {
  if (file.size > MOST_TORRENT_BYTES) throw new Error(`${file.name} is too large to be a .torrent`);
  const head = new Uint8Array(await file.slice(0, 1).arrayBuffer());
  if (head[0] !== 0x64) throw new Error(`${file.name} is not a .torrent`); // "d": a dictionary (BEP 3)
}

/** Ask for a film and add it; then go to it if it shall be watched. */
export function showAdd(store, source = "", file = null) {
  if (document.querySelector("dialog[open]")) return;
  const option = ([value, label]) => h("option", { value }, label);
  const text = h("input", { type: "text", id: "add-source", name: "source", autocomplete: "off", spellcheck: "false", placeholder: "http://…, magnet:…, or a path", autofocus: true, value: source });
  const pick = h("input", { type: "file", accept: ".torrent,application/x-bittorrent", class: "pick", "aria-label": "A .torrent of this machine", onchange: () => { chosen = pick.files[0] ?? null; told(); } });
  const picked = h("p", { class: "small", dir: "auto" });
  const mode = h("select", { id: "add-mode" }, MODES.map(option));
  const behaviour = h("select", { id: "add-behaviour" }, BEHAVIOURS.map(option));
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const submit = h("button", { type: "submit", class: "main" }, "Add");
  let chosen = file;
  const told = () => { setText(picked, chosen ? chosen.name : ""); text.disabled = chosen !== null; };

  const add = async (event) => {
    event.preventDefault();
    const options = { mode: mode.value };
    if (behaviour.value) options.behaviour = behaviour.value;
    submit.disabled = true;
    show(problem, false);
    setText(submit, "Adding…");
    try {
      if (chosen) await check(chosen);
      else if (!text.value.trim()) throw new Error("Give an address, a magnet link, a path, or choose a .torrent");
      const film = await api.add(chosen ?? text.value.trim(), options);
      store.put(film);
      dialog.close();
      if (options.mode === "watch") location.hash = `#/film/${encodeURIComponent(film.id)}`;
      else say(`${film.title || film.name} was added`);
    } catch (error) {
      setText(problem, error.message);
      show(problem, true);
      text.focus();
    } finally {
      submit.disabled = false;
      setText(submit, "Add");
    }
  };

  const dialog = h("dialog", { class: "dialog", "aria-labelledby": "add-title", onclose: () => dialog.remove() },
    h("form", { method: "dialog", onsubmit: add },
      h("h2", { id: "add-title" }, "Add a film"),
      h("label", { htmlFor: "add-source" }, "Address of a title, magnet link, or path of a .torrent"), text,
      h("label", { class: "file" }, h("span", {}, "or a .torrent of this machine"), pick), picked,
      h("div", { class: "pair" },
        h("div", {}, h("label", { htmlFor: "add-mode" }, "Then"), mode),
        h("div", {}, h("label", { htmlFor: "add-behaviour" }, "Sharing"), behaviour)),
      problem,
      h("div", { class: "dialog-actions" }, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), submit)));
  document.body.append(dialog);
  told();
  dialog.showModal();
}

/** Let a .torrent or a link be dropped anywhere on the page. */
export function acceptDrops(store) {
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    const file = [...event.dataTransfer.files].find(({ name }) => name.toLowerCase().endsWith(".torrent"));
    const text = event.dataTransfer.getData("text/uri-list") || event.dataTransfer.getData("text/plain");
    if (file) showAdd(store, "", file);
    else if (text) showAdd(store, text.split("\n")[0].trim());
  });
}
