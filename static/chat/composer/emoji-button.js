/** The button that opens the choice of emoji. */

import { glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { gettext } from "../words.js";

/**
 * Fires (bubbling) `pick-emoji` with what takes the emoji.
 * @param {(emoji: string) => void} take
 */
export function emojiButton(take) {
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
