/** Two keys of the open chat: the arrow up in an empty composer, and Escape. */

import { me, page } from "../context.js";
import { isFrom } from "../store/entry.js";

/** @typedef {import("../composer/composer.js").ChatComposer|null} Composer */

/**
 * The arrow up in an empty composer edits the user's last message.
 * @param {KeyboardEvent} event
 * @param {Composer} composer
 */
export function editLast(event, composer) {
  if (
    event.key !== "ArrowUp" ||
    event.defaultPrevented ||
    !(event.target instanceof HTMLTextAreaElement) ||
    !composer?.isEmpty
  )
    return;
  const last = page.state.entries.findLast((entry) => isFrom(entry, me.id) && !entry.deletedAt);
  if (!last) return;
  event.preventDefault();
  page.dispatch({ type: "editing", id: last.id });
}

/**
 * Escape cancels a reply, or stops the user's own answers, unless something is being written.
 * @param {KeyboardEvent} event @param {Composer} composer
 * @returns {boolean} whether the key had this meaning
 */
export function onEscape(event, composer) {
  const isWriting =
    event.isComposing ||
    event.keyCode === 229 ||
    Boolean(/** @type {HTMLInputElement} */ (event.target).value);
  if (isWriting) return false;
  if (page.state.replyTo) {
    page.dispatch({ type: "reply-to", entry: null });
    return true;
  }
  return Boolean(composer?.isEmpty && composer.stopOwn());
}
