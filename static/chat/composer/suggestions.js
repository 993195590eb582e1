/** The menu above the text: members after "@", commands after "/" at its beginning. */

import { announce } from "../dom.js";
import { folded } from "../text/folding.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { gettext, interpolate, ngettext } from "../words.js";

const SHOWN = 8;

/**
 * @typedef {object} Suggestion
 * @property {string} name inserted into the text
 * @property {string} note
 * @property {unknown} [picture]
 *
 * @typedef {object} Source
 * @property {string} label of the menu
 * @property {RegExp} pattern whose first group is the text typed, up to the cursor
 * @property {() => Suggestion[]} all
 */

/** A reactive controller of Lit. */
export class Suggestions {
  /**
   * @param {import("../view.js").View} host
   * @param {() => HTMLTextAreaElement} text
   * @param {Source[]} sources
   */
  constructor(host, text, sources) {
    this._host = host;
    this._textOf = text;
    this._sources = sources;
    this._label = "";
    this._from = 0;
    /** @type {Suggestion[]} */
    this._found = [];
    this._active = 0;
    this._of = "";
    this._isDismissed = false;
  }

  /** The id of the active option, for the text field's `aria-activedescendant`. */
  get activeId() {
    return this._found.length ? `${this._of}suggestion-${this._active}` : nothing;
  }

  /** Suggest completions of the word before the cursor. */
  update() {
    this._isDismissed = false;
    const text = this._textOf();
    const before = text.value.slice(0, text.selectionStart);
    const wasOpen = this._found.length > 0;
    this.close();
    for (const { label, pattern, all } of this._sources) {
      const match = pattern.exec(before);
      if (!match) continue;
      const typed = folded(match[1]);
      this._label = label;
      this._from = before.length - match[1].length;
      this._found = all()
        .filter(({ name }) => folded(name).startsWith(typed))
        .slice(0, SHOWN);
      break;
    }
    if (!wasOpen && this._found.length)
      announce(
        interpolate(
          ngettext(
            "%(n)s entry matches. Use the arrow keys.",
            "%(n)s entries match. Use the arrow keys.",
            this._found.length,
          ),
          { n: this._found.length },
        ),
      );
  }

  /** Search again, since the members changed; keep the active option. */
  refresh() {
    if (this._isDismissed || document.activeElement !== this._textOf()) return;
    const active = this._found[this._active]?.name;
    this.update();
    this._active = Math.max(
      0,
      this._found.findIndex(({ name }) => name === active),
    );
  }

  /**
   * Handle a key while the menu is open.
   * @param {KeyboardEvent} event
   * @returns {boolean} whether it did
   */
  key(event) {
    if (this._found.length === 0) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this._active = (this._active + step + this._found.length) % this._found.length;
    else if (event.key === "Enter" || event.key === "Tab") this._choose(this._found[this._active]);
    else if (event.key === "Escape") {
      this.close();
      this._isDismissed = true;
    } else return false;
    this._host.requestUpdate();
    return true;
  }

  close() {
    this._found = [];
    this._active = 0;
    this._host.requestUpdate();
  }

  /** @param {string} of prefix of ids: the page may have two fields */
  template(of) {
    this._of = of;
    return html`<ul
      class="mention-menu"
      id="${of}suggestions"
      role="listbox"
      aria-label=${this._label || gettext("Suggestions")}
      ?hidden=${this._found.length === 0}
    >
      ${this._found.map(
        (suggestion, at) =>
          html`<li
            role="option"
            id="${of}suggestion-${at}"
            aria-selected=${String(at === this._active)}
            @mousedown=${(/** @type {Event} */ event) => this._pressed(event, suggestion)}
          >
            ${suggestion.picture ?? nothing}<span>${suggestion.name}</span><small>${suggestion.note}</small>
          </li>`,
      )}
    </ul>`;
  }

  /**
   * Choose on mousedown, before the blur that would close the menu.
   * @param {Event} event @param {Suggestion} suggestion
   */
  _pressed(event, suggestion) {
    event.preventDefault();
    this._choose(suggestion);
  }

  /** @param {Suggestion} found */
  _choose({ name }) {
    const text = this._textOf();
    this.close();
    text.setRangeText(`${name} `, this._from, text.selectionStart, "end");
    text.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
