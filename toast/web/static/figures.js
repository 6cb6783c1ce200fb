// What the swarm does for the film on the screen, in numbers that live.

import { h, setText } from "./dom.js";
import { STATES, bytes, percent, rate, span } from "./format.js";
import { onTheme, swatch } from "./sources.js";

const GIVERS = [
  { key: "peers", label: "Viewers", field: "bytes_from_peers" },
  { key: "seed", label: "Operator's seed", field: "bytes_from_seed" },
  { key: "origin", label: "Server", field: "bytes_from_origin" },
];

const FIGURES = [
  ["Buffer", "verified film ahead of the playhead", (film) => span(film.buffer_seconds)],
  ["Neighbours", "other programs it is exchanged with", (film) => String(film.neighbours ?? 0)],
  ["Down", "film bits received per second", (film) => rate(film.down_rate)],
  ["Up", "film bits given to others per second", (film) => rate(film.up_rate)],
  ["Offload", "share of the film that the operator did not have to send", (film) => (film.offload === null || film.offload === undefined ? "–" : `${Math.round(100 * film.offload)}\u00a0%`)],
  ["Stalls", "halts because a piece was missing", (film) => String(film.stalls ?? 0)],
  ["Players", "programs that read it now", (film) => String(film.readers ?? 0)],
  ["Here", "verified, of the whole film", (film) => percent(film.pieces_have, film.pieces)],
];

/** The panel beside the picture; `update` with what the daemon says of the film. */
export class Figures {
  element;
  #state = h("p", { class: "state" });
  #values = FIGURES.map(([label, means, read]) => ({ label, means, read, cell: h("dd") }));
  #givers = GIVERS.map((giver) => ({ ...giver, ...swatch(giver.key), part: h("span", { class: `share share-${giver.key}` }), cell: h("span", { class: "count" }) }));
  #bar;
  #stop;

  constructor() {
    this.#bar = h("div", { class: "shares", role: "img", "aria-label": "Nothing received yet" }, this.#givers.map(({ part }) => part));
    this.element = h("section", { class: "panel figures", "aria-labelledby": "figures-title" },
      h("div", { class: "panel-head" }, h("h2", { id: "figures-title" }, "Now"), this.#state),
      h("dl", {}, this.#values.map(({ label, means, cell }) => h("div", { title: means }, h("dt", {}, label), cell))),
      h("h3", {}, "Where the bytes came from"),
      this.#bar,
      h("ul", { class: "legend" }, this.#givers.map(({ canvas, label, cell }) => h("li", {}, canvas, h("span", {}, label), cell))));
    this.#stop = onTheme(() => { for (const giver of this.#givers) giver.repaint(); });
  }

  update(film) {
    setText(this.#state, STATES[film.state] ?? film.state);
    for (const { read, cell } of this.#values) setText(cell, read(film));
    const total = GIVERS.reduce((sum, { field }) => sum + (film[field] ?? 0), 0);
    for (const { field, part, cell } of this.#givers) {
      const count = film[field] ?? 0;
      part.style.flexGrow = String(total ? count / total : 0);
      setText(cell, count ? `${bytes(count)} · ${percent(count, total)}` : "0 B");
    }
    const words = this.#givers.map(({ label, cell }) => `${label} ${cell.textContent}`).join(", ");
    this.#bar.setAttribute("aria-label", total ? `Received: ${words}` : "Nothing received yet");
  }

  close() {
    this.#stop();
  }
}
