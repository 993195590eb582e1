/** The notes at a reply that both its thread and the chat show. */

import { html, nothing } from "../../vendor/lit/lit.js";
import { gettext } from "../words.js";

/** @typedef {import("../store/entry.js").Entry} Entry */

/** In the thread: the note that the reply is also shown in the chat. @param {Entry} entry */
export const shownInChat = ({ thread, alsoInChat }) =>
  thread && alsoInChat
    ? html`<p class="thread-note">${gettext("Also sent to the chat")}</p>`
    : nothing;

/**
 * In the chat: the link to the thread. Fires (bubbling) `open-thread` with the reply.
 * @param {Entry} entry
 */
export function fromThread(entry) {
  if (!entry.thread) return nothing;
  const open = (/** @type {MouseEvent} */ event) =>
    event.currentTarget?.dispatchEvent(
      new CustomEvent("open-thread", { bubbles: true, detail: entry }),
    );
  return html`<button
    type="button"
    class="link thread-note"
    data-testid="from-thread"
    @click=${open}
  >
    ${gettext("Replied in a thread")}
  </button>`;
}
