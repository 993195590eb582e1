/** A menu of actions on one subject, such as a message or a chat in the list; opens beside it. */

import { View, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { placeBeside } from "./placing.js";

/**
 * @template Subject
 * @typedef {object} Action
 * @property {string} name unique, and the test id of its item
 * @property {(subject: Subject) => string} label
 * @property {keyof typeof import("../dom.js").PATHS} icon
 * @property {boolean} [isDangerous] it destroys something
 * @property {(subject: Subject) => boolean} [isOffered] always offered when missing
 * @property {(subject: Subject, origin: HTMLElement) => void} run `origin` is the pressed
 *   element; its events bubble
 */

/** @template Subject */
export class ActionMenu extends View {
  static properties = { _subject: { state: true } };

  constructor() {
    super();
    /** @type {Subject|null} */
    this._subject = null;
    this.label = "";
    this.testId = "";
    /** @type {HTMLElement|null} the button beside the menu */
    this._button = null;
    /** @type {HTMLElement|null} gets the focus back when the menu closes */
    this._origin = null;
  }

  /** Return the actions for a subject. @param {Subject} _subject @returns {Action<Subject>[]} */
  actions(_subject) {
    return [];
  }

  render() {
    const subject = this._subject;
    return html`<div
      role="menu"
      class="menu"
      popover="auto"
      aria-label=${this.label}
      data-testid=${this.testId}
      @keydown=${(/** @type {KeyboardEvent} */ event) => this._key(event)}
      @toggle=${(/** @type {ToggleEvent} */ event) => this._toggled(event)}
    >
      ${
        subject === null
          ? nothing
          : this.actions(subject).map((action) => this._item(action, subject))
      }
    </div>`;
  }

  /** @param {HTMLElement} button @param {Subject} subject */
  async open(button, subject) {
    this._button = button;
    this._subject = subject;
    // A menu opened by a key returns the focus to the message, for the next key.
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

  /** @param {Action<Subject>} action @param {Subject} subject */
  _item(action, subject) {
    return html`<button
      type="button"
      role="menuitem"
      class="menu-item ${action.isDangerous ? "is-dangerous" : ""}"
      data-testid=${action.name}
      @click=${() => this._choose(action, subject)}
    >
      ${glyph(action.icon)}<span>${action.label(subject)}</span>
    </button>`;
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
      // The page has its own uses for this key.
      event.stopPropagation();
      event.preventDefault();
      this._close();
    }
    if (to !== undefined) {
      event.preventDefault();
      items[(to + items.length) % items.length].focus();
    } else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const letter = event.key.toLowerCase();
      [...items.slice(at + 1), ...items]
        .find((item) => (item.textContent ?? "").trim().toLowerCase().startsWith(letter))
        ?.focus();
    }
  }

  _close() {
    this._menu.hidePopover();
    this._origin?.focus({ preventScroll: true });
  }

  /** @param {Action<Subject>} action @param {Subject} subject */
  _choose(action, subject) {
    this._close();
    if (this._origin) action.run(subject, this._origin);
  }
}
