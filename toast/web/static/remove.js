// Removing a film, which asks first.

import { api } from "./api.js";
import { h, setText, show } from "./dom.js";
import { bytes } from "./format.js";

/** Ask, and remove a film if the answer is yes. Resolves to whether it was removed. */
export function askToRemove(store, film) {
  const here = film.pieces ? (film.pieces_have / film.pieces) * film.size_bytes : 0;
  return new Promise((resolve) => {
    const data = h("input", { type: "checkbox", id: "remove-data" });
    const problem = h("p", { class: "problem", role: "alert", hidden: true });
    let removed = false;
    const dialog = h("dialog", { class: "dialog", "aria-labelledby": "remove-title", onclose: () => { dialog.remove(); resolve(removed); } },
      h("form", { method: "dialog", onsubmit: async (event) => {
        event.preventDefault();
        try {
          await api.remove(film.id, data.checked);
          removed = true;
          store.forget(film.id);
          dialog.close();
        } catch (error) {
          setText(problem, error.message);
          show(problem, true);
        }
      } },
      h("h2", { id: "remove-title" }, "Remove this film?"),
      h("p", { class: "asked", dir: "auto" }, film.title || film.name),
      h("label", { class: "check" }, data, h("span", {}, `Delete its data too (${bytes(here)} on this disk)`)),
      h("p", { class: "small" }, "Without that the data stays in its folder: adding the film again goes on from there."),
      problem,
      h("div", { class: "dialog-actions" },
        h("button", { type: "button", autofocus: true, onclick: () => dialog.close() }, "Keep it"),
        h("button", { type: "submit", class: "danger" }, "Remove"))));
    document.body.append(dialog);
    dialog.showModal();
  });
}
