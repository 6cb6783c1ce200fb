// What the page knows of the daemon, kept up to date by its event stream.

import { api, decodeSources } from "./api.js";

const RETRY_SECONDS = [1, 2, 4, 8];

/**
 * Films and status; tells of changes.
 *
 * Events: `films` (some changed; detail: their ids), `pieces` (detail: {id, sources}), `status`,
 * `connection`. `connection` is "new", "here", "away" (tried again) or "locked" (no token).
 */
export class Store extends EventTarget {
  films = new Map();
  status = null;
  connection = "new";
  loaded = false;
  isResting = false;
  #source = null;
  #failures = 0;
  #timer = 0;

  start() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.isResting = false;
    const source = new EventSource(api.events);
    this.#source = source;
    // The stream first, the list second: what changes between the two is in the stream.
    source.addEventListener("open", () => this.#load(source));
    source.addEventListener("error", () => this.#lost(source));
    const on = (name, handle) => source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
    on("films", (films) => this.#merge(Array.isArray(films) ? films : films.films));
    on("removed", ({ id }) => this.forget(id));
    on("status", (status) => this.#setStatus(status));
    on("pieces", ({ id, sources }) => this.#tell("pieces", { id, sources: decodeSources(sources) }));
  }

  /**
   * Listen no longer until `start`: nobody looks. A browser has six connections to a server, for
   * all its windows together; a forgotten one must not keep the films of others waiting.
   */
  rest() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
    this.isResting = true;
  }

  /** Take in what the daemon answered to a request of ours. */
  put(film) {
    this.#merge([film]);
  }

  /** A film is gone. */
  forget(id) {
    if (this.films.delete(id)) this.#tell("films", [id]);
  }

  async #load(source) {
    try {
      const [films, status] = await Promise.all([api.films(), api.status()]);
      if (source !== this.#source) return;
      const gone = [...this.films.keys()].filter((id) => !films.some((film) => film.id === id));
      for (const id of gone) this.films.delete(id);
      this.loaded = true;
      this.#failures = 0;
      this.#merge(films, gone);
      this.#setStatus(status);
      this.#setConnection("here");
    } catch {
      this.#lost(source);
    }
  }

  async #lost(source) {
    if (source !== this.#source) return;
    source.close();
    this.#source = null;
    // A stream does not say why it failed; a plain request does.
    const answer = await api.status().then(() => 200, (error) => error.status);
    if (answer === 401 || answer === 403) {
      this.#setConnection("locked");
      return;
    }
    const wait = RETRY_SECONDS[Math.min(this.#failures, RETRY_SECONDS.length - 1)];
    this.#failures += 1;
    this.#setConnection("away");
    this.#timer = setTimeout(() => this.start(), wait * 1000);
  }

  #merge(films, others = []) {
    for (const film of films) this.films.set(film.id, film);
    this.#tell("films", [...films.map((film) => film.id), ...others]);
  }

  #setStatus(status) {
    this.status = status;
    this.#tell("status", status);
  }

  #setConnection(connection) {
    if (connection === this.connection) return;
    this.connection = connection;
    this.#tell("connection", connection);
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
