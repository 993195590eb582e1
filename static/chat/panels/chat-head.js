/**
 * The header of the open chat: its name, its members, and the buttons for search, pins, money and
 * members.
 */

import { calls, me, store } from "../context.js";
import { inCallText } from "../calls/in-call.js";
import { canCall } from "../calls/microphone.js";
import { View, face, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import "../actions/pinned-list.js";
import "./balance-chip.js";
import { gettext, interpolate, ngettext } from "../words.js";

const FACES = 4;

/**
 * Fires (bubbling) `open-sidebar`, `open-search`, `toggle-members`, and `ask-to-call` with the
 * chat.
 */
class ChatHead extends View {
  static properties = {
    chatId: { attribute: false },
    membersShown: { attribute: false },
  };

  constructor() {
    super();
    this.chatId = "";
    this.membersShown = false;
    this._onChats = () => this.requestUpdate();
  }

  connectedCallback() {
    super.connectedCallback();
    store.addEventListener("change", this._onChats);
    calls.addEventListener("change", this._onChats);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    store.removeEventListener("change", this._onChats);
    calls.removeEventListener("change", this._onChats);
  }

  render() {
    const chat = this.chatId ? store.get(this.chatId) : undefined;
    return html`<header class="chat-head ${this.chatId ? "" : "is-bare"}">
      <button
        type="button"
        class="icon-button menu-button"
        aria-label=${gettext("Show chats")}
        title=${gettext("Show chats")}
        @click=${() => this._fire("open-sidebar")}
      >
        ${glyph("back")}
      </button>
      <div class="chat-title">
        ${
          chat
            ? html`<h1 dir="auto">${store.nameOf(chat)}</h1>
                <p>${this._inCall(chat)}${this._facts(chat)}</p>`
            : nothing
        }
      </div>
      ${
        chat
          ? html`<button
                type="button"
                class="icon-button search-button"
                aria-label=${gettext("Search")}
                title=${gettext("Search (Ctrl+Shift+F)")}
                aria-keyshortcuts="Control+Shift+F"
                data-testid="search"
                @click=${() => this._fire("open-search")}
              >
                ${glyph("search")}</button
              ><pinned-list></pinned-list>`
          : nothing
      }
      ${chat ? this._call(chat) : nothing}
      <balance-chip></balance-chip>
      ${chat ? this._members(chat) : nothing}
    </header>`;
  }

  /** @param {import("../store/chat.js").Chat} chat */
  _facts({ home, participants }) {
    const agents = participants.filter((member) => member.kind === "agent").length;
    const people = participants.filter((member) => member.kind === "user");
    const online = people.filter((member) => member.online || String(member.id) === me.id).length;
    return [
      home && interpolate(gettext("on %(server)s"), { server: home }),
      interpolate(ngettext("%(n)s person", "%(n)s people", people.length), { n: people.length }),
      agents && interpolate(ngettext("%(n)s agent", "%(n)s agents", agents), { n: agents }),
      online && interpolate(ngettext("%(n)s online", "%(n)s online", online), { n: online }),
    ]
      .filter(Boolean)
      .join(" · ");
  }

  /** Who is in the call of the chat. @param {import("../store/chat.js").Chat} chat */
  _inCall({ id }) {
    const call = calls.of(id);
    return call
      ? html`<span class="call-fact" data-testid="in-call"
            >${glyph("phone")}${inCallText(call)}</span
          >
          · `
      : nothing;
  }

  /**
   * The button that starts a call, or joins the ongoing one; shown if the browser supports calls
   * and another person, or an agent that takes calls, is in the chat.
   * @param {import("../store/chat.js").Chat} chat
   */
  _call(chat) {
    const isIn = calls.active?.chatId === chat.id;
    const others = store.others(chat);
    if (isIn || !canCall()) return nothing;
    if (chat.home || !others.some(({ kind, takes_calls: takes }) => takes ?? kind === "user"))
      return this._noCall(chat, others);
    const label = calls.of(chat.id) ? gettext("Join the call") : gettext("Call");
    return html`<button
      type="button"
      class="icon-button call-button ${calls.of(chat.id) ? "is-live" : ""}"
      aria-label=${label}
      title=${label}
      data-testid="call"
      @click=${() => this._startCall(chat)}
    >
      ${glyph("phone")}
    </button>`;
  }

  /**
   * Explains why no call is possible if the chat, or all other people, are on another server.
   * @param {import("../store/chat.js").Chat} chat
   * @param {import("../store/chat.js").Participant[]} others
   */
  _noCall({ home }, others) {
    if (!home && !others.some(({ kind }) => kind === "user")) return nothing;
    const reason = home
      ? interpolate(gettext("You can't call from here: this chat is hosted on %(server)s."), {
          server: home,
        })
      : gettext("You can't call from here: calls don't reach people on other servers.");
    return html`<button
      type="button"
      class="icon-button call-button"
      aria-disabled="true"
      aria-label=${reason}
      title=${reason}
      data-testid="no-call"
    >
      ${glyph("phone")}
    </button>`;
  }

  /**
   * Starts a call; asks first if it would ring for several people.
   * @param {import("../store/chat.js").Chat} chat
   */
  _startCall(chat) {
    const isAsked =
      !calls.of(chat.id) && store.others(chat).filter(({ kind }) => kind === "user").length > 1;
    if (isAsked)
      this.dispatchEvent(new CustomEvent("ask-to-call", { bubbles: true, detail: chat }));
    else calls.start(chat.id);
  }

  /** @param {import("../store/chat.js").Chat} chat */
  _members(chat) {
    return html`<button
      type="button"
      class="members-button"
      data-testid="members"
      aria-controls="members"
      aria-expanded=${String(this.membersShown)}
      aria-label=${interpolate(gettext("Members: %(facts)s"), { facts: this._facts(chat) })}
      @click=${() => this._fire("toggle-members")}
    >
      <span class="avatar-stack"
        >${store
          .others(chat)
          .slice(0, FACES)
          .map((member) => face(member.name, member.kind, member.online))}</span
      >${glyph("members")}
    </button>`;
  }

  /** @param {string} type */
  _fire(type) {
    this.dispatchEvent(new Event(type, { bubbles: true }));
  }
}
customElements.define("chat-head", ChatHead);
