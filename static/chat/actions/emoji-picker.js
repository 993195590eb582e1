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

class EmojiPicker extends View {
  static properties = { _entry: { state: true } };

  render() {
    return html`<div class="menu emoji-picker" popover="auto" role="dialog" aria-label=${gettext("React")} data-testid="emoji-picker" @keydown=${(event) => this._key(event)}>
      <div class="emoji-grid">${EMOJI.map(([emoji, name]) => html`<button type="button" class="emoji" aria-label=${name} title=${name}
        aria-pressed=${String(this._isOwn(emoji))} @click=${() => this._give(emoji)}>${emoji}</button>`)}</div>
      <form class="emoji-form" @submit=${(event) => this._submit(event)}>
        <input class="field" name="emoji" aria-label=${gettext("Another emoji")} placeholder=${gettext("Another emoji")} maxlength="32" autocomplete="off" required>
        <button type="submit" class="button">${gettext("React")}</button>
      </form>
    </div>`;
  }

  /** @param {HTMLElement} origin @param {import("../store/entry.js").Entry} entry */
  async open(origin, entry) {
    this._origin = origin;
    this._entry = entry;
    await this.updateComplete;
    const box = this.firstElementChild;
    box.querySelector("form").reset();
    box.showPopover();
    placeBeside(box, origin);
    box.querySelector("button").focus();
  }

  _isOwn(emoji) {
    return this._entry?.reactions.some((reaction) => reaction.emoji === emoji && reaction.own) ?? false;
  }

  _key(event) {
    if (event.key === "Escape") {
      // The page has uses of its own for it.
      event.stopPropagation();
      event.preventDefault();
      this._close();
      return;
    }
    const buttons = Array.from(this.querySelectorAll(".emoji"));
    const at = buttons.indexOf(event.target);
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -COLUMNS, ArrowDown: COLUMNS }[event.key];
    if (at === -1 || !step) return;
    event.preventDefault();
    (buttons[at + step] || (step === COLUMNS ? this.querySelector("input") : event.target)).focus();
  }

  _submit(event) {
    event.preventDefault();
    this._give(new FormData(event.target).get("emoji").trim());
  }

  _give(emoji) {
    this._close();
    attempt(this._origin, () => react(this._entry, emoji, !this._isOwn(emoji)));
  }

  _close() {
    this.firstElementChild.hidePopover();
    this._origin.focus({ preventScroll: true });
  }
}
customElements.define("emoji-picker", EmojiPicker);
