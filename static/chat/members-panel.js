/** The members of the open chat: people with their presence, agents with when they answer. */

import { me, store } from "./context.js";
import { avatar, h, icon, iconButton, renew } from "./dom.js";
import { PAYERS, ownsChat, priceText } from "./price.js";

const TRIGGERS = {
  mention: "Answers when mentioned",
  always: "Answers every message",
  never: "Listens only",
};

/** Fires (bubbling) `add-members` and `set-payer` (detail: the chat), and `toggle-members`. */
class MembersPanel extends HTMLElement {
  connectedCallback() {
    this.setAttribute("role", "complementary");
    this.setAttribute("aria-label", "Members");
    store.addEventListener("change", () => this._show());
  }

  /** @param {string} chatId */
  open(chatId) {
    this._chatId = chatId;
    this._show();
  }

  _show() {
    const chat = store.get(this._chatId);
    if (!chat) {
      this.replaceChildren();
      return;
    }
    const of = (kind) => chat.participants.filter((participant) => participant.kind === kind);
    renew(
      this,
      h(
        "div", { class: "panel-head" }, h("h2", {}, "Members"),
        iconButton("close", "Close members", { onclick: () => this._fire("toggle-members") }),
      ),
      h(
        "div", { class: "panel-body" },
        this._group("People", of("user")), this._group("Agents", of("agent")), this._payer(chat),
        h("button", { type: "button", class: "button", onclick: () => this._fire("add-members", chat) }, icon("add"), "Add people or agents"),
      ),
    );
  }

  _group(name, members) {
    if (members.length === 0) return null;
    return h("section", {}, h("h3", {}, name), h("ul", { class: "member-list" }, members.map((member) => this._member(member))));
  }

  /** The payer, where an agent has a price; an owner may change it. */
  _payer(chat) {
    if (!chat.participants.some((member) => member.pricing)) return null;
    return h(
      "section", { "data-testid": "payer" }, h("h3", {}, "Who pays"), h("p", {}, PAYERS[chat.payer]),
      ownsChat(chat) && h("button", { type: "button", class: "button payer-button", onclick: () => this._fire("set-payer", chat) }, icon("wallet"), "Change, or fill the pool"),
    );
  }

  _member(member) {
    const isMe = member.kind === "user" && String(member.id) === me.id;
    const facts = member.kind === "agent"
      ? [TRIGGERS[member.trigger], priceText(member.pricing)]
      : [member.online || isMe ? "Online" : "Offline", member.role === "owner" && "owner"];
    return h(
      "li", {}, avatar(member.name, member.kind, member.online || isMe),
      h("span", { class: "picker-text" }, h("b", {}, isMe ? `${member.name} (you)` : member.name), h("small", {}, facts.filter(Boolean).join(" · "))),
    );
  }

  _fire(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { bubbles: true, detail }));
  }
}
customElements.define("members-panel", MembersPanel);
