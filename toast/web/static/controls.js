// The buttons under the picture. They show what the video element says of itself, never a wish.

import { h, iconButton, relabel, setText, show } from "./dom.js";
import { clock } from "./format.js";

export const SPEEDS = [0.5, 0.75, 1, 1.25, 1.5, 2];

/** Play, times, sound, subtitles, speed, picture in picture, whole screen. */
export class Controls {
  element;
  #video;
  #player;
  #play;
  #sound;
  #volume;
  #times = h("span", { class: "times" });
  #subtitles;
  #speed;
  #full;

  /**
   * @param {object} player what keys do, too: toggle, skip, mute, ...
   * @param {HTMLVideoElement} video
   */
  constructor(player, video) {
    this.#player = player;
    this.#video = video;
    this.#play = iconButton("play", "Play", () => player.toggle(), { "aria-keyshortcuts": "Space K" });
    this.#sound = iconButton("sound", "Sound off", () => player.mute(), { "aria-keyshortcuts": "M" });
    this.#volume = h("input", {
      type: "range", class: "volume", "data-own-arrows": true, min: 0, max: 1, step: 0.05, "aria-label": "Volume",
      oninput: () => { video.muted = false; video.volume = Number(this.#volume.value); },
    });
    this.#subtitles = h("select", { "aria-label": "Subtitles", title: "Subtitles (c)", onchange: () => player.chooseSubtitles(Number(this.#subtitles.value)) },
      h("option", { value: -1 }, "No subtitles"));
    this.#speed = h("select", { "aria-label": "Speed", title: "Speed (< and >)", onchange: () => { video.playbackRate = Number(this.#speed.value); } },
      SPEEDS.map((speed) => h("option", { value: speed }, `${speed}×`)));
    this.#full = iconButton("full", "Whole screen", () => player.fullscreen(), { "aria-keyshortcuts": "F" });
    const pip = iconButton("pip", "Picture in picture", () => player.pictureInPicture(), { class: "round wide-only" });
    show(pip, Boolean(document.pictureInPictureEnabled));
    this.element = h("div", { class: "controls", role: "group", "aria-label": "Player" },
      this.#play,
      iconButton("back", "10 seconds back", () => player.skip(-10), { "aria-keyshortcuts": "J" }),
      iconButton("forward", "10 seconds on", () => player.skip(10), { "aria-keyshortcuts": "L" }),
      this.#times, h("span", { class: "gap" }),
      this.#sound, this.#volume, this.#subtitles, this.#speed, pip, this.#full);
    for (const name of ["play", "pause", "volumechange", "ratechange", "ended"]) video.addEventListener(name, () => this.update());
    this.update();
  }

  /** Show the state of the video; `time` is where a seek under way leads. */
  update(time = this.#video.currentTime, duration = this.#video.duration) {
    const video = this.#video;
    const playing = !video.paused && !video.ended;
    relabel(this.#play, playing ? "pause" : "play", playing ? "Pause" : "Play");
    const silent = video.muted || video.volume === 0;
    relabel(this.#sound, silent ? "mute" : "sound", silent ? "Sound on" : "Sound off");
    this.#volume.value = silent ? 0 : video.volume;
    this.#speed.value = String(video.playbackRate);
    setText(this.#times, `${clock(time)} / ${clock(duration)}`);
    const whole = Boolean(document.fullscreenElement);
    relabel(this.#full, whole ? "small" : "full", whole ? "Leave the whole screen" : "Whole screen");
  }

  /** Which subtitles there are, by their labels. */
  offerSubtitles(labels) {
    this.#subtitles.replaceChildren(this.#subtitles.firstChild, ...labels.map((label, at) => h("option", { value: at }, label)));
    show(this.#subtitles, labels.length > 0);
  }

  /** Which subtitles are shown: an index, or -1. */
  subtitles(at) {
    this.#subtitles.value = String(at);
  }
}
