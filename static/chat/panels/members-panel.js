/** The members of the open chat: people with their presence, agents with when they answer. */

import { me, store } from "../context.js";
import { PAYERS, ownsChat, priceText } from "../price.js";
import { View, face, glyph } from "../view.js";
import { html, repeat } from "../../vendor/lit/lit.js";

const TRIGGERS = {
  mention: "Answers when mentioned",
  always: "Answers every message",
  never: "Listens only",
};

/** Fires (bubbling) `add-members` and `set-payer` (detail: the chat), and `toggle-members`. */
class MembersPanel extends View {
  static properties = { _chatId: { state: true } };

  connectedCallback() {
    super.connectedCallback();
    this.setAttribute("role", "complementary");
    this.setAttribute("aria-label", "Members");
    this._onChats = () => this.requestUpdate();
    store.addEventListener("change", this._onChats);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    store.removeEventListener("change", this._onChats);
  }

  /** @param {string} chatId */
  open(chatId) {
    this._chatId = chatId;
  }

  render() {
    const chat = store.get(this._chatId);
    if (!chat) return "";
    const of = (kind) => chat.participants.filter((participant) => participant.kind === kind);
    return html`
      <div class="panel-head">
        <h2>Members</h2>
        <button type="button" class="icon-button" aria-label="Close members" title="Close members" @click=${() => this._fire("toggle-members")}>${glyph("close")}</button>
      </div>
      <div class="panel-body">
        ${this._group("People", of("user"))}${this._group("Agents", of("agent"))}${this._payer(chat)}
        <button type="button" class="button" @click=${() => this._fire("add-members", chat)}>${glyph("add")}Add people or agents</button>
      </div>`;
  }

  _group(name, members) {
    if (members.length === 0) return "";
    return html`<section><h3>${name}</h3><ul class="member-list">${repeat(members, ({ kind, id }) => `${kind} ${id}`, (member) => this._member(member))}</ul></section>`;
  }

  /** The payer, where an agent has a price; an owner may change it. */
  _payer(chat) {
    if (!chat.participants.some((member) => member.pricing)) return "";
    const change = html`<button type="button" class="button payer-button" @click=${() => this._fire("set-payer", chat)}>${glyph("wallet")}Change, or fill the pool</button>`;
    return html`<section data-testid="payer"><h3>Who pays</h3><p>${PAYERS[chat.payer]}</p>${ownsChat(chat) ? change : ""}</section>`;
  }

  _member(member) {
    const isMe = member.kind === "user" && String(member.id) === me.id;
    const facts = member.kind === "agent"
      ? [TRIGGERS[member.trigger], priceText(member.pricing)]
      : [member.online || isMe ? "Online" : "Offline", member.role === "owner" && "owner"];
    return html`<li>${face(member.name, member.kind, member.online || isMe)}<span class="picker-text"><b>${member.name}${isMe ? " (you)" : ""}</b><small>${
      facts.filter(Boolean).join(" · ")}</small></span></li>`;
  }

  _fire(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { bubbles: true, detail }));
  }
}
customElements.define("members-panel", MembersPanel);
