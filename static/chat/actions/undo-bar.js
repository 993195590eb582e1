/** Shows that a message is about to be deleted, with a button that keeps it. */

import { announce } from "../dom.js";
import { page } from "../context.js";
import { View } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { attempt, remove } from "./acts.js";
import { gettext } from "../words.js";

/** How long the deletion can be undone. */
const UNDO_MS = 6_000;

/** @typedef {import("../store/entry.js").Entry} Entry */

/** Another deletion, or leaving the page, ends the wait early. */
export class UndoBar extends View {
  static properties = { _entry: { state: true } };

  constructor() {
    super();
    /** @type {Entry|null} */
    this._entry = null;
    /** @type {HTMLElement|null} */
    this._origin = null;
    this._timer = 0;
    this._onLeave = () => void this._remove();
  }

  connectedCallback() {
    super.connectedCallback();
    addEventListener("pagehide", this._onLeave);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    removeEventListener("pagehide", this._onLeave);
  }

  render() {
    if (!this._entry) return nothing;
    return html`<div
      class="undo-bar"
      role="group"
      aria-label=${gettext("Message deleted")}
      data-testid="undo-bar"
    >
      <span>${gettext("Message deleted")}</span>
      <button type="button" class="button" data-testid="undo" @click=${() => this._undo()}>
        ${gettext("Undo")}
      </button>
    </div>`;
  }

  /**
   * Delete a message once the wait is over.
   * @param {Entry} entry
   * @param {HTMLElement} origin in the chat
   */
  async removeLater(entry, origin) {
    await this._remove();
    [this._entry, this._origin] = [entry, origin];
    this._hide(entry.id, true);
    this._timer = window.setTimeout(() => this._remove(), UNDO_MS);
    announce(gettext("Message deleted. Press Undo to keep it."));
    await this.updateComplete;
    this.querySelector("button")?.focus({ preventScroll: true });
  }

  _undo() {
    const { _entry: entry, _origin: origin } = this;
    this._end();
    if (!entry) return;
    this._hide(entry.id, false);
    announce(gettext("The message is kept."));
    (origin?.isConnected
      ? origin
      : /** @type {HTMLElement|null} */ (document.querySelector("message-list .log"))
    )?.focus({ preventScroll: true });
  }

  async _remove() {
    const { _entry: entry, _origin: origin } = this;
    if (!entry || !origin) return;
    const hadFocus = this.contains(document.activeElement);
    this._end();
    if (hadFocus)
      /** @type {HTMLElement|null} */ (document.querySelector("message-list .log"))?.focus({
        preventScroll: true,
      });
    if (!(await attempt(origin, () => remove(entry)))) this._hide(entry.id, false);
  }

  _end() {
    clearTimeout(this._timer);
    [this._entry, this._origin] = [null, null];
  }

  /** @param {string} id of the message @param {boolean} isHidden */
  _hide(id, isHidden) {
    for (const row of /** @type {NodeListOf<HTMLElement & {isRemoved: boolean}>} */ (
      document.querySelectorAll(`chat-message[data-id="${CSS.escape(id)}"]`)
    ))
      row.isRemoved = isHidden;
    page.dispatch({ type: "removing", id: isHidden ? id : "" });
  }
}
customElements.define("undo-bar", UndoBar);
