// The daemon's HTTP interface. The token is a cookie that this page cannot read and need not.

const BASE = "/api/v1";

/** What the daemon, or the way to it, answered instead of a result. */
export class ApiError extends Error {
  /**
   * @param {string} message one line
   * @param {number} status HTTP status; 0 if there was no answer
   */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function call(method, path, body, seconds = 20) {
  const raw = body instanceof Blob;
  const type = raw ? "application/x-bittorrent" : "application/json";
  let answer;
  try {
    answer = await fetch(BASE + path, {
      method,
      headers: body === undefined ? {} : { "Content-Type": type },
      body: body === undefined || raw ? body : JSON.stringify(body),
      signal: AbortSignal.timeout(seconds * 1000),
      cache: "no-store",
    });
  } catch (error) {
    const late = error.name === "TimeoutError";
    throw new ApiError(late ? "the daemon does not answer" : "the daemon cannot be reached", 0);
  }
  const text = await answer.text().catch(() => "");
  let result = null;
  try {
    result = text ? JSON.parse(text) : null;
  } catch {
    result = null;
  }
  if (!answer.ok) throw new ApiError(result?.error ?? `the daemon answered ${answer.status}`, answer.status);
  return result;
}

const film = (id) => `/films/${encodeURIComponent(id)}`;

export const api = {
  events: `${BASE}/events`,
  status: () => call("GET", "/status"),
  films: async () => (await call("GET", "/films")).films,
  // Metadata of a magnet link may have to come from peers: that takes its time.
  add: (source, options) => (source instanceof Blob
    ? call("POST", `/films?${new URLSearchParams(options)}`, source, 90)
    : call("POST", "/films", { source, ...options }, 90)),
  change: (id, changes) => call("PATCH", film(id), changes),
  remove: (id, withData) => call("DELETE", `${film(id)}${withData ? "?data=1" : ""}`),
  pieces: (id) => call("GET", `${film(id)}/pieces`),
};

/**
 * Tell where the film is. `keepalive` lets the last report out when the page is being closed.
 * A lost report is followed by the next one, so nobody is told.
 */
export function reportPosition(id, report) {
  return fetch(`${BASE}${film(id)}/position`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(report),
    keepalive: true,
  }).catch(() => null);
}

/** A film's address on this very server: the daemon may know itself by another name than we do. */
export function local(url) {
  const parsed = new URL(url, location.href);
  return parsed.pathname + parsed.search;
}

/** The same with our server's name, for other programs of this machine. */
export function absolute(url) {
  return new URL(local(url), location.origin).href;
}

/** The bytes of a piece map: one PieceSource each. */
export function decodeSources(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}
