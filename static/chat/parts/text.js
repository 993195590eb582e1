/** Renders the text of a message, stored or still being written. */

import { View, glyph } from "../view.js";
import { drawn } from "../markdown/drawing.js";
import { GrowingText } from "../markdown/growing.js";
import { beginningOf } from "../markdown/parser.js";
import "../markdown/code-copy.js";
import { html } from "../../vendor/lit/lit.js";
import { gettext, interpolate, locale } from "../words.js";

/** How much of a folded text is rendered per animation frame. */
const STEP_CHARS = 16_000;
/** If rendering a step takes longer, the rest is shown unformatted. */
const STEP_MS = 300;
const frame = () => new Promise(requestAnimationFrame);

/** Texts that the reader unfolded, newest last; a message that was just sent is rendered anew. */
const unfolded = new Set();
const UNFOLDED = 8;

/** A stored text. A long one is folded until the reader unfolds it. */
class StoredText extends View {
  static properties = {
    text: { attribute: false },
    /** How many characters are shown at first. */
    most: { attribute: false },
    _isFolded: { state: true },
    _isBusy: { state: true },
  };

  constructor() {
    super();
    this.text = "";
    this.most = Infinity;
    this._isFolded = false;
    this._isBusy = false;
    /** @type {ChildNode[]} */
    this._nodes = [];
  }

  /** @param {import("../../vendor/lit/lit.js").PropertyValues<StoredText>} changed */
  willUpdate(changed) {
    this.dataset.testid = "message-body";
    if (!changed.has("text") && !changed.has("most")) return;
    this._isFolded = this.text.length > this.most;
    this._isBusy = false;
    if (this._isFolded && unfolded.has(this.text)) void this._drawAll();
    this._nodes = Array.from(
      drawn(this._isFolded ? beginningOf(this.text, this.most) : this.text).childNodes,
    );
  }

  render() {
    const words = this._isBusy
      ? gettext("Showing all…")
      : interpolate(gettext("Show all (%(n)s characters)"), {
          n: new Intl.NumberFormat(locale).format(1000 * Math.ceil(this.text.length / 1000)),
        });
    return html`<div class="markdown ${this._isFolded ? "is-folded" : ""}" dir="auto"
        >${this._nodes}</div
      >
      ${
        this._isFolded
          ? html`<button
              type="button"
              class="button show-all"
              data-testid="show-all"
              ?disabled=${this._isBusy}
              @click=${() => this._showAll()}
            >
              ${glyph("down")}<span>${words}</span>
            </button>`
          : ""
      }`;
  }

  async _showAll() {
    unfolded.add(this.text);
    if (unfolded.size > UNFOLDED) unfolded.delete(unfolded.values().next().value);
    if (!(await this._drawAll())) return;
    await this.updateComplete;
    // The button is gone: move the focus to where the text continues.
    const place = /** @type {HTMLElement} */ (this.querySelector(".markdown"));
    place.tabIndex = -1;
    place.focus({ preventScroll: true });
  }

  /** Renders the whole text, and returns whether it is still the one to be shown. */
  async _drawAll() {
    this._isBusy = true;
    const { text } = this;
    const box = document.createElement("div");
    const growing = new GrowingText(box);
    for (let to = STEP_CHARS; ; to += STEP_CHARS) {
      await frame();
      const started = performance.now();
      growing.show(text.slice(0, to), to < text.length);
      if (to >= text.length) break;
      if (performance.now() - started > STEP_MS) {
        growing.rest(text);
        break;
      }
    }
    if (this.text !== text) return false;
    this._nodes = Array.from(box.childNodes);
    this._isFolded = false;
    return true;
  }
}
customElements.define("stored-text", StoredText);

/** A growing text, whose content Lit does not manage. */
class LiveText extends View {
  static properties = {
    text: { attribute: false },
    grows: { attribute: false },
  };

  constructor() {
    super();
    this.text = "";
    this.grows = false;
    /** @type {GrowingText|null} */
    this._growing = null;
  }

  willUpdate() {
    this.className = `live-text ${this.grows ? "is-growing" : ""}`;
    this.dataset.testid = "message-body";
  }

  render() {
    return html`<div class="markdown" dir="auto"></div>`;
  }

  updated() {
    this._growing ||= new GrowingText(/** @type {HTMLElement} */ (this.firstElementChild));
    this._growing.show(this.text, this.grows);
  }
}
customElements.define("live-text", LiveText);
