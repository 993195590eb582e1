/** The option to send a reply to the chat as well. */

import { html } from "../../vendor/lit/lit.js";
import { gettext } from "../words.js";

export const alsoInChat = () =>
  html`<label class="also-in-chat"
    ><input type="checkbox" data-testid="also-in-chat" />${gettext("Also send to the chat")}</label
  >`;

/**
 * Return whether the option is chosen, and reset it for the next reply.
 * @param {HTMLElement} composer
 */
export function takeAlsoInChat(composer) {
  const box = /** @type {HTMLInputElement|null} */ (composer.querySelector(".also-in-chat input"));
  const isChosen = Boolean(box?.checked);
  if (box) box.checked = false;
  return isChosen;
}
