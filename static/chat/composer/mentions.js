/** The menu that opens behind "@": agents first, then people of the chat. */

import { announce, avatar, h } from "../dom.js";
import { priceText } from "../price.js";

const SHOWN = 8;

export class MentionMenu {
  /** @param {HTMLTextAreaElement} text */
  constructor(text) {
    this._text = text;
    /** @type {import("../chat-store.js").Participant[]} */
    this.members = [];
    this._found = [];
    this._active = 0;
    this.element = h("ul", { class: "mention-menu", id: "mention-menu", role: "listbox", "aria-label": "Mention", hidden: true });
    text.setAttribute("aria-autocomplete", "list");
    text.setAttribute("aria-controls", "mention-menu");
    text.addEventListener("blur", () => this.close());
  }

  /** Look for a mention before the cursor. */
  update() {
    const before = this._text.value.slice(0, this._text.selectionStart);
    const match = /(?:^|[\s(])@([\w.-]*)$/.exec(before);
    if (!match) {
      this.close();
      return;
    }
    const typed = match[1].toLowerCase();
    const wasOpen = !this.element.hidden;
    this._from = before.length - match[1].length;
    this._found = this.members
      .filter((member) => member.name.toLowerCase().startsWith(typed))
      .sort((a, b) => a.kind.localeCompare(b.kind) || a.name.localeCompare(b.name))
      .slice(0, SHOWN);
    this._active = 0;
    if (this._found.length === 0) this.close();
    else this._show();
    if (!wasOpen && this._found.length) announce(`${this._found.length} members match. Use the arrow keys.`);
  }

  /** Handle a key while the menu is open. @returns {boolean} whether it did */
  key(event) {
    if (this.element.hidden) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      this._active = (this._active + step + this._found.length) % this._found.length;
      this._show();
    } else if (event.key === "Enter" || event.key === "Tab") this._choose(this._found[this._active]);
    else if (event.key === "Escape") this.close();
    else return false;
    return true;
  }

  close() {
    this.element.hidden = true;
    this._text.removeAttribute("aria-activedescendant");
  }

  _show() {
    this.element.replaceChildren(...this._found.map((member, i) => this._option(member, i)));
    this.element.hidden = false;
    this._text.setAttribute("aria-activedescendant", `mention-${this._active}`);
  }

  _option(member, i) {
    return h(
      "li",
      {
        role: "option", id: `mention-${i}`, "aria-selected": String(i === this._active),
        // Before the blur that would close the menu.
        onmousedown: (e) => {
          e.preventDefault();
          this._choose(member);
        },
      },
      avatar(member.name, member.kind),
      h("span", {}, member.name),
      h("small", {}, member.kind === "agent" ? priceText(member.pricing) || "agent" : "person"),
    );
  }

  _choose(member) {
    this.close();
    this._text.setRangeText(`${member.name} `, this._from, this._text.selectionStart, "end");
    this._text.dispatchEvent(new Event("input"));
  }
}
