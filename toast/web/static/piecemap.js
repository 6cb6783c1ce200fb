// The piece map: a field for each piece, row by row, painted by where the piece came from.

import { h, setText } from "./dom.js";
import { clock, percent } from "./format.js";
import { SOURCES, count, onTheme, paints, swatch } from "./sources.js";

const MOST_ROWS = 40;
const MARGIN = 3; // room for the mark of the playhead around the outermost fields
// What a field stands for when it holds several pieces: the worst of them, so that no gap hides.
const WORST_FIRST = [0, 4, 3, 2, 1, 5];

/**
 * How fields are laid out.
 * @param {number} pieces how many there are
 * @param {number} width of the canvas, in CSS pixels
 * @returns {{edge: number, columns: number, rows: number, group: number}} edge of a field in CSS
 *   pixels; how many pieces share one field
 */
export function layout(pieces, width) {
  for (let edge = 16; edge >= 5; edge -= 1) {
    const columns = Math.max(1, Math.floor(width / edge));
    if (Math.ceil(pieces / columns) * edge <= 176) return { edge, columns, rows: Math.ceil(pieces / columns), group: 1 };
  }
  const columns = Math.max(1, Math.floor(width / 5));
  const group = Math.max(1, Math.ceil(pieces / (columns * MOST_ROWS)));
  return { edge: 5, columns, rows: Math.ceil(Math.ceil(pieces / group) / columns), group };
}

/** What a field of several pieces shows. */
export function worst(sources, start, end) {
  const among = sources.subarray(start, end);
  return WORST_FIRST.find((source) => among.includes(source)) ?? 0;
}

/** Map, legend and a sentence; `update` with new sources, `point` with the playhead. */
export class PieceMap {
  element;
  #canvas = h("canvas", { class: "map", role: "img", "aria-label": "Piece map" });
  #tip = h("p", { class: "map-tip", "aria-hidden": "true" });
  #legend = SOURCES.map((source) => ({ ...source, ...swatch(source.key), number: h("span", { class: "count" }) }));
  #sources = new Uint8Array();
  #at = 0;
  #duration = null;
  #shape = null;
  #frame = 0;
  #observer = new ResizeObserver(() => this.#repaint());
  #stop;

  constructor() {
    const items = this.#legend.map(({ canvas, label, means, number }) =>
      h("li", { title: means }, canvas, h("span", {}, label), number));
    this.element = h("section", { class: "panel map-panel", "aria-labelledby": "map-title" },
      h("div", { class: "panel-head" }, h("h2", { id: "map-title" }, "Pieces"), this.#tip),
      this.#canvas, h("ul", { class: "legend" }, items));
    this.#observer.observe(this.#canvas);
    this.#stop = onTheme(() => {
      for (const entry of this.#legend) entry.repaint();
      this.#repaint();
    });
    this.#canvas.addEventListener("pointermove", (event) => this.#explain(event));
    this.#canvas.addEventListener("pointerleave", () => this.#summarise());
  }

  get sources() {
    return this.#sources;
  }

  /** New sources; the same array as before is fine. */
  update(sources, duration) {
    this.#sources = sources;
    this.#duration = duration;
    const counts = count(sources);
    this.#legend.forEach(({ number }, at) => setText(number, counts[at] ? percent(counts[at], sources.length) : "0"));
    const parts = this.#legend.map(({ label }, at) => [label, counts[at]]).filter(([, some]) => some);
    const words = parts.map(([label, some]) => `${label} ${some}`).join(", ");
    this.#canvas.setAttribute("aria-label", `Piece map, ${sources.length} pieces: ${words || "none yet"}`);
    this.#summarise();
    this.#repaint();
  }

  /** The playhead is here: share of the film, 0 to 1. */
  point(share) {
    const piece = Math.min(this.#sources.length - 1, Math.max(0, Math.floor(share * this.#sources.length)));
    if (piece === this.#at) return;
    this.#at = piece;
    this.#repaint();
  }

  close() {
    this.#observer.disconnect();
    this.#stop();
    cancelAnimationFrame(this.#frame);
  }

  #summarise() {
    const counts = count(this.#sources);
    const here = this.#sources.length - counts[0] - counts[4];
    setText(this.#tip, this.#sources.length ? `${here} of ${this.#sources.length} here` : "none yet");
  }

  #explain(event) {
    if (!this.#shape) return;
    const { edge, columns, group } = this.#shape;
    const [x, y] = [event.offsetX - MARGIN, event.offsetY - MARGIN].map((place) => Math.max(0, Math.floor(place / edge)));
    const field = y * columns + Math.min(columns - 1, x);
    const piece = field * group;
    if (piece >= this.#sources.length) {
      this.#summarise();
      return;
    }
    const source = SOURCES[worst(this.#sources, piece, piece + group)];
    const when = this.#duration ? `, about ${clock((piece / this.#sources.length) * this.#duration)}` : "";
    setText(this.#tip, `Piece ${piece}${when}: ${source.label.toLowerCase()}, ${source.means}`);
  }

  #repaint() {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#paint());
  }

  #paint() {
    const width = this.#canvas.clientWidth;
    const pieces = this.#sources.length;
    if (!width || !pieces) return;
    const ratio = Math.max(1, window.devicePixelRatio || 1);
    const shape = layout(pieces, width - 2 * MARGIN);
    this.#shape = shape;
    const height = shape.rows * shape.edge + 2 * MARGIN;
    this.#canvas.style.height = `${height}px`;
    this.#canvas.width = Math.round(width * ratio);
    this.#canvas.height = Math.round(height * ratio);
    const pen = this.#canvas.getContext("2d");
    pen.translate(MARGIN * ratio, MARGIN * ratio);
    const fills = paints(ratio);
    const edge = shape.edge * ratio;
    const gap = shape.edge >= 7 ? ratio : 0.5 * ratio;
    const fields = Math.ceil(pieces / shape.group);
    for (let field = 0; field < fields; field += 1) {
      const source = shape.group === 1
        ? this.#sources[field]
        : worst(this.#sources, field * shape.group, (field + 1) * shape.group);
      pen.fillStyle = fills[source] ?? fills[0];
      pen.fillRect((field % shape.columns) * edge, Math.floor(field / shape.columns) * edge, edge - gap, edge - gap);
    }
    const at = Math.floor(this.#at / shape.group);
    // Light within dark: the playhead's field is found on any colour.
    for (const [grown, thick, ink] of [[1.5, 3, "black"], [1, 1.5, "white"]]) {
      pen.lineWidth = thick * ratio;
      pen.strokeStyle = ink;
      const side = edge - gap + 2 * grown * ratio;
      pen.strokeRect((at % shape.columns) * edge - grown * ratio, Math.floor(at / shape.columns) * edge - grown * ratio, side, side);
    }
  }
}
