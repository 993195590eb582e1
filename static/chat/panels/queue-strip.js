/**
 * The chat's queued messages, which are sent when the running answers have ended. All members see
 * them.
 */

import { me, page, store } from "../context.js";
import { beginningOf } from "../markdown/plain.js";
import { people } from "../person/looks.js";
import { Selected } from "../store/store.js";
import { View, face, glyph } from "../view.js";
import { html, repeat } from "../../vendor/lit/lit.js";
import { gettext, interpolate, ngettext } from "../words.js";

const SHOWN_CHARS = 300;

/** @typedef {import("../../uamp/types.js").Frame} Frame */

/** Fires (bubbling) `queue-start`, `queue-edit` and `queue-remove` with the message. */
class QueueStrip extends View {
  constructor() {
    super();
    this._queue = new Selected(this, page, (state) => state.queue);
  }

  render() {
    const items = this._queue.value;
    if (items.length === 0) return "";
    const title = interpolate(
      ngettext("%(count)s message queued", "%(count)s messages queued", items.length),
      { count: items.length },
    );
    return html`<section class="queue" data-testid="queue" aria-label=${gettext("Queue")}>
      <h3 class="queue-title">${glyph("clock")}${title}</h3>
      <ol>
        ${repeat(
          items,
          ({ id }) => id,
          (item) => this._item(item),
        )}
      </ol>
    </section>`;
  }

  /** @param {Frame} item */
  _item(item) {
    const isOwn = item.user_id === me.id;
    const isFailed = item.status === "failed";
    const name = people.nameOf(item.username);
    const files = item.files
      ? interpolate(ngettext("%(count)s file", "%(count)s files", item.files), {
          count: item.files,
        })
      : "";
    const state = isFailed
      ? interpolate(gettext("Couldn't send: %(reason)s"), { reason: item.reason || item.code })
      : item.status === "starting"
        ? gettext("Sending…")
        : files;
    return html`<li
      class="queue-item ${isFailed ? "is-failed" : ""}"
      data-testid="queue-item"
      data-status=${item.status}
    >
      ${face(item.username, "user")}
      <span class="queue-words"
        ><p class="is-said" title=${item.text}>
          <b><bdi>${name}</bdi> </b
          ><span dir="auto">${beginningOf(item.text, SHOWN_CHARS) || files}</span>
        </p>
        ${state ? html`<small>${state}</small>` : ""}</span
      >
      ${item.status === "starting" ? "" : this._acts(item, isOwn, isFailed)}
    </li>`;
  }

  /** @param {Frame} item @param {boolean} isOwn @param {boolean} isFailed */
  _acts(item, isOwn, isFailed) {
    const button = (
      /** @type {string} */ type,
      /** @type {string} */ label,
      /** @type {Parameters<typeof glyph>[0]} */ picture,
    ) =>
      html`<button
        type="button"
        class="icon-button"
        aria-label=${label}
        title=${label}
        data-testid=${type}
        @click=${() => this.dispatchEvent(new CustomEvent(type, { bubbles: true, detail: item }))}
      >
        ${glyph(picture)}
      </button>`;
    return html`${
      isOwn
        ? button(
            "queue-start",
            isFailed ? gettext("Try again") : gettext("Send now"),
            isFailed ? "again" : "send",
          )
        : ""
    }${isOwn && !item.files ? button("queue-edit", gettext("Edit"), "edit") : ""}${
      isOwn || this._isOwner ? button("queue-remove", gettext("Remove from the queue"), "bin") : ""
    }`;
  }

  get _isOwner() {
    return (
      store
        .get(page.state.chatId)
        ?.participants.some(
          ({ kind, id, role }) => kind === "user" && String(id) === me.id && role === "owner",
        ) ?? false
    );
  }
}
customElements.define("queue-strip", QueueStrip);
