/** The base of all views, Lit without a shadow root, and small templates. */

import { LitElement, html, nothing } from "../vendor/lit/lit.js";
import { PATHS } from "./dom.js";
import { lookOf, people, profileOfChat } from "./person/looks.js";

/**
 * A Lit element that renders into the page: it shares the style sheet, and ids and labels reach
 * into it.
 */
export class View extends LitElement {
  createRenderRoot() {
    return this;
  }
}

/** @param {keyof typeof PATHS} name an icon that assistive tools skip */
export const glyph = (name) =>
  html`<svg class="icon icon-${name}" viewBox="0 0 24 24" aria-hidden="true">
    <path d=${PATHS[name]}></path>
  </svg>`;

/**
 * @param {import("./person/looks.js").Look} look
 * @param {"user"|"agent"|"chat"} kind
 * @param {boolean} online
 */
const drawn = (look, kind, online) =>
  html`<span
    class="avatar avatar-${kind} tone-${look.tone} ${look.isInkDark ? "is-ink-dark" : ""} ${
      look.isEmoji ? "is-emoji" : ""
    }"
    .style=${look.colour ? `--tone: ${look.colour}` : ""}
    aria-hidden="true"
    ><span class="avatar-text">${look.text}</span>${
      look.url
        ? html`<img
            class="avatar-picture"
            src=${look.url}
            alt=""
            loading="lazy"
            ?hidden=${broken.has(look.url)}
            @error=${hide}
          />`
        : nothing
    }${online ? html`<span class="presence-dot"></span>` : nothing}</span
  >`;

/**
 * Addresses of missing pictures: the initials are shown instead.
 * @type {Set<string>}
 */
const broken = new Set();

/** @param {Event} event */
function hide({ target }) {
  const picture = /** @type {HTMLImageElement} */ (target);
  broken.add(picture.getAttribute("src") ?? "");
  picture.hidden = true;
}

/**
 * The picture, emoji or initials of a person or agent, on a colour derived from the name; agents
 * are square, people round.
 * @param {string} name
 * @param {"user"|"agent"} kind
 * @param {boolean} [online] shows a dot
 */
export const face = (name, kind, online = false) =>
  drawn(lookOf(name, kind === "user" ? people.profile(name) : {}), kind, online);

/**
 * An avatar being edited.
 * @param {string} name
 * @param {import("./person/looks.js").Profile} profile
 * @param {"user"|"chat"} [kind]
 * @param {string} [seed]
 */
export const faceOf = (name, profile, kind = "user", seed = name) =>
  drawn(lookOf(name, profile, seed), kind, false);

/**
 * The picture of a chat: its own, else that of its only other member, else one derived from its id.
 * @param {any} chat
 * @param {string} name
 * @param {{name: string, kind: "user"|"agent"}[]} others
 * @param {boolean} [online]
 */
export const faceOfChat = (chat, name, others, online = false) => {
  if (!chat.avatar && others.length === 1) return face(others[0].name, others[0].kind, online);
  return drawn(lookOf(name, profileOfChat(chat), chat.id), "chat", online);
};

/** The loading indicator. @param {string} label */
export const spinner = (label) => html`<div class="spinner" role="img" aria-label=${label}></div>`;

export const dots = html`<i></i><i></i><i></i>`;
