// One film: the picture, what drives it, and what the swarm does for it.

import { absolute, api, decodeSources, local } from "./api.js";
import { codecName } from "./codecs.js";
import { Controls, SPEEDS } from "./controls.js";
import { h, icon, say, setText, show } from "./dom.js";
import { Figures } from "./figures.js";
import { bytes, clock, pauseLabel } from "./format.js";
import { pressPlayerKey } from "./keys.js";
import { recall, remember } from "./memory.js";
import { PieceMap } from "./piecemap.js";
import { askToRemove } from "./remove.js";
import { PositionReports, resumePosition } from "./resume.js";
import { rememberTrack, rememberedTrack, showTrack, trackElements } from "./subtitles.js";
import { Timeline } from "./timeline.js";
import { Trouble } from "./trouble.js";

const SEEK_GAP_MS = 250; // keys held down must not ask the swarm for every place they pass
const IDLE_MS = 3000;
const FLASH_MS = 1200;

/** The page of a film. `close` when another page is shown. */
export class Player {
  element;
  title;
  #store;
  #film;
  #video;
  #stage;
  #cover;
  #hint = h("p", { class: "hint", role: "status", hidden: true });
  #heading = h("h1", { dir: "auto" });
  #facts = h("p", { class: "facts" });
  #error = h("p", { class: "film-error", role: "alert", hidden: true });
  #pauseButton = h("button", { type: "button", onclick: () => this.#toggleDownload() });
  #controls;
  #timeline = new Timeline((seconds) => this.seek(seconds));
  #map = new PieceMap();
  #figures = new Figures();
  #trouble;
  #reports;
  #note = null;
  #track = -1;
  #subtitles = null;
  #target = null; // where a seek leads that has not been made yet
  #lastSeek = -Infinity;
  #timers = { seek: 0, idle: 0, hint: 0, tick: 0 };
  #closed = new AbortController();

  /**
   * @param {import("./store.js").Store} store
   * @param {object} film as the daemon describes it
   */
  constructor(store, film) {
    this.#store = store;
    this.#film = film;
    this.title = film.title || film.name;
    this.#video = h("video", { preload: "auto", playsinline: true, tabindex: -1, "aria-label": this.title, poster: film.poster_url ? local(film.poster_url) : null });
    this.#video.volume = Number(recall("volume") ?? 1);
    this.#video.muted = recall("muted") === "true";
    this.#controls = new Controls(this, this.#video);
    this.#trouble = new Trouble(this.#video, () => ({ film: this.#film, here: store.connection === "here" }), (at) => { this.#open(at); this.#play(); });
    this.#reports = new PositionReports(this.#video, film.id);
    this.#cover = h("button", { type: "button", class: "cover", "aria-label": "Play the film", onclick: () => this.toggle() }, h("span", { class: "cover-sign" }, icon("play")));
    this.#stage = h("div", { class: "stage" },
      h("div", { class: "picture" }, this.#video, this.#cover, this.#trouble.waiting, this.#hint, this.#trouble.box),
      h("div", { class: "deck" }, this.#timeline.element, this.#controls.element));
    this.element = h("article", { class: "player" },
      h("div", { class: "player-head" }, h("a", { class: "button", href: "#/" }, "← Films"), this.#heading),
      h("div", { class: "player-main" }, this.#stage, this.#error, this.#map.element),
      h("aside", { class: "player-side", "aria-label": "About this film" }, this.#figures.element, this.#about()));
    this.#listen();
    this.#showFilm();
    this.#loadPieces();
    this.#begin();
  }

  close() {
    this.#reports.close();
    this.#closed.abort();
    clearInterval(this.#timers.tick);
    for (const timer of Object.values(this.#timers)) clearTimeout(timer);
    for (const part of [this.#timeline, this.#map, this.#figures, this.#trouble]) part.close();
    this.#note?.remove();
    this.#video.removeAttribute("src");
    this.#video.load(); // lets go of the connection: the daemon sees the reader leave
  }

  /** A key was pressed somewhere on the page; returns whether it was for the player. */
  press(event) {
    this.#stir();
    return pressPlayerKey(event, this);
  }

  // -- what buttons and keys do -----------------------------------------------------------------

  toggle() {
    if (this.#video.paused || this.#video.ended) this.#play();
    else this.#video.pause();
  }

  skip(seconds) {
    this.seek((this.#target ?? this.#video.currentTime) + seconds);
  }

  tenth(tenths) {
    this.seek((this.#duration * tenths) / 10);
  }

  /** Go somewhere; of places that come thick and fast, only the last is gone to. */
  seek(seconds) {
    const duration = this.#duration;
    if (!Number.isFinite(duration)) return;
    this.#target = Math.min(Math.max(0, seconds), Math.max(0, duration - 0.1));
    clearTimeout(this.#timers.seek);
    const go = () => {
      this.#lastSeek = performance.now();
      this.#video.currentTime = this.#target;
      this.#target = null;
    };
    const wait = this.#lastSeek + SEEK_GAP_MS - performance.now();
    if (wait <= 0) go();
    else this.#timers.seek = setTimeout(go, wait);
    this.#tick();
  }

  louder(change) {
    this.#video.muted = false;
    this.#video.volume = Math.min(1, Math.max(0, Math.round((this.#video.volume + change) * 100) / 100));
    this.#flash(`Volume ${Math.round(this.#video.volume * 100)} %`);
  }

  mute() {
    this.#video.muted = !this.#video.muted;
    this.#flash(this.#video.muted ? "Sound off" : "Sound on");
  }

  faster(steps) {
    const now = SPEEDS.findIndex((speed) => speed >= this.#video.playbackRate);
    this.#video.playbackRate = SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, now + steps))];
    this.#flash(`Speed ${this.#video.playbackRate}×`);
  }

  nextSubtitles() {
    const tracks = this.#video.textTracks.length;
    if (!tracks) {
      this.#flash("No subtitles were found for this film");
      return;
    }
    const next = this.#track + 1 < tracks ? this.#track + 1 : -1;
    this.chooseSubtitles(next);
    this.#flash(next < 0 ? "Subtitles off" : `Subtitles: ${this.#video.textTracks[next].label}`);
  }

  chooseSubtitles(chosen) {
    rememberTrack(this.#video, chosen);
    this.#showTrack(chosen);
  }

  async fullscreen() {
    try {
      if (document.fullscreenElement) await document.exitFullscreen();
      else await this.#stage.requestFullscreen();
    } catch {
      this.#flash("This browser does not give the whole screen here");
    }
  }

  async pictureInPicture() {
    try {
      if (document.pictureInPictureElement) await document.exitPictureInPicture();
      else await this.#video.requestPictureInPicture();
    } catch {
      this.#flash("Picture in picture is not to be had now");
    }
  }

  leave() {
    if (document.fullscreenElement) document.exitFullscreen();
    else location.hash = "#/";
  }

  // -- playing ----------------------------------------------------------------------------------

  get #duration() {
    const known = this.#video.duration;
    return Number.isFinite(known) ? known : (this.#film.duration_seconds ?? NaN);
  }

  #begin() {
    const at = resumePosition(this.#film);
    this.#open(at);
    if (at) this.#note = say(`Going on at ${clock(at)}`, { label: "From the start", run: () => this.seek(0) });
    this.#play();
  }

  #open(at) {
    // A media fragment: the browser asks for that place at once, and not for the start first.
    this.#video.src = local(this.#film.content_url) + (at ? `#t=${at}` : "");
  }

  async #play() {
    if (["paused", "queued"].includes(this.#film.state)) {
      api.change(this.#film.id, { paused: false }).then((film) => this.#store.put(film), () => null);
    }
    try {
      await this.#video.play();
    } catch {
      this.#showCover(); // without a click a browser may refuse to start: the large button is there
    }
  }

  #listen() {
    const video = this.#video;
    const on = (target, names, handle) => { for (const name of names) target.addEventListener(name, handle, { signal: this.#closed.signal }); };
    on(video, ["timeupdate", "progress", "durationchange", "seeking", "seeked"], () => this.#tick());
    on(video, ["play", "playing", "pause", "ended", "loadeddata", "error"], () => { this.#showCover(); this.#stir(); });
    on(video, ["volumechange"], () => { remember("volume", video.volume); remember("muted", video.muted); });
    // Chromium turns tracks on by itself, beside the one that was chosen.
    on(video.textTracks, ["change"], () => showTrack(video, this.#track));
    on(video, ["click"], () => this.toggle());
    on(video, ["dblclick"], () => this.fullscreen());
    on(this.#stage, ["pointermove", "focusin"], () => this.#stir());
    on(document, ["fullscreenchange"], () => { this.#controls.update(); this.#stir(); });
    on(this.#store, ["films"], () => {
      this.#film = this.#store.films.get(this.#film.id) ?? this.#film;
      this.#showFilm();
    });
    on(this.#store, ["pieces"], (event) => { if (event.detail.id === this.#film.id) this.#showPieces(event.detail.sources); });
    on(this.#store, ["connection"], () => {
      this.#trouble.update();
      if (this.#store.connection === "here") this.#loadPieces();
    });
    this.#timers.tick = setInterval(() => this.#tick(), 500);
  }

  #tick() {
    const time = this.#target ?? this.#video.currentTime;
    this.#timeline.update(time, this.#duration, this.#video.buffered);
    this.#controls.update(time, this.#duration);
    if (Number.isFinite(this.#duration)) this.#map.point(time / this.#duration);
  }

  #showCover() {
    const video = this.#video;
    show(this.#cover, video.paused && !video.error && (video.played.length === 0 || video.ended));
  }

  /** In the whole screen the controls go away when nothing is touched. */
  #stir() {
    this.#stage.classList.remove("idle");
    clearTimeout(this.#timers.idle);
    this.#timers.idle = setTimeout(() => {
      const held = this.#stage.querySelector(".deck :focus-visible");
      this.#stage.classList.toggle("idle", !this.#video.paused && !held);
    }, IDLE_MS);
  }

  #flash(text) {
    setText(this.#hint, text);
    show(this.#hint, true);
    clearTimeout(this.#timers.hint);
    this.#timers.hint = setTimeout(() => show(this.#hint, false), FLASH_MS);
  }

  // -- what the daemon says ---------------------------------------------------------------------

  async #loadPieces() {
    try {
      const { sources } = await api.pieces(this.#film.id);
      if (!this.#closed.signal.aborted) this.#showPieces(decodeSources(sources));
    } catch {
      return; // the event stream brings them as soon as there are any
    }
  }

  #showTrack(chosen) {
    this.#track = chosen;
    showTrack(this.#video, chosen);
    this.#controls.subtitles(chosen);
  }

  /** Subtitles may be found later than the film: they come from the swarm, too. */
  #offerSubtitles(subtitles) {
    const known = JSON.stringify(subtitles);
    if (known === this.#subtitles) return;
    this.#subtitles = known;
    const tracks = trackElements(subtitles);
    this.#video.replaceChildren(...tracks);
    this.#controls.offerSubtitles(tracks.map((track) => track.label));
    this.#showTrack(rememberedTrack(subtitles));
  }

  #showPieces(sources) {
    this.#map.update(sources, this.#film.duration_seconds);
    this.#timeline.pieces(sources);
  }

  #showFilm() {
    const film = this.#film;
    this.title = film.title || film.name;
    setText(this.#heading, this.title);
    this.#figures.update(film);
    this.#offerSubtitles(film.subtitles ?? []);
    this.#trouble.update();
    const size = film.width && film.height ? `${film.width}×${film.height}` : null;
    const codecs = [film.video_codec, film.audio_codec].filter(Boolean).map(codecName).join(" and ");
    setText(this.#facts, [film.duration_seconds ? clock(film.duration_seconds) : null, bytes(film.size_bytes), size, codecs].filter(Boolean).join(" · "));
    setText(this.#error, film.error ?? "");
    show(this.#error, Boolean(film.error));
    setText(this.#pauseButton, pauseLabel(film));
    show(this.#pauseButton, !["complete", "error"].includes(film.state));
  }

  #about() {
    const address = absolute(this.#film.content_url);
    const copy = async () => {
      try {
        await navigator.clipboard.writeText(address);
        say("The address was copied");
      } catch {
        say(`This browser does not let a page copy. The address is ${address}`);
      }
    };
    return h("section", { class: "panel", "aria-labelledby": "about-title" },
      h("h2", { id: "about-title" }, "Film"),
      this.#facts,
      h("p", { class: "file-name", dir: "auto" }, this.#film.name),
      h("div", { class: "buttons" },
        h("a", { class: "button", href: local(this.#film.playlist_url), download: true }, "Open in mpv or VLC"),
        h("button", { type: "button", onclick: copy }, "Copy the address"),
        this.#pauseButton,
        h("button", { type: "button", class: "danger", onclick: () => askToRemove(this.#store, this.#film) }, "Remove…")));
  }

  async #toggleDownload() {
    try {
      this.#store.put(await api.change(this.#film.id, { paused: this.#film.state !== "paused" }));
    } catch (error) {
      say(error.message);
    }
  }
}
