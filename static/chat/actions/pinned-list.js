/**
 * The pinned messages of the open chat, behind a button in its header. The button is hidden while
 * nothing is pinned.
 */

import { page } from "../context.js";
import { beginningOf } from "../markdown/plain.js";
import { Selected } from "../store/store.js";
import { shortTime } from "../text/time.js";
import { View, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { attempt, mayPin, pin } from "./acts.js";
import { placeBeside } from "./placing.js";
import { gettext, interpolate, ngettext } from "../words.js";

/** How much of a message is shown. */
const SHOWN_SIGNS = 300;

/** @typedef {import("../store/entry.js").Entry} Entry */

/** Fires (bubbling) `show-message` with the id of a message. */
class PinnedList extends View {
  constructor() {
    super();
    this._pins = new Selected(this, page, ({ pins }) => pins);
  }

  render() {
    const pins = this._pins.value;
    if (!pins.length) return nothing;
    const label = interpolate(
      ngettext("%(n)s pinned message", "%(n)s pinned messages", pins.length),
      { n: pins.length },
    );
    return html`<button
        type="button"
        class="icon-button pins-button"
        aria-label=${label}
        title=${label}
        aria-haspopup="dialog"
        aria-expanded="false"
        data-testid="pins"
        @click=${() => this._open()}
      >
        ${glyph("pin")}<span class="pins-count" aria-hidden="true">${pins.length}</span>
      </button>
      <div
        class="menu pinned"
        popover="auto"
        role="dialog"
        aria-label=${gettext("Pinned messages")}
        data-testid="pinned-list"
        @toggle=${(/** @type {ToggleEvent} */ event) => this._toggled(event)}
        @keydown=${(/** @type {KeyboardEvent} */ event) => this._key(event)}
      >
        <h2>${gettext("Pinned messages")}</h2>
        <ul>
          ${pins.map((entry) => this._row(entry))}
        </ul>
      </div>`;
  }

  /** @param {Entry} entry */
  _row(entry) {
    return html`<li>
      <button type="button" class="pinned-message" @click=${() => this._show(entry)}>
        <span class="pinned-head"><b>${entry.name}</b> <time>${shortTime(entry.at)}</time></span>
        <span class="pinned-text" dir="auto"
          >${beginningOf(entry.content, SHOWN_SIGNS) || gettext("Files")}</span
        >
      </button>
      ${
        mayPin()
          ? html`<button
              type="button"
              class="icon-button"
              aria-label=${interpolate(gettext("Unpin %(name)s's message"), {
                name: entry.name,
              })}
              title=${gettext("Unpin")}
              @click=${(/** @type {MouseEvent} */ event) => this._unpin(event, entry)}
            >
              ${glyph("close")}
            </button>`
          : nothing
      }
    </li>`;
  }

  /** @returns {HTMLElement} */
  get _box() {
    return /** @type {HTMLElement} */ (this.querySelector("[popover]"));
  }

  /** @returns {HTMLElement|null} null without pins */
  get _button() {
    return this.querySelector(".pins-button");
  }

  _open() {
    this._box.showPopover();
    if (this._button) placeBeside(this._box, this._button);
    this._box.querySelector("button")?.focus();
  }

  /** @param {ToggleEvent} event */
  _toggled({ newState }) {
    this._button?.setAttribute("aria-expanded", String(newState === "open"));
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (event.key !== "Escape") return;
    // The page has its own uses for this key.
    event.stopPropagation();
    event.preventDefault();
    this._close();
  }

  _close() {
    this._box.hidePopover();
    this._button?.focus();
  }

  /** @param {Entry} entry */
  _show(entry) {
    this._close();
    this.dispatchEvent(new CustomEvent("show-message", { bubbles: true, detail: entry.id }));
  }

  /** @param {MouseEvent} event @param {Entry} entry */
  _unpin(event, entry) {
    attempt(/** @type {HTMLElement} */ (event.currentTarget), () => pin(entry, false));
  }
}
customElements.define("pinned-list", PinnedList);
