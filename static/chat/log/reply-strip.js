/**
 * The line below a message that has a thread: how many replies, when the last one came, from whom,
 * and whether there are new ones.
 */

import { hasNews, rootOf } from "../store/threads.js";
import { agoText, fullTime } from "../text/time.js";
import { face, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { gettext, interpolate, ngettext } from "../words.js";

/** @param {number} count */
export const repliesText = (count) =>
  count === 0
    ? gettext("No replies yet")
    : interpolate(ngettext("%(count)s reply", "%(count)s replies", count), { count });

/**
 * Fires (bubbling) `open-thread` with the message.
 * @param {import("../store/entry.js").Entry} entry
 */
export function replyStrip(entry) {
  const { replies } = entry;
  if (!replies || replies.count <= 0) return nothing;
  const isNew = hasNews(replies);
  const open = (/** @type {Event} */ event) =>
    event.currentTarget?.dispatchEvent(
      new CustomEvent("open-thread", { bubbles: true, detail: entry }),
    );
  return html`<button
    type="button"
    class="reply-strip ${isNew ? "is-new" : ""}"
    data-testid="reply-strip"
    data-thread=${rootOf(entry)}
    title=${interpolate(gettext("Last reply %(time)s"), { time: fullTime(replies.lastAt) })}
    @click=${open}
  >
    <span class="reply-faces"
      >${replies.faces.map(({ name, kind }) => face(name || "?", kind))}</span
    ><b>${repliesText(replies.count)}</b
    ><span class="reply-last"
      >· ${agoText(replies.lastAt)}</span
    >${
      isNew ? html`<span class="reply-new">${gettext("New")}</span>` : nothing
    }${glyph("down")}<span class="visually-hidden">${gettext("Open the thread")}</span>
  </button>`;
}
