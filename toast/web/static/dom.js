// Elements from code. Text is always set as text: nothing that a film or a peer says becomes markup.

/**
 * Make an element.
 * @param {string} tag name of the element
 * @param {object} [props] attributes; `onclick` and the like are listeners; null and false are left out
 * @param {...(Node|string|number|null|undefined|Array)} children
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "htmlFor") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const ICONS = {
  play: "M7 4v16l13-8z",
  pause: "M6 4h4v16H6zM14 4h4v16h-4z",
  back: "M11 5V1L4 7l7 6V9a6 6 0 1 1-6 6H3a8 8 0 1 0 8-10z",
  forward: "M13 5V1l7 6-7 6V9a6 6 0 1 0 6 6h2a8 8 0 1 1-8-10z",
  sound: "M3 9v6h4l6 5V4L7 9zM16 8.5v7a4.5 4.5 0 0 0 0-7zM16 4v2.1a6.5 6.5 0 0 1 0 11.8V20a8.5 8.5 0 0 0 0-16z",
  mute: "M3 9v6h4l6 5V4L7 9zM21.5 9.9 20.1 8.5 18 10.6l-2.1-2.1-1.4 1.4 2.1 2.1-2.1 2.1 1.4 1.4 2.1-2.1 2.1 2.1 1.4-1.4-2.1-2.1z",
  full: "M4 4h6v2H6v4H4zM14 4h6v6h-2V6h-4zM4 14h2v4h4v2H4zM18 14h2v6h-6v-2h4z",
  small: "M8 4h2v6H4V8h4zM14 4h2v4h4v2h-6zM4 14h6v6H8v-4H4zM14 14h6v2h-4v4h-2z",
  add: "M11 4h2v7h7v2h-7v7h-2v-7H4v-2h7z",
  help: "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20zm1 16h-2v-2h2zm2-7.2c-.8.8-1.7 1.3-2 2.2-.1.3-.1.6-.1 1h-2c0-1 .1-1.6.5-2.3.5-.8 1.6-1.4 2-2 .6-.9.1-2.2-1.4-2.2-1 0-1.6.7-1.8 1.7l-1.9-.7C8.8 5.9 10.2 5 12 5c1.6 0 2.7.7 3.3 1.6.7 1.2.6 3.1-.3 4.2z",
  remove: "M9 3h6l1 2h4v2H4V5h4zM6 9h12l-1 12H7z",
  film: "M3 4h18v16H3zm2 2v2h2V6zm0 4v4h2v-4zm0 6v2h2v-2zm12-10v2h2V6zm0 4v4h2v-4zm0 6v2h2v-2zM9 6v12h6V6z",
  pip: "M3 5h18v14H3zm2 2v10h14V7zm7 4h6v5h-6z",
};

const SVG = "http://www.w3.org/2000/svg";

/** A drawing that says nothing to a screen reader: its button has the words. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  for (const [key, value] of [["viewBox", "0 0 24 24"], ["aria-hidden", "true"], ["class", "icon"]]) {
    svg.setAttribute(key, value);
  }
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/** Set text only where it changed: a live region or a selection is not disturbed for nothing. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Show or hide. */
export function show(element, yes) {
  if (element.hidden === yes) element.hidden = !yes;
}

/** A button with a drawing; its label is its name and its tooltip. */
export function iconButton(name, label, onclick, props = {}) {
  return h("button", { type: "button", class: "round", "aria-label": label, title: label, onclick, ...props }, icon(name));
}

/** Give a button another drawing and another name. */
export function relabel(button, name, label) {
  if (button.getAttribute("aria-label") === label) return;
  button.replaceChildren(icon(name));
  button.setAttribute("aria-label", label);
  button.title = label;
}

/** Say something in passing, at the lower edge of the window. */
export function say(text, action) {
  const area = document.getElementById("messages");
  const note = h("p", { class: "message" }, text);
  if (action) note.append(" ", h("button", { type: "button", class: "plain", onclick: () => { note.remove(); action.run(); } }, action.label));
  area.replaceChildren(note);
  setTimeout(() => note.remove(), 6000);
  return note;
}
