/** The people who type. Each sign lasts a few seconds: the typing client repeats it. */

import { me } from "./context.js";
import { h } from "./dom.js";

const LASTS_MS = 6_000;

class TypingLine extends HTMLElement {
  connectedCallback() {
    this.className = "typing-line";
    this.dataset.testid = "typing";
    /** @type {Map<string, {name: string, timer: number}>} */
    this._typists = new Map();
  }

  disconnectedCallback() {
    for (const { timer } of this._typists.values()) clearTimeout(timer);
  }

  /** @param {{user_id: string, username: string, is_typing: boolean}} event */
  update({ user_id: id, username, is_typing: isTyping }) {
    if (String(id) === me.id) return;
    this.stopped(id);
    if (!isTyping) return;
    const timer = setTimeout(() => this.stopped(id), LASTS_MS);
    this._typists.set(String(id), { name: username, timer });
    this._show();
  }

  stopped(id) {
    clearTimeout(this._typists.get(String(id))?.timer);
    this._typists.delete(String(id));
    this._show();
  }

  _show() {
    const names = Array.from(this._typists.values(), ({ name }) => name);
    this.classList.toggle("is-on", names.length > 0);
    if (names.length === 0) this.replaceChildren();
    else {
      const who = names.length > 2 ? "Several people are" : `${names.join(" and ")} ${names.length > 1 ? "are" : "is"}`;
      this.replaceChildren(h("span", { class: "dots is-small" }, h("i"), h("i"), h("i")), ` ${who} typing`);
    }
  }
}
customElements.define("typing-line", TypingLine);
