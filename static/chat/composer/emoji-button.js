/** The button that opens the emoji picker. */

import { glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { gettext } from "../words.js";

/**
 * Fires (bubbling) `pick-emoji` with a function that inserts the emoji at the caret.
 * @param {() => HTMLTextAreaElement} field
 * @param {() => void} written
 */
export function emojiButton(field, written) {
  const take = (/** @type {string} */ emoji) => {
    const text = field();
    text.focus();
    text.setRangeText(emoji, text.selectionStart, text.selectionEnd, "end");
    written();
  };
  const pick = (/** @type {Event} */ { currentTarget }) =>
    currentTarget?.dispatchEvent(new CustomEvent("pick-emoji", { bubbles: true, detail: take }));
  return html`<button
    type="button"
    class="icon-button emoji-button"
    aria-label=${gettext("Emoji")}
    title=${gettext("Emoji")}
    aria-haspopup="dialog"
    data-testid="emoji"
    @click=${pick}
  >
    ${glyph("smile")}
  </button>`;
}
