/** The menu with what can be done with a message: one menu for all messages. */

import { View, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { actionsFor } from "./actions.js";
import { placeBeside } from "./placing.js";
import { gettext } from "../words.js";

/** @typedef {import("../store/entry.js").Entry} Entry */
/** @typedef {import("./actions.js").MessageAction} MessageAction */

export class MessageMenu extends View {
  static properties = { _entry: { state: true } };

  constructor() {
    super();
    /** @type {Entry|null} */
    this._entry = null;
    /** @type {HTMLElement|null} the button beside the message */
    this._button = null;
    /** @type {HTMLElement|null} what has the focus again when it closes */
    this._origin = null;
  }

  render() {
    const entry = this._entry;
    return html`<div role="menu" class="menu" popover="auto" aria-label=${gettext("Message")} data-testid="message-menu"
      @keydown=${(/** @type {KeyboardEvent} */ event) => this._key(event)} @toggle=${(/** @type {ToggleEvent} */ event) => this._toggled(event)}>${entry ? actionsFor(entry).map((action) => this._item(action, entry)) : nothing}</div>`;
  }

  /** @param {HTMLElement} button @param {Entry} entry */
  async open(button, entry) {
    this._button = button;
    this._entry = entry;
    // Opened by a key on the message, it gives the focus back to the message, for the next key.
    const row = /** @type {HTMLElement|null} */ (button.closest("chat-message"));
    this._origin = row !== null && row === document.activeElement ? row : button;
    await this.updateComplete;
    const menu = this._menu;
    menu.showPopover();
    placeBeside(menu, button);
    this._items[0].focus();
  }

  /** @returns {HTMLElement} */
  get _menu() {
    return /** @type {HTMLElement} */ (this.firstElementChild);
  }

  /** @returns {HTMLElement[]} */
  get _items() {
    return Array.from(this.querySelectorAll("[role=menuitem]"));
  }

  /** @param {MessageAction} action @param {Entry} entry */
  _item(action, entry) {
    return html`<button type="button" role="menuitem" class="menu-item ${action.isDangerous ? "is-dangerous" : ""}" data-testid=${action.name}
      @click=${() => this._choose(action, entry)}>${glyph(action.icon)}<span>${action.label(entry)}</span></button>`;
  }

  /** @param {ToggleEvent} event */
  _toggled({ newState }) {
    this._button?.setAttribute("aria-expanded", String(newState === "open"));
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const items = this._items;
    const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (event.key === "Tab") this._close();
    if (event.key === "Escape") {
      // The page has uses of its own for it.
      event.stopPropagation();
      event.preventDefault();
      this._close();
    }
    if (to !== undefined) {
      event.preventDefault();
      items[(to + items.length) % items.length].focus();
    } else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const letter = event.key.toLowerCase();
      [...items.slice(at + 1), ...items].find((item) => (item.textContent ?? "").trim().toLowerCase().startsWith(letter))?.focus();
    }
  }

  _close() {
    this._menu.hidePopover();
    this._origin?.focus({ preventScroll: true });
  }

  /** @param {MessageAction} action @param {Entry} entry */
  _choose(action, entry) {
    this._close();
    if (this._origin) action.run(entry, this._origin);
  }
}
customElements.define("message-menu", MessageMenu);
