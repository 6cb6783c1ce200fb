// Numbers as people read them. Rates are bits, as films' rates are given everywhere; sizes are bytes.

const STEPS = ["", "k", "M", "G", "T"];

function scaled(value, unit) {
  let step = 0;
  while (Math.abs(value) >= 999.5 && step < STEPS.length - 1) {
    value /= 1000;
    step += 1;
  }
  const digits = step === 0 || Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "")}\u00a0${STEPS[step]}${unit}`;
}

/** 858 MB */
export function bytes(count) {
  return scaled(count ?? 0, "B");
}

/** 2.1 Mb/s, from bytes per second */
export function rate(bytesPerSecond) {
  return scaled((bytesPerSecond ?? 0) * 8, "b/s");
}

/** 1:02:03 */
export function clock(seconds) {
  if (!Number.isFinite(seconds)) return "–:––";
  const whole = Math.max(0, Math.floor(seconds));
  const parts = [Math.floor(whole / 60) % 60, whole % 60].map((part) => String(part).padStart(2, "0"));
  const hours = Math.floor(whole / 3600);
  return hours ? `${hours}:${parts.join(":")}` : `${Number(parts[0])}:${parts[1]}`;
}

/** 1 hour 2 minutes 3 seconds: what a screen reader should say for 1:02:03 */
export function spokenTime(seconds) {
  if (!Number.isFinite(seconds)) return "unknown";
  const whole = Math.max(0, Math.floor(seconds));
  const parts = [[Math.floor(whole / 3600), "hour"], [Math.floor(whole / 60) % 60, "minute"], [whole % 60, "second"]];
  const said = parts.filter(([count]) => count).map(([count, word]) => `${count} ${word}${count === 1 ? "" : "s"}`);
  return said.join(" ") || "0 seconds";
}

/** 12.3 s; 4 min; 1.5 h: how much there is, roughly */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 9.95) return `${seconds.toFixed(1)}\u00a0s`;
  if (seconds < 120) return `${Math.round(seconds)}\u00a0s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)}\u00a0min` : `${(seconds / 3600).toFixed(1)}\u00a0h`;
}

/** 73 %; never 100 % before it is whole, never 0 % once something is there */
export function percent(part, whole) {
  if (!whole || !part) return "0\u00a0%";
  if (part >= whole) return "100\u00a0%";
  return `${Math.min(99, Math.max(1, Math.round((100 * part) / whole)))}\u00a0%`;
}

/** Where a film stands, in words. */
export const STATES = {
  queued: "Queued",
  checking: "Checking",
  waiting: "Waiting",
  downloading: "Downloading",
  watching: "Watching",
  seeding: "Sharing",
  paused: "Paused",
  complete: "Complete",
  error: "Failed",
};

/** What the button does that pauses a film, or lets it go on. */
export function pauseLabel(film) {
  const what = film.pieces > 0 && film.pieces_have === film.pieces ? "sharing" : "downloading";
  return film.state === "paused" ? `Go on ${what}` : `Stop ${what}`;
}
