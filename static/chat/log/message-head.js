/** The header of a message, and the footer of an unfinished answer. */

import { fullTime, clockTime } from "../text/time.js";
import { glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { transportBadge } from "./transport-badge.js";
import { gettext, interpolate } from "../words.js";

/**
 * Name, badges and time above a message.
 * @param {string} name
 * @param {"user"|"agent"} kind
 * @param {number|null} at Unix ms
 * @param {string} [transport]
 */
export const messageHead = (name, kind, at, transport) =>
  html` <header class="message-head">
    <span class="message-name">${name}</span>${
      kind === "agent" ? html` <span class="badge">${gettext("agent")}</span>` : ""
    }${transportBadge(transport, kind === "agent")}${
      at
        ? html` <time datetime=${new Date(at).toISOString()} title=${fullTime(at)}
            >${clockTime(at)}</time
          >`
        : ""
    }
  </header>`;

/**
 * @type {Record<string, {text: string, icon: "stop"|"alert", because: (reason: string) => string}>}
 */
const ENDINGS = {
  cancelled: {
    text: gettext("Stopped"),
    icon: "stop",
    because: (name) => interpolate(gettext("Stopped by %(name)s"), { name }),
  },
  failed: {
    text: gettext("The answer failed"),
    icon: "alert",
    because: (error) => interpolate(gettext("The answer failed: %(error)s"), { error }),
  },
};

/**
 * The line that says why an answer is incomplete. Fires (bubbling) `ask-again` with the question.
 * @param {string} status
 * @param {string} [reason] who stopped it, or why it failed
 * @param {string} [again] the question, if it may be asked again
 */
export function endingLine(status, reason, again) {
  const ending = ENDINGS[status];
  if (!ending) return "";
  const ask = (/** @type {MouseEvent} */ event) =>
    event.target?.dispatchEvent(new CustomEvent("ask-again", { bubbles: true, detail: again }));
  return html`<p class="message-ending is-${status}">
    ${glyph(ending.icon)}<span>${reason ? ending.because(reason) : ending.text}</span>${
      again
        ? html`<button type="button" class="link" data-testid="ask-again" @click=${ask}>
            ${gettext("Ask again")}
          </button>`
        : ""
    }
  </p>`;
}
