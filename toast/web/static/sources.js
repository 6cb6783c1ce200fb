// Where pieces came from: names, and how they are painted.

/** In the order of the daemon's numbers; `key` names the colour in the style sheet. */
export const SOURCES = [
  { key: "missing", label: "Missing", means: "not here yet" },
  { key: "peers", label: "Viewers", means: "from others who watch it" },
  { key: "seed", label: "Operator's seed", means: "from the operator, by BitTorrent" },
  { key: "origin", label: "Server", means: "from the VoD server: peers would have been late" },
  { key: "ejected", label: "Ejected", means: "was here, and made room" },
  { key: "disk", label: "Disk", means: "was here when the film was opened" },
];

/** Whether a piece of this source can be played now. */
export const isHere = (source) => source !== 0 && source !== 4;

// Every source has a texture of its own besides its colour, so that the map can be read without
// telling colours apart. Eight by eight pixels, drawn over the colour.
const TEXTURES = {
  missing: () => {},
  peers: () => {},
  seed: (pen) => { for (const [x, y] of [[2, 2], [6, 6]]) { pen.beginPath(); pen.arc(x, y, 1.3, 0, 7); pen.fill(); } },
  origin: (pen) => { for (const x of [-8, 0, 8]) { pen.beginPath(); pen.moveTo(x - 1, 9); pen.lineTo(x + 9, -1); pen.stroke(); } },
  ejected: (pen) => { pen.beginPath(); pen.moveTo(0, 0); pen.lineTo(8, 8); pen.moveTo(8, 0); pen.lineTo(0, 8); pen.stroke(); },
  disk: (pen) => { for (const y of [2, 6]) { pen.beginPath(); pen.moveTo(0, y); pen.lineTo(8, y); pen.stroke(); } },
};

/** The colour of a source in the theme of this moment. */
export function colour(key) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--source-${key}`).trim();
}

/** Something to fill with, for each source, at a device's pixel ratio. */
export function paints(ratio) {
  const ink = colour("ink");
  return SOURCES.map(({ key }) => {
    const tile = document.createElement("canvas");
    tile.width = tile.height = Math.round(8 * ratio);
    const pen = tile.getContext("2d");
    pen.scale(tile.width / 8, tile.height / 8);
    pen.fillStyle = colour(key);
    pen.fillRect(0, 0, 8, 8);
    pen.fillStyle = pen.strokeStyle = ink;
    pen.lineWidth = 1.3;
    TEXTURES[key](pen);
    return pen.createPattern(tile, "repeat");
  });
}

/** A small painted field for a legend. */
export function swatch(key) {
  const canvas = document.createElement("canvas");
  canvas.className = "swatch";
  canvas.setAttribute("aria-hidden", "true");
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  canvas.width = Math.round(22 * ratio);
  canvas.height = Math.round(14 * ratio);
  const repaint = () => {
    const pen = canvas.getContext("2d");
    pen.fillStyle = paints(ratio)[SOURCES.findIndex((source) => source.key === key)];
    pen.fillRect(0, 0, canvas.width, canvas.height);
  };
  repaint();
  return { canvas, repaint };
}

/** How many pieces came from where. */
export function count(sources) {
  const counts = new Array(SOURCES.length).fill(0);
  for (const source of sources) counts[source < SOURCES.length ? source : 0] += 1;
  return counts;
}

/** Call when the theme changes between light and dark; returns how to stop that. */
export function onTheme(repaint) {
  const query = matchMedia("(prefers-color-scheme: dark)");
  query.addEventListener("change", repaint);
  return () => query.removeEventListener("change", repaint);
}
