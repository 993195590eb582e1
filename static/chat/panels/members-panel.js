/** The members of the open chat: people with their presence, agents with when they answer. */

import { api, me, store } from "../context.js";
import { announce } from "../dom.js";
import { PAYERS, ownsChat, priceText } from "../price.js";
import { people } from "../person/looks.js";
import { View, face, glyph } from "../view.js";
import { html, repeat } from "../../vendor/lit/lit.js";

const TRIGGERS = {
  mention: "Answers when mentioned",
  always: "Answers every message",
  keyword: "Answers mentions and keywords",
  never: "Listens only",
};

/**
 * Fires (bubbling) `add-members`, `set-payer` and `chat-settings` (detail: the chat), `open-member`
 * (detail: the chat and the member), and `toggle-members`.
 */
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
        ${chat.description ? html`<p dir="auto">${chat.description}</p>` : ""}
        ${chat.agents_quiet ? html`<p class="quiet" data-testid="agents-quiet">The agents are quiet. <button type="button" class="link" @click=${() => this._quiet(chat, false)}>Let them answer</button></p>` : ""}
        ${this._group("People", of("user"))}${this._group("Agents", of("agent"))}${this._payer(chat)}
        <button type="button" class="button" @click=${() => this._fire("add-members", chat)}>${glyph("add")}Add people or agents</button>
        ${!chat.agents_quiet && of("agent").length ? html`<button type="button" class="button" data-testid="quiet-agents" title="No agent answers until a member ends this" @click=${() => this._quiet(chat, true)}>${glyph("stop")}Quiet all agents</button>` : ""}
        <button type="button" class="button" data-testid="chat-settings-button" @click=${() => this._fire("chat-settings", chat)}>${glyph("edit")}Chat settings</button>
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
      ? [TRIGGERS[member.trigger], priceText(member.pricing), member.budget && `budget $${member.budget} ${member.budget_period === "total" ? "in total" : "a day"}`]
      : [member.display_name && `@${member.name}`, member.online || isMe ? "Online" : "Offline", member.role !== "member" && member.role, member.status_text];
    return html`<li>${face(member.name, member.kind, member.online || isMe)}<span class="picker-text"><b dir="auto">${member.kind === "user" ? people.nameOf(member.name) : member.name}${isMe ? " (you)" : ""}</b><small>${
      facts.filter(Boolean).join(" · ")}</small></span>
      <button type="button" class="icon-button" aria-label=${`Settings of ${member.name}`} title=${`Settings of ${member.name}`} @click=${() => this._fire("open-member", { chat: store.get(this._chatId), member })}>${glyph("more")}</button></li>`;
  }

  async _quiet(chat, isQuiet) {
    try {
      await api.send("PATCH", `/chats/${encodeURIComponent(chat.id)}`, { agents_quiet: isQuiet });
      await store.reload(chat.id);
      announce(isQuiet ? "The agents are quiet." : "The agents answer again.");
    } catch (problem) {
      if (problem.name !== "ApiError") throw problem;
      announce(problem.message);
    }
  }

  _fire(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { bubbles: true, detail }));
  }
}
customElements.define("members-panel", MembersPanel);
