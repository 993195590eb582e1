/** Creates elements and icons without markup in strings. */

import { lookOf, people } from "./person/looks.js";

/**
 * Create an element. `on…` members become listeners, `class`, `data-…` and `aria-…` members
 * attributes; null, undefined and false values are left out.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node|string|null|undefined|false|(Node|string|null|undefined|false)[])} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(
    .../** @type {(Node|string)[]} */ (children.flat().filter((child) => child || child === "")),
  );
  return element;
}

/** @param {Element} element */
const called = (element) =>
  element.getAttribute("name") ||
  element.getAttribute("href") ||
  element.getAttribute("aria-label") ||
  element.textContent;

/**
 * Find the counterpart of an element within another one, or undefined.
 * @param {Element} element
 * @param {Element} root
 * @returns {HTMLElement|undefined}
 */
export const sameAs = (element, root) =>
  /** @type {HTMLElement[]} */ ([...root.querySelectorAll(element.localName)]).find(
    (one) => called(one) === called(element),
  );

/** Outlines on a 24 × 24 grid. */
export const PATHS = {
  fork: "M7 4v16M7 14c0-5 10-3 10-9M14 7.5 17 4.5l3 3",
  thread: "M4 5h16v10H10l-4 4v-4H4zM8 9h8M8 12h5",
  add: "M12 5v14M5 12h14",
  alert:
    "M12 8v5M12 16.5v.01M10.3 4 2.6 17.5A2 2 0 0 0 4.3 20.5h15.4a2 2 0 0 0 1.7-3L13.7 4a2 2 0 0 0-3.4 0Z",
  attach:
    "m20 11-8.5 8.5a5 5 0 0 1-7-7L13 4a3.3 3.3 0 0 1 4.7 4.7l-8.5 8.5a1.7 1.7 0 0 1-2.4-2.4l7.8-7.8",
  back: "M15 5l-7 7 7 7",
  muted:
    "M6 9.5a6 6 0 0 1 9.6-4.8M18 11v2.5l2 3.5H9M4 17l2-3.5V12M10 20a2.2 2.2 0 0 0 4 0M4 4l16 16",
  settings:
    "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6M19 12a7 7 0 0 0-.1-1.2l2-1.6-2-3.4-2.4 1a7 7 0 0 0-2-1.2L14 3h-4l-.5 2.6a7 7 0 0 0-2 1.2l-2.4-1-2 3.4 2 1.6a7 7 0 0 0 0 2.4l-2 1.6 2 3.4 2.4-1a7 7 0 0 0 2 1.2L10 21h4l.5-2.6a7 7 0 0 0 2-1.2l2.4 1 2-3.4-2-1.6c.1-.4.1-.8.1-1.2Z",
  bin: "M4.5 6.5h15M9.5 6.5V4h5v2.5M6.5 6.5l1 13.5h9l1-13.5M10.5 10.5v6M13.5 10.5v6",
  check: "m5 12.5 4.5 4.5L19 7.5",
  chevron: "m9 6 6 6-6 6",
  again: "M19.5 12a7.5 7.5 0 1 1-2.2-5.3L19.5 9M19.5 4.5V9H15",
  clock: "M12 20.5a8.5 8.5 0 1 0 0-17 8.5 8.5 0 0 0 0 17ZM12 7.5V12l3 2",
  close: "M6 6l12 12M18 6 6 18",
  code: "m8.5 7-5 5 5 5M15.5 7l5 5-5 5",
  copy: "M9 9h10a1.5 1.5 0 0 1 1.5 1.5V19A1.5 1.5 0 0 1 19 20.5h-8.5A1.5 1.5 0 0 1 9 19ZM5 15H4.5A1.5 1.5 0 0 1 3 13.5V5a1.5 1.5 0 0 1 1.5-1.5H13A1.5 1.5 0 0 1 14.5 5v.5",
  down: "M12 5v14M6 13l6 6 6-6",
  edit: "M4.5 19.5l1-4L16 5a1.8 1.8 0 0 1 2.6 0l.4.4a1.8 1.8 0 0 1 0 2.6L8.5 18.5Z",
  file: "M13.5 3H7a1.5 1.5 0 0 0-1.5 1.5v15A1.5 1.5 0 0 0 7 21h10a1.5 1.5 0 0 0 1.5-1.5V8ZM13.5 3v5h5",
  image:
    "M5 4.5h14A1.5 1.5 0 0 1 20.5 6v12a1.5 1.5 0 0 1-1.5 1.5H5A1.5 1.5 0 0 1 3.5 18V6A1.5 1.5 0 0 1 5 4.5ZM8.5 10.5a1.2 1.2 0 1 0 0-2.4 1.2 1.2 0 0 0 0 2.4ZM4 17l5-4.5 3.5 3L16 12l4.5 4.5",
  link: "M10 13.5a4 4 0 0 0 5.7.3l3-3a4 4 0 0 0-5.7-5.7l-1.3 1.3M14 10.5a4 4 0 0 0-5.7-.3l-3 3a4 4 0 0 0 5.7 5.7l1.3-1.3",
  members:
    "M9 11.5a3.2 3.2 0 1 0 0-6.4 3.2 3.2 0 0 0 0 6.4ZM3 19c.4-3.2 2.8-5 6-5s5.6 1.8 6 5M15.5 5.3a3.2 3.2 0 0 1 0 6M17 14.3c2.3.5 3.8 2.2 4 4.7",
  message: "M4 5.5h16v11H9.5L5.5 20v-3.5H4Z",
  next: "M9 5l7 7-7 7",
  more: "M12 6v.01M12 12v.01M12 18v.01",
  bell: "M6.5 16.5h11l-1.2-2V10a4.3 4.3 0 0 0-8.6 0v4.5ZM10.3 19.5a2 2 0 0 0 3.4 0",
  hangUp:
    "M3.5 14.5c-.4-1.6.3-3 1.8-3.9 4-2.3 9.4-2.3 13.4 0 1.5.9 2.2 2.3 1.8 3.9-.2.8-1 1.2-1.8 1l-2.6-.7a1.4 1.4 0 0 1-1-1.4v-1.2a13 13 0 0 0-6.2 0v1.2a1.4 1.4 0 0 1-1 1.4l-2.6.7c-.8.2-1.6-.2-1.8-1Z",
  microphone:
    "M12 14.5a3 3 0 0 0 3-3V6.5a3 3 0 0 0-6 0v5a3 3 0 0 0 3 3ZM6 11.5a6 6 0 0 0 12 0M12 17.5V20.5",
  microphoneOff:
    "M15 9.5v-3a3 3 0 0 0-5.8-1M9 9.5v2a3 3 0 0 0 4.5 2.6M6 11.5a6 6 0 0 0 9.3 5M18 11.5a6 6 0 0 1-.6 2.6M12 17.5V20.5M4.5 4.5l15 15",
  pause: "M8.5 6v12M15.5 6v12",
  play: "M8 5.5v13l10.5-6.5Z",
  sound: "M4.5 9.5h3l4-3.5v12l-4-3.5h-3ZM15 9a4.2 4.2 0 0 1 0 6M17.5 6.5a7.8 7.8 0 0 1 0 11",
  phone:
    "M6.6 4.5h2.2l1.4 3.7-1.7 1.5a11 11 0 0 0 5.8 5.8l1.5-1.7 3.7 1.4v2.2a1.9 1.9 0 0 1-2 1.9C10.7 18.8 5.2 13.3 4.7 6.5a1.9 1.9 0 0 1 1.9-2Z",
  pin: "M9 4h6l-.7 6.5 3.2 3.5h-11l3.2-3.5ZM12 14v6.5",
  reply: "M9.5 6 4 11.5 9.5 17M4 11.5h9a6.5 6.5 0 0 1 6.5 6.5v.5",
  retry: "M19.5 12a7.5 7.5 0 1 1-2.2-5.3L19.5 9M19.5 4.5V9H15",
  seal: "M12 3.5 5 6v5.5c0 4.3 2.9 7.3 7 9 4.1-1.7 7-4.7 7-9V6ZM8.8 12l2.3 2.3 4.2-4.3",
  search: "M10.5 17.5a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM15.5 15.5l5 5",
  send: "M12 19V5M5.5 11.5 12 5l6.5 6.5",
  smile:
    "M12 20.5a8.5 8.5 0 1 0 0-17 8.5 8.5 0 0 0 0 17ZM8.5 14.5c1.7 2.4 5.3 2.4 7 0M9 9.5v.01M15 9.5v.01",
  spark:
    "M12 3.5c.7 5 3.5 7.8 8.5 8.5-5 .7-7.8 3.5-8.5 8.5-.7-5-3.5-7.8-8.5-8.5 5-.7 7.8-3.5 8.5-8.5Z",
  stop: "M7.5 7.5h9v9h-9Z",
  tool: "M14.7 6.3a4 4 0 0 1 5-1.5l-2.5 2.5 1.5 1.5 2.5-2.5a4 4 0 0 1-5.3 5L9 18a2.1 2.1 0 0 1-3-3l6.7-6.9a4 4 0 0 1 2-1.8Z",
  up: "M12 19V5M6 11l6-6 6 6",
  zoomIn:
    "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM15.2 15.2 20 20M10.5 7.8v5.4M7.8 10.5h5.4",
  zoomOut: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM15.2 15.2 20 20M7.8 10.5h5.4",
  wallet:
    "M5 6.5h12.5A1.5 1.5 0 0 1 19 8v1.5M5 6.5A1.7 1.7 0 0 1 5 3.5h11v3M3.5 5v13A1.5 1.5 0 0 0 5 19.5h14a1.5 1.5 0 0 0 1.5-1.5v-7A1.5 1.5 0 0 0 19 9.5H5.5M16.5 14.5v.01",
};

const SVG = "http://www.w3.org/2000/svg";

/** @param {keyof typeof PATHS} name @returns {SVGElement} an icon that assistive tools skip */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

/**
 * The picture, emoji or initials of a person or agent, on a colour derived from the name; agents
 * are square, people round.
 * @param {string} name
 * @param {"user"|"agent"} kind
 * @param {boolean} [online] shows a dot
 */
export function avatar(name, kind, online = false) {
  const look = lookOf(name, kind === "user" ? people.profile(name) : {});
  const picture =
    look.url &&
    h("img", {
      class: "avatar-picture",
      src: look.url,
      alt: "",
      loading: "lazy",
      onerror: (/** @type {any} */ event) => event.target.remove(),
    });
  const drawn = h(
    "span",
    {
      class: `avatar avatar-${kind} tone-${look.tone} ${
        look.isInkDark ? "is-ink-dark" : ""
      } ${look.isEmoji ? "is-emoji" : ""}`,
      "aria-hidden": "true",
    },
    h("span", { class: "avatar-text" }, look.text),
    picture,
    online && h("span", { class: "presence-dot" }),
  );
  if (look.colour) drawn.style.setProperty("--tone", look.colour);
  return drawn;
}

/** Let the user save JSON as a file. @param {string} name @param {string} json */
export function saveFile(name, json) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([json], { type: "application/json" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/**
 * Announce a text to screen readers once, without moving the focus.
 * @param {string} text
 */
export function announce(text) {
  const region = document.getElementById("announcer");
  if (!region) return;
  region.textContent = "";
  requestAnimationFrame(() => {
    region.textContent = text;
  });
}

/**
 * Listen to events from any part of the page.
 * @template T
 * @param {string} type @param {(detail: T, origin: HTMLElement) => void} listener
 */
export const on = (type, listener) =>
  addEventListener(type, (event) =>
    listener(
      /** @type {CustomEvent<T>} */ (event).detail,
      /** @type {HTMLElement} */ (event.target),
    ),
  );

/**
 * Return an element of the page's template.
 * @template {keyof HTMLElementTagNameMap} N
 * @param {N} name @returns {HTMLElementTagNameMap[N]}
 */
export const part = (name) =>
  /** @type {HTMLElementTagNameMap[N]} */ (document.querySelector(name));

/**
 * Listen to the details of events.
 * @param {EventTarget} target
 * @param {AbortSignal} signal
 */
export const detailListener =
  (target, signal) =>
  /** @template T @param {string} type @param {(detail: T) => void} listener */
  (type, listener) =>
    target.addEventListener(
      type,
      (event) => listener(/** @type {CustomEvent<T>} */ (event).detail),
      { signal },
    );
