/** What all views share: Lit without a shadow root, and small templates. */

import { LitElement, html } from "../vendor/lit/lit.js";
import { PATHS, toneOf } from "./dom.js";

/** A Lit element whose content is part of the page: one style sheet, ids and labels reach into it. */
export class View extends LitElement {
  createRenderRoot() {
    return this;
  }
}

/** @param {keyof typeof PATHS} name an icon that assistive tools skip */
export const glyph = (name) =>
  html`<svg class="icon icon-${name}" viewBox="0 0 24 24" aria-hidden="true"><path d=${PATHS[name]}></path></svg>`;

/**
 * Initials on a colour that stays the same for a name; agents are square, people round.
 * @param {string} name @param {"user"|"agent"} kind @param {boolean} [online] shows a dot
 */
export const face = (name, kind, online = false) => html`<span class="avatar avatar-${kind} tone-${toneOf(name)}" aria-hidden="true"
  >${kind === "agent" ? glyph("spark") : Array.from(name)[0]?.toUpperCase() || "?"}${online ? html`<span class="presence-dot"></span>` : ""}</span>`;

/** What shows that something is loaded. @param {string} label */
export const spinner = (label) => html`<div class="spinner" role="img" aria-label=${label}></div>`;

export const dots = html`<i></i><i></i><i></i>`;
