/** Who is in the open chat: people with their presence, agents with when they answer. */

import { me, store } from "./context.js";
import { avatar, h, icon, iconButton } from "./dom.js";

const TRIGGERS = {
  mention: "Answers when mentioned",
  always: "Answers every message",
  never: "Listens only",
};

/** Fires (bubbling) `add-members` (detail: the chat) and `toggle-members`. */
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
    this.replaceChildren(
      h(
        "div", { class: "panel-head" }, h("h2", {}, "Members"),
        iconButton("close", "Close members", { onclick: () => this._fire("toggle-members") }),
      ),
      h(
        "div", { class: "panel-body" },
        this._group("People", of("user")), this._group("Agents", of("agent")),
        h("button", { type: "button", class: "button", onclick: () => this._fire("add-members", chat) }, icon("add"), "Add people or agents"),
      ),
    );
  }

  _group(name, members) {
    if (members.length === 0) return null;
    return h("section", {}, h("h3", {}, name), h("ul", { class: "member-list" }, members.map((member) => this._member(member))));
  }

  _member(member) {
    const isMe = member.kind === "user" && String(member.id) === me.id;
    const facts = member.kind === "agent"
      ? [TRIGGERS[member.trigger]]
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
