/** What can be done with a message: one menu for all messages. */

import { announce, h } from "../dom.js";

const GAP_PX = 4;

/** Fires (bubbling) `show-frames` (detail: the message). */
class MessageMenu extends HTMLElement {
  connectedCallback() {
    this._items = [
      h("button", { type: "button", role: "menuitem", class: "menu-item", "data-testid": "show-as", onclick: () => this._choose(() => this._fire()) }, "Show as…"),
      ...(navigator.clipboard ? [h("button", { type: "button", role: "menuitem", class: "menu-item", onclick: () => this._choose(() => this._copy()) }, "Copy text")] : []),
    ];
    this._menu = h("div", { role: "menu", class: "menu", popover: "auto", "aria-label": "Message", "data-testid": "message-menu" }, this._items);
    this._menu.addEventListener("keydown", (e) => this._key(e));
    this._menu.addEventListener("toggle", (e) => this._button?.setAttribute("aria-expanded", String(e.newState === "open")));
    this.append(this._menu);
  }

  /** @param {HTMLElement} button @param {import("../store/entry.js").Entry} entry */
  open(button, entry) {
    this._button = button;
    this._entry = entry;
    this._menu.showPopover();
    const place = button.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this._menu;
    const below = place.bottom + GAP_PX + height <= innerHeight;
    const left = Math.max(GAP_PX, Math.min(place.right - width, innerWidth - width - GAP_PX));
    this._menu.style.left = `${left}px`;
    this._menu.style.top = `${below ? place.bottom + GAP_PX : Math.max(GAP_PX, place.top - GAP_PX - height)}px`;
    this._items[0].focus();
  }

  _key(event) {
    const at = this._items.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this._items.length - 1 }[event.key];
    if (event.key === "Tab") this._close();
    if (event.key === "Escape") {
      // The page has uses of its own for it.
      event.stopPropagation();
      event.preventDefault();
      this._close();
    }
    if (to === undefined) return;
    event.preventDefault();
    this._items[(to + this._items.length) % this._items.length].focus();
  }

  _close() {
    this._menu.hidePopover();
    this._button.focus({ preventScroll: true });
  }

  _choose(does) {
    this._close();
    does();
  }

  _fire() {
    this._button.dispatchEvent(new CustomEvent("show-frames", { bubbles: true, detail: this._entry }));
  }

  async _copy() {
    await navigator.clipboard.writeText(this._entry.content);
    announce("Copied.");
  }
}
customElements.define("message-menu", MessageMenu);
