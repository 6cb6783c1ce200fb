// When the film does not go on: what it waits for, why it cannot be played, and what to do instead.

import { absolute, local } from "./api.js";
import { codecName, lacking } from "./codecs.js";
import { h, setText, show } from "./dom.js";
import { rate } from "./format.js";

const NOTICEABLE_MS = 400;
const RETRY_MS = 2000;

/** Watches a video element; `waiting` and `box` are shown over the picture. */
export class Trouble {
  waiting = h("p", { class: "waiting", role: "status", hidden: true });
  box = h("div", { class: "trouble", role: "alert", hidden: true });
  #video;
  #facts;
  #retry;
  #lacks = null;
  #timer = 0;
  #retryTimer = 0;
  #failedAt = null;
  #closed = new AbortController();

  /**
   * @param {HTMLVideoElement} video
   * @param {() => {film: object, here: boolean}} facts the film as the daemon describes it, and
   *   whether the daemon is there
   * @param {(seconds: number) => void} retry opens the film again at a position
   */
  constructor(video, facts, retry) {
    this.#video = video;
    this.#facts = facts;
    this.#retry = retry;
    const on = (names, handle) => { for (const name of names) video.addEventListener(name, handle, { signal: this.#closed.signal }); };
    on(["waiting", "stalled", "playing", "canplay", "seeking", "seeked", "pause", "emptied"], () => this.#watch());
    on(["playing"], () => { this.#failedAt = null; if (!this.#lacks?.sound) show(this.box, false); });
    on(["error"], () => this.#failed());
    this.#check();
  }

  close() {
    this.#closed.abort();
    clearTimeout(this.#timer);
    clearTimeout(this.#retryTimer);
  }

  /** The daemon told something new, or is there again. */
  update() {
    if (this.#failedAt !== null && this.#facts().here && !this.#retryTimer) this.#again();
    else if (!this.waiting.hidden && this.#failedAt === null) this.#say();
  }

  #waits() {
    const video = this.#video;
    return !video.error && video.readyState < 3 && (!video.paused || video.seeking);
  }

  /** Say that the film waits, once that has lasted long enough to be noticed. */
  #watch() {
    if (!this.#waits()) {
      clearTimeout(this.#timer);
      this.#timer = 0;
      if (this.#failedAt === null) show(this.waiting, false);
      return;
    }
    this.#timer ||= setTimeout(() => {
      this.#timer = 0;
      if (!this.#waits()) return;
      this.#say();
      show(this.waiting, true);
    }, NOTICEABLE_MS);
  }

  #say() {
    const { film, here } = this.#facts();
    const neighbours = film.neighbours ?? 0;
    if (!here) setText(this.waiting, "Waiting: the daemon is away");
    else if (!neighbours && !film.down_rate) setText(this.waiting, "Waiting: nobody has been found yet who has this part");
    else setText(this.waiting, `Waiting for this part: ${rate(film.down_rate)}, ${neighbours} neighbour${neighbours === 1 ? "" : "s"}`);
  }

  #failed() {
    const error = this.#video.error;
    if (!error || error.code === MediaError.MEDIA_ERR_ABORTED) return;
    const { film, here } = this.#facts();
    if (error.code === MediaError.MEDIA_ERR_NETWORK || !here) {
      this.#failedAt ??= this.#video.currentTime;
      setText(this.waiting, here ? "The connection broke: trying again" : "Waiting: the daemon is away");
      show(this.waiting, true);
      if (here) this.#retryTimer = setTimeout(() => { this.#retryTimer = 0; this.#again(); }, RETRY_MS);
      return;
    }
    const codecs = [film.video_codec, film.audio_codec].filter(Boolean).map(codecName).join(" and ");
    if (this.#lacks?.picture) this.#explain(noPicture(this.#lacks.picture), true, error.message);
    else this.#explain(`This browser cannot play this film.${codecs ? ` It is made of ${codecs}.` : ""}`, true, error.message);
  }

  #again() {
    const at = this.#failedAt ?? 0;
    this.#failedAt = null;
    this.#retry(at);
  }

  #check() {
    this.#lacks = lacking(this.#facts().film);
    const { picture, sound } = this.#lacks;
    if (picture) this.#explain(noPicture(picture), true);
    else if (sound) this.#explain(`This browser will play this film without sound: it has no decoder for ${sound}.`, false);
  }

  #explain(text, blocks, detail = "") {
    const { film } = this.#facts();
    this.box.classList.toggle("blocks", blocks);
    this.box.replaceChildren(
      h("p", { class: "trouble-what" }, text),
      h("p", {}, "mpv and VLC play it. ", h("a", { href: local(film.playlist_url), download: true }, "Open the playlist"), ", or give them this address:"),
      h("p", {}, h("code", {}, `mpv ${absolute(film.content_url)}`)),
      ...(detail ? [h("p", { class: "small" }, `The browser says: ${detail}`)] : []),
      h("button", { type: "button", class: "plain", onclick: () => show(this.box, false) }, blocks ? "Hide this" : "All right"));
    show(this.box, true);
    show(this.waiting, false);
  }
}

const noPicture = (codec) => `This browser cannot show this film: it has no decoder for ${codec}, which its picture is made of.`;
