/**
 * Tabs following the ARIA Authoring Practices: arrow keys move, and only the chosen tab is in the
 * tab order.
 */

import { View } from "../view.js";
import { html } from "../../vendor/lit/lit.js";

/** @typedef {{name: string, panel: string}} Tab its name, and the id of its panel */

/**
 * Fires (bubbling) `choose-tab` with the name of the chosen tab; the owner of the panels shows its
 * panel, and labels each by the id of its tab (`tab-` and the id of the panel).
 */
export class TabList extends View {
  static properties = {
    label: { attribute: false },
    tabs: { attribute: false },
    chosen: { attribute: false },
  };

  constructor() {
    super();
    /** The label of the tab list. */
    this.label = "";
    /** @type {Tab[]} */
    this.tabs = [];
    this.chosen = "";
  }

  render() {
    return html`<div
      role="tablist"
      class="tabs"
      aria-label=${this.label}
      @keydown=${(/** @type {KeyboardEvent} */ event) => this._key(event)}
    >
      ${this.tabs.map(({ name, panel }) => {
        const isChosen = name === this.chosen;
        return html`<button
          type="button"
          role="tab"
          class="tab"
          id="tab-${panel}"
          aria-controls=${panel}
          aria-selected=${String(isChosen)}
          tabindex=${isChosen ? 0 : -1}
          @click=${() => this._choose(name)}
        >
          ${name}
        </button>`;
      })}
    </div>`;
  }

  /** Give the chosen tab the focus. */
  focus() {
    /** @type {HTMLElement|null} */ (this.querySelector("[aria-selected=true]"))?.focus();
  }

  /** @param {KeyboardEvent} event */
  async _key(event) {
    const at = this.tabs.findIndex(({ name }) => name === this.chosen);
    const ahead = getComputedStyle(this).direction === "rtl" ? -1 : 1;
    const to = {
      ArrowRight: at + ahead,
      ArrowLeft: at - ahead,
      Home: 0,
      End: this.tabs.length - 1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this._choose(this.tabs[(to + this.tabs.length) % this.tabs.length].name);
    await this.updateComplete;
    this.focus();
  }

  /** @param {string} name */
  _choose(name) {
    this.chosen = name;
    this.dispatchEvent(new CustomEvent("choose-tab", { bubbles: true, detail: name }));
  }
}
customElements.define("tab-list", TabList);
