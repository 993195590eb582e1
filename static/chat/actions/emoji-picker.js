/**
 * An emoji picker with a search, for a reaction or for a text; any other emoji can be typed into
 * its field.
 */

import { emojiFor } from "../text/emoji.js";
import { View } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { attempt, react } from "./acts.js";
import { placeBeside } from "./placing.js";
import { gettext } from "../words.js";

const COLUMNS = 6;

/** @typedef {import("../store/entry.js").Entry} Entry */

export class EmojiPicker extends View {
  static properties = { _entry: { state: true }, _wanted: { state: true } };

  constructor() {
    super();
    /** @type {Entry|null} */
    this._entry = null;
    /** Takes the emoji, unless it is a reaction. @type {((emoji: string) => void)|null} */
    this._take = null;
    this._wanted = "";
    /** @type {HTMLElement|null} the element that opened it */
    this._origin = null;
  }

  /** @returns {HTMLElement} */
  get _box() {
    return /** @type {HTMLElement} */ (this.firstElementChild);
  }

  render() {
    const matches = emojiFor(this._wanted);
    return html`<div
      class="menu emoji-picker"
      popover="auto"
      role="dialog"
      aria-label=${this._entry ? gettext("React") : gettext("Emoji")}
      data-testid="emoji-picker"
      @keydown=${(/** @type {KeyboardEvent} */ event) => this._key(event)}
    >
      <form class="emoji-form" @submit=${(/** @type {SubmitEvent} */ event) => this._submit(event)}>
        <input
          type="search"
          class="field"
          name="emoji"
          aria-label=${gettext("Find an emoji")}
          placeholder=${gettext("Find an emoji")}
          maxlength="32"
          autocomplete="off"
          .value=${this._wanted}
          @input=${(/** @type {Event} */ event) => {
            this._wanted = /** @type {HTMLInputElement} */ (event.target).value;
          }}
        />
      </form>
      <div class="emoji-grid">
        ${matches.map(
          ({ emoji, name }) =>
            html`<button
              type="button"
              class="emoji"
              aria-label=${name.replaceAll("_", " ")}
              title=${`:${name}:`}
              aria-pressed=${this._entry ? String(this._isOwn(emoji)) : nothing}
              @click=${() => this._give(emoji)}
            >
              ${emoji}
            </button>`,
        )}
      </div>
      ${
        matches.length
          ? nothing
          : html`<p class="palette-none" role="status">
              ${gettext("No matches. Press Enter to use what you typed.")}
            </p>`
      }
    </div>`;
  }

  /**
   * @param {HTMLElement} origin
   * @param {Entry|null} entry to react to
   * @param {((emoji: string) => void)|null} [take] takes the emoji instead
   */
  async open(origin, entry, take = null) {
    [this._origin, this._entry, this._take, this._wanted] = [origin, entry, take, ""];
    await this.updateComplete;
    const box = this._box;
    box.showPopover();
    placeBeside(box, origin);
    // On a phone the keyboard would cover the emoji.
    /** @type {HTMLElement|null} */ (
      box.querySelector(matchMedia("(pointer: fine)").matches ? "input" : "button")
    )?.focus({ preventScroll: true });
  }

  /** @param {string} emoji */
  _isOwn(emoji) {
    return (
      this._entry?.reactions.some((reaction) => reaction.emoji === emoji && reaction.own) ?? false
    );
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (event.key === "Escape") {
      // The page has its own uses for this key.
      event.stopPropagation();
      event.preventDefault();
      this._close();
      return;
    }
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.key === "Tab") {
      // As in a dialog, Tab cycles within the picker: outside it, Escape would no longer close it.
      const stops = /** @type {HTMLElement[]} */ (
        Array.from(this.querySelectorAll("button, input"))
      );
      const [end, start] = event.shiftKey
        ? [stops[0], stops[stops.length - 1]]
        : [stops[stops.length - 1], stops[0]];
      if (target !== end) return;
      event.preventDefault();
      start.focus();
      return;
    }
    const buttons = /** @type {HTMLElement[]} */ (Array.from(this.querySelectorAll(".emoji")));
    const at = buttons.indexOf(target);
    const ahead = getComputedStyle(this).direction === "rtl" ? -1 : 1;
    const step = { ArrowLeft: -ahead, ArrowRight: ahead, ArrowUp: -COLUMNS, ArrowDown: COLUMNS }[
      event.key
    ];
    if (!step || (at === -1 && event.key !== "ArrowDown")) return;
    event.preventDefault();
    const next = at === -1 ? buttons[0] : buttons[at + step];
    /** @type {HTMLElement|null} */ (
      next ?? (step === -COLUMNS ? this.querySelector("input") : target)
    )?.focus();
  }

  /** @param {SubmitEvent} event */
  _submit(event) {
    event.preventDefault();
    const text = this._wanted.trim();
    const emoji = emojiFor(text)[0]?.emoji ?? text;
    if (text) this._give(emoji);
  }

  /** @param {string} emoji */
  _give(emoji) {
    const { _entry: entry, _origin: origin, _take: take } = this;
    this._close();
    take?.(emoji);
    if (entry && origin) attempt(origin, () => react(entry, emoji, !this._isOwn(emoji)));
  }

  _close() {
    this._box.hidePopover();
    this._origin?.focus({ preventScroll: true });
  }
}
customElements.define("emoji-picker", EmojiPicker);
