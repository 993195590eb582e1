/** The menu with what can be done with a message: one menu for all messages. */

import { View, glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { actionsFor } from "./actions.js";
import { placeBeside } from "./placing.js";
import { gettext } from "../words.js";

class MessageMenu extends View {
  static properties = { _entry: { state: true } };

  render() {
    const actions = this._entry ? actionsFor(this._entry) : [];
    return html`<div role="menu" class="menu" popover="auto" aria-label=${gettext("Message")} data-testid="message-menu"
      @keydown=${(event) => this._key(event)} @toggle=${(event) => this._toggled(event)}>${actions.map((action) => this._item(action))}</div>`;
  }

  /** @param {HTMLElement} button @param {import("../store/entry.js").Entry} entry */
  async open(button, entry) {
    this._button = button;
    this._entry = entry;
    await this.updateComplete;
    const menu = this.firstElementChild;
    menu.showPopover();
    placeBeside(menu, button);
    this._items[0].focus();
  }

  get _items() {
    return Array.from(this.querySelectorAll("[role=menuitem]"));
  }

  _item(action) {
    return html`<button type="button" role="menuitem" class="menu-item ${action.isDangerous ? "is-dangerous" : ""}" data-testid=${action.name}
      @click=${() => this._choose(action)}>${glyph(action.icon)}<span>${action.label(this._entry)}</span></button>`;
  }

  _toggled({ newState }) {
    this._button?.setAttribute("aria-expanded", String(newState === "open"));
  }

  _key(event) {
    const items = this._items;
    const at = items.indexOf(document.activeElement);
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
      [...items.slice(at + 1), ...items].find((item) => item.textContent.trim().toLowerCase().startsWith(letter))?.focus();
    }
  }

  _close() {
    this.firstElementChild.hidePopover();
    this._button.focus({ preventScroll: true });
  }

  _choose(action) {
    this._close();
    action.run(this._entry, this._button);
  }
}
customElements.define("message-menu", MessageMenu);
