// Subtitles: text tracks of the video element, one shown at a time, the language remembered.

import { local } from "./api.js";
import { h } from "./dom.js";
import { recall, remember } from "./memory.js";

const labelOf = ({ label, language }, at) => label || language || `Subtitles ${at + 1}`;

/** The `track` elements of a film, for its video element. */
export function trackElements(subtitles) {
  return subtitles.map((each, at) =>
    h("track", { kind: "subtitles", label: labelOf(each, at), srclang: each.language || "und", src: local(each.url) }));
}

/** Which of a film's subtitles the viewer chose last: an index, or -1. */
export function rememberedTrack(subtitles) {
  const wanted = recall("subtitles");
  return wanted ? subtitles.findIndex((each, at) => each.language === wanted || labelOf(each, at) === wanted) : -1;
}

/** Show one, or none for -1. */
export function showTrack(video, chosen) {
  [...video.textTracks].forEach((track, at) => {
    const mode = at === chosen ? "showing" : "disabled";
    if (track.mode !== mode) track.mode = mode;
  });
}

/** Remember which one is liked. */
export function rememberTrack(video, chosen) {
  const track = video.textTracks[chosen];
  remember("subtitles", track ? (track.language === "und" ? track.label : track.language) : "");
}
