/** The people who are typing. Each signal lasts a few seconds; the typing client repeats it. */

import { me } from "../context.js";
import { people } from "../person/looks.js";
import { View, dots } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

const LASTS_MS = 6_000;

export class TypingLine extends View {
  constructor() {
    super();
    /** @type {Map<string, {name: string, timer: number}>} */
    this._typists = new Map();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    for (const { timer } of this._typists.values()) clearTimeout(timer);
  }

  /** @param {{user_id: string, username: string, is_typing: boolean}} event */
  typed({ user_id: id, username, is_typing: isTyping }) {
    if (String(id) === me.id) return;
    this.stopped(id);
    if (!isTyping) return;
    const timer = setTimeout(() => this.stopped(id), LASTS_MS);
    this._typists.set(String(id), { name: username, timer });
    this.requestUpdate();
  }

  /** @param {string} id of a person */
  stopped(id) {
    clearTimeout(this._typists.get(String(id))?.timer);
    this._typists.delete(String(id));
    this.requestUpdate();
  }

  willUpdate() {
    this.className = `typing-line ${this._typists.size ? "is-on" : ""}`;
    this.dataset.testid = "typing";
  }

  render() {
    const names = Array.from(this._typists.values(), ({ name }) => people.nameOf(name));
    if (names.length === 0) return "";
    const [first, second] = names;
    const text =
      names.length > 2
        ? gettext("Several people are typing")
        : interpolate(
            second
              ? gettext("%(first)s and %(second)s are typing")
              : gettext("%(first)s is typing"),
            { first, second },
          );
    return html`<span class="dots is-small">${dots}</span> ${text}`;
  }
}
customElements.define("typing-line", TypingLine);
