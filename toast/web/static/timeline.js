// The seek bar: a slider over a drawing of what is here, what the browser has, and what was played.

import { h, setText } from "./dom.js";
import { clock, spokenTime } from "./format.js";
import { colour, isHere, onTheme } from "./sources.js";

const INSET = 8; // half of the slider's thumb: where its middle can go
const STEPS = 1000;

/** `onseek(seconds)` is called when the viewer lets go: a drag must not ask the swarm for all of it. */
export class Timeline {
  element;
  #canvas = h("canvas", { class: "timeline-canvas", "aria-hidden": "true" });
  #tip = h("output", { class: "timeline-tip", hidden: true, "aria-hidden": "true" });
  #slider;
  #duration = NaN;
  #time = 0;
  #buffered = [];
  #sources = new Uint8Array();
  #dragging = false;
  #observer = new ResizeObserver(() => this.#paint());
  #stop;

  constructor(onseek) {
    this.#slider = h("input", {
      type: "range", class: "timeline-slider", min: 0, max: STEPS, step: "any", value: 0, "aria-label": "Position in the film", disabled: true,
      oninput: () => { this.#dragging = true; this.#preview(); },
      onchange: () => { this.#dragging = false; this.#tip.hidden = true; onseek(this.#sliderSeconds()); },
      onpointermove: (event) => this.#hover(event),
      onpointerleave: () => { if (!this.#dragging) this.#tip.hidden = true; },
    });
    this.element = h("div", { class: "timeline" }, this.#canvas, this.#slider, this.#tip);
    this.#observer.observe(this.#canvas);
    this.#stop = onTheme(() => this.#paint());
  }

  /** Where pieces are from: what can be played at once. */
  pieces(sources) {
    this.#sources = sources;
    this.#paint();
  }

  /**
   * Where the film stands.
   * @param {number} time seconds
   * @param {number} duration seconds; NaN while unknown
   * @param {TimeRanges|null} buffered what the browser has
   */
  update(time, duration, buffered) {
    this.#time = time;
    this.#duration = duration;
    this.#buffered = buffered ? Array.from({ length: buffered.length }, (_, at) => [buffered.start(at), buffered.end(at)]) : [];
    const known = Number.isFinite(duration) && duration > 0;
    if (this.#slider.disabled === known) this.#slider.disabled = !known;
    if (known && !this.#dragging) {
      this.#slider.value = (time / duration) * STEPS;
      this.#slider.setAttribute("aria-valuetext", `${spokenTime(time)} of ${spokenTime(duration)}`);
    }
    this.#paint();
  }

  close() {
    this.#observer.disconnect();
    this.#stop();
  }

  #sliderSeconds() {
    return (Number(this.#slider.value) / STEPS) * this.#duration;
  }

  #preview() {
    this.#slider.setAttribute("aria-valuetext", spokenTime(this.#sliderSeconds()));
    this.#showTip(this.#sliderSeconds());
    this.#paint();
  }

  #hover(event) {
    if (this.#dragging || !Number.isFinite(this.#duration)) return;
    const width = this.element.clientWidth - 2 * INSET;
    const share = Math.min(1, Math.max(0, (event.offsetX - INSET) / width));
    this.#showTip(share * this.#duration);
  }

  #showTip(seconds) {
    if (!Number.isFinite(seconds)) return;
    const piece = Math.min(this.#sources.length - 1, Math.floor((seconds / this.#duration) * this.#sources.length));
    const known = this.#sources.length > 0;
    setText(this.#tip, clock(seconds) + (known && !isHere(this.#sources[piece]) ? " · not here yet" : ""));
    this.#tip.hidden = false;
    const width = this.element.clientWidth;
    const half = this.#tip.offsetWidth / 2;
    const at = INSET + (seconds / this.#duration) * (width - 2 * INSET);
    this.#tip.style.left = `${Math.min(width - half, Math.max(half, at))}px`;
  }

  #paint() {
    const width = this.#canvas.clientWidth;
    const height = this.#canvas.clientHeight;
    if (!width || !height) return;
    const ratio = Math.max(1, window.devicePixelRatio || 1);
    this.#canvas.width = Math.round(width * ratio);
    this.#canvas.height = Math.round(height * ratio);
    const pen = this.#canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const left = INSET;
    const length = width - 2 * INSET;
    const bar = (from, to, top, thick, fill) => {
      pen.fillStyle = fill;
      pen.fillRect(left + from * length, top, Math.max(0.5, (to - from) * length), thick);
    };
    const middle = height / 2;
    bar(0, 1, middle - 4, 8, colour("track"));
    const count = this.#sources.length;
    for (let start = 0; start < count; start += 1) {
      if (!isHere(this.#sources[start])) continue;
      let end = start + 1;
      while (end < count && isHere(this.#sources[end])) end += 1;
      bar(start / count, end / count, middle - 4, 8, colour("here"));
      start = end;
    }
    if (!Number.isFinite(this.#duration)) return;
    for (const [from, to] of this.#buffered) {
      bar(from / this.#duration, Math.min(1, to / this.#duration), middle - 1.5, 3, colour("buffered"));
    }
    const share = Math.min(1, (this.#dragging ? this.#sliderSeconds() : this.#time) / this.#duration);
    bar(0, share, middle - 4, 8, colour("played"));
    pen.beginPath();
    pen.arc(left + share * length, middle, 7, 0, 7);
    pen.fillStyle = colour("thumb");
    pen.fill();
    pen.lineWidth = 2;
    pen.strokeStyle = colour("played");
    pen.stroke();
  }
}
