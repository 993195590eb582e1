/** A small choice of emoji for a reaction, and a field for any other one. */

import { View } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { attempt, react } from "./acts.js";
import { placeBeside } from "./placing.js";
import { gettext } from "../words.js";

/** Each with its name for screen readers. */
const EMOJI = [
  ["👍", "thumbs up"], ["👎", "thumbs down"], ["❤️", "heart"], ["😂", "laughing"], ["🎉", "party"], ["👀", "eyes"],
  ["✅", "done"], ["❌", "no"], ["🙏", "thanks"], ["🔥", "fire"], ["🚀", "rocket"], ["💯", "hundred"],
  ["😀", "smile"], ["😢", "sad"], ["😮", "surprised"], ["🤔", "thinking"], ["👏", "applause"], ["💡", "idea"],
];
const COLUMNS = 6;

/** @typedef {import("../store/entry.js").Entry} Entry */

export class EmojiPicker extends View {
  static properties = { _entry: { state: true } };

  constructor() {
    super();
    /** @type {Entry|null} */
    this._entry = null;
    /** @type {HTMLElement|null} what opened it */
    this._origin = null;
  }

  /** @returns {HTMLElement} */
  get _box() {
    return /** @type {HTMLElement} */ (this.firstElementChild);
  }

  render() {
    return html`<div class="menu emoji-picker" popover="auto" role="dialog" aria-label=${gettext("React")} data-testid="emoji-picker" @keydown=${(/** @type {KeyboardEvent} */ event) => this._key(event)}>
      <div class="emoji-grid">${EMOJI.map(([emoji, name]) => html`<button type="button" class="emoji" aria-label=${name} title=${name}
        aria-pressed=${String(this._isOwn(emoji))} @click=${() => this._give(emoji)}>${emoji}</button>`)}</div>
      <form class="emoji-form" @submit=${(/** @type {SubmitEvent} */ event) => this._submit(event)}>
        <input class="field" name="emoji" aria-label=${gettext("Another emoji")} placeholder=${gettext("Another emoji")} maxlength="32" autocomplete="off" required>
        <button type="submit" class="button">${gettext("React")}</button>
      </form>
    </div>`;
  }

  /** @param {HTMLElement} origin @param {Entry} entry */
  async open(origin, entry) {
    this._origin = origin;
    this._entry = entry;
    await this.updateComplete;
    const box = this._box;
    box.querySelector("form")?.reset();
    box.showPopover();
    placeBeside(box, origin);
    box.querySelector("button")?.focus();
  }

  /** @param {string} emoji */
  _isOwn(emoji) {
    return this._entry?.reactions.some((reaction) => reaction.emoji === emoji && reaction.own) ?? false;
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (event.key === "Escape") {
      // The page has uses of its own for it.
      event.stopPropagation();
      event.preventDefault();
      this._close();
      return;
    }
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.key === "Tab") {
      // As in a dialog, Tab goes around in it: out of it, Escape would not close it any more.
      const stops = /** @type {HTMLElement[]} */ (Array.from(this.querySelectorAll("button, input")));
      const [end, start] = event.shiftKey ? [stops[0], stops[stops.length - 1]] : [stops[stops.length - 1], stops[0]];
      if (target !== end) return;
      event.preventDefault();
      start.focus();
      return;
    }
    const buttons = /** @type {HTMLElement[]} */ (Array.from(this.querySelectorAll(".emoji")));
    const at = buttons.indexOf(target);
    const ahead = getComputedStyle(this).direction === "rtl" ? -1 : 1;
    const step = { ArrowLeft: -ahead, ArrowRight: ahead, ArrowUp: -COLUMNS, ArrowDown: COLUMNS }[event.key];
    if (at === -1 || !step) return;
    event.preventDefault();
    (buttons[at + step] || (step === COLUMNS && this.querySelector("input")) || target).focus();
  }

  /** @param {SubmitEvent} event */
  _submit(event) {
    event.preventDefault();
    this._give(String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("emoji")).trim());
  }

  /** @param {string} emoji */
  _give(emoji) {
    const { _entry: entry, _origin: origin } = this;
    this._close();
    if (entry && origin) attempt(origin, () => react(entry, emoji, !this._isOwn(emoji)));
  }

  _close() {
    this._box.hidePopover();
    this._origin?.focus({ preventScroll: true });
  }
}
customElements.define("emoji-picker", EmojiPicker);
