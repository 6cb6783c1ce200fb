// All films: what they are, how far they were watched, how much of them is here.

import { api, local } from "./api.js";
import { h, icon, iconButton, relabel, say, setText, show } from "./dom.js";
import { STATES, bytes, clock, pauseLabel, percent, rate } from "./format.js";
import { askToRemove } from "./remove.js";

const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
const nameOf = (film) => film.title || film.name;
const watched = (film) => (film.duration_seconds ? Math.min(1, (film.position_seconds ?? 0) / film.duration_seconds) : 0);
const had = (film) => (film.pieces ? film.pieces_have / film.pieces : 0);

const ORDERS = {
  added: ["Newest first", (a, b) => (b.added_at ?? 0) - (a.added_at ?? 0)],
  title: ["Title", () => 0],
  watched: ["Begun first", (a, b) => begun(b) - begun(a) || watched(b) - watched(a)],
  here: ["Most complete", (a, b) => had(b) - had(a)],
  size: ["Largest", (a, b) => b.size_bytes - a.size_bytes],
};
const begun = (film) => Number(watched(film) > 0.01 && watched(film) < 0.97);

const FILTERS = {
  all: ["All", () => true],
  active: ["Under way", (film) => ["checking", "waiting", "downloading", "watching", "queued"].includes(film.state)],
  whole: ["Complete", (film) => film.pieces > 0 && film.pieces_have === film.pieces],
  trouble: ["Failed", (film) => film.state === "error"],
};

/** Letters that a search compares: without case and accents. */
export function folded(text) {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}

/** The films to show, in order. */
export function select(films, { search = "", order = "added", filter = "all" }) {
  const words = folded(search).split(/\s+/).filter(Boolean);
  const [, compare] = ORDERS[order] ?? ORDERS.added;
  const [, wanted] = FILTERS[filter] ?? FILTERS.all;
  return [...films]
    .filter((film) => wanted(film) && words.every((word) => folded(`${nameOf(film)} ${film.name}`).includes(word)))
    .sort((a, b) => compare(a, b) || collator.compare(nameOf(a), nameOf(b)));
}

class Card {
  element;
  link;
  #store;
  #film;
  #title = h("span", { class: "card-title", dir: "auto" });
  #badge = h("span", { class: "badge" });
  #facts = h("p", { class: "card-facts" });
  #error = h("p", { class: "card-error" });
  #watched = h("div", { class: "meter watched", role: "meter", "aria-label": "Watched", "aria-valuemin": 0, "aria-valuemax": 100 }, h("span"));
  #here = h("div", { class: "meter here", role: "meter", "aria-label": "Here", "aria-valuemin": 0, "aria-valuemax": 100 }, h("span"));
  #picture = h("div", { class: "poster" });
  #poster = undefined;
  #pause;

  constructor(store, film) {
    this.#store = store;
    this.#pause = iconButton("pause", pauseLabel(film), () => this.#togglePause());
    this.link = h("a", { class: "card-link", href: `#/film/${encodeURIComponent(film.id)}` }, this.#picture, this.#title);
    this.element = h("li", { class: "card", "data-id": film.id }, this.link,
      this.#badge, this.#facts, this.#here, this.#error,
      h("div", { class: "card-actions" }, this.#pause, iconButton("remove", "Remove", () => this.#remove())));
    this.update(film);
  }

  update(film) {
    this.#film = film;
    setText(this.#title, nameOf(film));
    this.link.title = nameOf(film);
    this.element.dataset.state = film.state;
    setText(this.#badge, STATES[film.state] ?? film.state);
    const facts = [film.duration_seconds ? clock(film.duration_seconds) : null, bytes(film.size_bytes), `${percent(film.pieces_have, film.pieces)} here`];
    if (film.down_rate > 1000 && ["downloading", "watching"].includes(film.state)) facts.push(`↓\u00a0${rate(film.down_rate)}`);
    setText(this.#facts, facts.filter(Boolean).join(" · "));
    this.#fill(this.#watched, watched(film));
    this.#fill(this.#here, had(film));
    setText(this.#error, film.error ?? "");
    this.#error.title = film.error ?? ""; // it may be cut after three lines
    show(this.#error, Boolean(film.error));
    show(this.#pause, !["complete", "error"].includes(film.state));
    relabel(this.#pause, film.state === "paused" ? "play" : "pause", pauseLabel(film));
    this.#setPoster(film.poster_url ?? null);
  }

  #fill(meter, share) {
    const whole = Math.round(share * 100);
    meter.firstChild.style.inlineSize = `${(share * 100).toFixed(1)}%`;
    meter.setAttribute("aria-valuenow", whole);
    meter.setAttribute("aria-valuetext", `${whole} %`);
  }

  #setPoster(url) {
    if (url === this.#poster) return;
    this.#poster = url;
    const fill = (picture) => this.#picture.replaceChildren(picture, this.#watched);
    const without = () => fill(icon("film"));
    if (url === null) without();
    else fill(h("img", { src: local(url), alt: "", loading: "lazy", decoding: "async", onerror: without }));
  }

  async #togglePause() {
    try {
      this.#store.put(await api.change(this.#film.id, { paused: this.#film.state !== "paused" }));
    } catch (error) {
      say(error.message);
    }
  }

  async #remove() {
    const next = this.element.nextElementSibling ?? this.element.previousElementSibling;
    if (await askToRemove(this.#store, this.#film)) {
      say(`${nameOf(this.#film)} was removed`);
      (next?.querySelector("a") ?? document.getElementById("main")).focus();
    }
  }
}

// How the films were last looked at; kept while the page is open.
const view = { search: "", order: "added", filter: "all" };

/** The page of all films. */
export class Library {
  element;
  title = "Films";
  #store;
  #cards = new Map();
  #list = h("ul", { class: "cards", "data-own-arrows": true, onkeydown: (event) => this.#arrows(event) });
  #empty = h("div", { class: "empty", hidden: true });
  #count = h("p", { class: "found", role: "status" });
  #search;
  #closed = new AbortController();

  constructor(store, onadd) {
    this.#store = store;
    const choice = (name, label, table) => h("select", { "aria-label": label, value: view[name], onchange: (event) => { view[name] = event.target.value; this.#show(); } },
      Object.entries(table).map(([value, [shown]]) => h("option", { value, selected: value === view[name] }, shown)));
    this.#search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search the films", "aria-keyshortcuts": "/", value: view.search, oninput: () => { view.search = this.#search.value; this.#show(); } });
    this.element = h("div", { class: "library" },
      h("div", { class: "library-head" }, h("h1", {}, "Films"), this.#count,
        h("div", { class: "tools", role: "search" }, this.#search, choice("filter", "Which films", FILTERS), choice("order", "Order", ORDERS))),
      this.#list, this.#empty);
    this.#empty.append(h("p", { class: "empty-title" }), h("p", {}), h("button", { type: "button", class: "main", onclick: onadd }, "Add a film"));
    store.addEventListener("films", () => this.#show(), { signal: this.#closed.signal });
    store.addEventListener("connection", () => this.#show(), { signal: this.#closed.signal });
    this.#show();
  }

  close() {
    this.#closed.abort();
  }

  press(event) {
    if (event.key !== "/") return false;
    event.preventDefault();
    this.#search.focus();
    this.#search.select();
    return true;
  }

  #show() {
    const { films, loaded } = this.#store;
    const shown = select(films.values(), view);
    for (const [id, card] of this.#cards) {
      if (films.has(id)) continue;
      card.element.remove();
      this.#cards.delete(id);
    }
    const elements = shown.map((film) => {
      const card = this.#cards.get(film.id);
      if (card) {
        card.update(film);
        return card.element;
      }
      const made = new Card(this.#store, film);
      this.#cards.set(film.id, made);
      return made.element;
    });
    // Moving a node takes the focus from it: only where the order has changed.
    const current = [...this.#list.children];
    if (current.length !== elements.length || current.some((element, at) => element !== elements[at])) {
      const focused = document.activeElement;
      this.#list.replaceChildren(...elements);
      if (focused && this.#list.contains(focused)) focused.focus({ preventScroll: true });
    }
    setText(this.#count, films.size ? (shown.length === films.size ? `${films.size}` : `${shown.length} of ${films.size}`) : "");
    this.#showEmpty(loaded && shown.length === 0, films.size);
  }

  #showEmpty(yes, all) {
    const [title, text, button] = this.#empty.children;
    setText(title, all ? "No film is like that" : "No films yet");
    setText(text, all ? "Change the search or the choice above." : "Add one by the address of a title on a VoD server, by a .torrent or by a magnet link. You can watch it at once: what other viewers cannot bring in time comes from the server.");
    show(button, !all);
    show(this.#empty, yes);
    show(this.#list, !yes);
  }

  #arrows(event) {
    if (!event.key.startsWith("Arrow") || !event.target.classList.contains("card-link")) return;
    const links = [...this.#list.querySelectorAll(".card-link")];
    const at = links.indexOf(event.target);
    const top = links[0].getBoundingClientRect().top;
    const columns = Math.max(1, links.filter((link) => link.getBoundingClientRect().top === top).length);
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    const next = links[at + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  }
}
