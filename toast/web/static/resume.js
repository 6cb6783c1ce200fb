// Where the viewer is, told to the daemon: it steers what is fetched, and is where to go on later.

import { reportPosition } from "./api.js";

const EVERY_MS = 1000;
/** Not worth resuming: hardly begun, or as good as over. */
const EDGE_SECONDS = 5;

/** Where to begin a film that was watched before; 0 for from the start. */
export function resumePosition(film) {
  const position = film.position_seconds ?? 0;
  const end = film.duration_seconds ? film.duration_seconds - EDGE_SECONDS : Infinity;
  return position >= EDGE_SECONDS && position < end ? position : 0;
}

/** Reports each second while the film runs, and at once whenever something changes. */
export class PositionReports {
  #video;
  #id;
  #timer = 0;
  #ready = false;
  #events = ["play", "pause", "seeking", "seeked", "ratechange", "ended"];
  #now = () => this.report();
  #metadata = () => { this.#ready = true; };
  #emptied = () => { this.#ready = false; };

  /**
   * @param {HTMLVideoElement} video
   * @param {string} id of the film
   */
  constructor(video, id) {
    this.#video = video;
    this.#id = id;
    for (const name of this.#events) video.addEventListener(name, this.#now);
    video.addEventListener("loadedmetadata", this.#metadata);
    video.addEventListener("emptied", this.#emptied);
    addEventListener("pagehide", this.#now);
    this.#timer = setInterval(() => { if (!video.paused) this.report(); }, EVERY_MS);
  }

  report() {
    // Before the film is known the player stands at 0: that is not where the viewer is.
    if (!this.#ready) return;
    const { currentTime, paused, playbackRate } = this.#video;
    reportPosition(this.#id, {
      position_seconds: Math.round(currentTime * 1000) / 1000,
      paused,
      rate: playbackRate,
    });
  }

  close() {
    this.report();
    clearInterval(this.#timer);
    for (const name of this.#events) this.#video.removeEventListener(name, this.#now);
    this.#video.removeEventListener("loadedmetadata", this.#metadata);
    this.#video.removeEventListener("emptied", this.#emptied);
    removeEventListener("pagehide", this.#now);
  }
}
