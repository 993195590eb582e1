/** The quoted message: shown in a reply, and above the composer while you write one. */

import { pageAt } from "../context.js";
import { beginningOf } from "../markdown/plain.js";
import { Selected } from "../store/store.js";
import { View, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { gettext } from "../words.js";

const CHARS = 160;

/** @param {{name?: string, content?: string}} quote */
const words = ({ name, content }) =>
  html`<span class="quote-name">${name || gettext("A message")}</span>
    <span class="quote-text" dir="auto"
      >${beginningOf(content ?? "", CHARS) || (name ? gettext("No text") : "")}</span
    >`;

/**
 * Fires (bubbling) `show-message` with the id.
 * @param {import("../store/entry.js").Quote|null} quote
 */
export function quoteTemplate(quote) {
  if (!quote) return nothing;
  const show = (/** @type {MouseEvent} */ event) =>
    event.currentTarget?.dispatchEvent(
      new CustomEvent("show-message", { bubbles: true, detail: quote.id }),
    );
  return html`<button type="button" class="quote" data-testid="quote" @click=${show}>
    <span class="visually-hidden">${gettext("In reply to")} </span>${words(quote)}
  </button>`;
}

/** The message that the next one answers. */
class ReplyPreview extends View {
  constructor() {
    super();
    this._answered = new Selected(this, pageAt, ({ replyTo }) => replyTo);
  }

  render() {
    const entry = this._answered.value;
    if (!entry) return nothing;
    return html`<div class="reply-preview" data-testid="reply-preview">
      ${glyph("reply")}
      <div class="quote-words">
        <span class="visually-hidden">${gettext("In reply to")} </span>${words(entry)}
      </div>
      <button
        type="button"
        class="icon-button"
        aria-label=${gettext("Cancel reply")}
        title=${gettext("Cancel reply")}
        @click=${() => this._cancel()}
      >
        ${glyph("close")}
      </button>
    </div>`;
  }

  _cancel() {
    pageAt(this).dispatch({ type: "reply-to", entry: null });
    this.closest("chat-composer")?.querySelector("textarea")?.focus();
  }
}
customElements.define("reply-preview", ReplyPreview);
