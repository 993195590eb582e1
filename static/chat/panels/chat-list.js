/** The list of chats: members, last message, time, unread count, members online. */

import { inCallText } from "../calls/in-call.js";
import { calls, client, me, page, store } from "../context.js";
import { folded } from "../text/folding.js";
import { shortTime } from "../text/time.js";
import { previewOf } from "../store/removal.js";
import { Selected } from "../store/store.js";
import { unreadOf } from "../notifications/rules.js";
import { people } from "../person/looks.js";
import { View, faceOfChat, glyph } from "../view.js";
import { html, nothing, repeat } from "../../vendor/lit/lit.js";
import { sectionOf, seen } from "./chat-acts.js";
import "./invitation-list.js";
import { beginningOf } from "../markdown/plain.js";
import { gettext, interpolate, ngettext } from "../words.js";

const FILTER_FROM = 8;
const PREVIEW_CHARS = 120;

/**
 * The preview of a message without text; an agent may not have had time to write any.
 * @param {Chat} chat
 */
function wordless({ preview, participants }) {
  return participants.some((p) => p.kind === "agent" && p.name === preview?.name)
    ? "…"
    : gettext("sent a file");
}

/**
 * The last message and its author, each with its own direction: an Arabic name must not reverse an
 * English text.
 * @param {Chat} chat
 */
function preview(chat) {
  const last = previewOf(chat, page.state);
  if (!last) return html`<span class="chat-preview">${gettext("No messages yet")}</span>`;
  const { name, content } = last;
  const author = name === me.username ? gettext("You") : people.nameOf(name);
  return html`<span class="chat-preview is-said"
    ><span><bdi>${author}</bdi>: </span
    ><span dir="auto">${beginningOf(content, PREVIEW_CHARS) || wordless(chat)}</span></span
  >`;
}

/** The sections of the list in order. @type {Record<string, string>} */
const SECTIONS = {
  pinned: gettext("Pinned"),
  people: gettext("People"),
  groups: gettext("Groups"),
  agents: gettext("Agents"),
  archived: gettext("Archived"),
};

const skeleton = html`<li class="skeleton">
  <i></i><span><b></b><b></b></span>
</li>`;

/** @param {number} count */
const shown99 = (count) => (count > 99 ? "99+" : count);

/** @typedef {import("../store/chat.js").Chat} Chat */

/** Fires (bubbling) `open-chat` (detail: chat id), `open-threads` and `new-chat`. */
export class ChatList extends View {
  static properties = {
    _selected: { state: true },
    _wanted: { state: true },
    _error: { state: true },
  };

  constructor() {
    super();
    /** The id of the chat that is open. */
    this._selected = "";
    this._wanted = "";
    this._error = "";
    /** @type {Element|null} the element focused before rendering */
    this._had = null;
    this._removing = new Selected(this, page, ({ removing }) => removing);
  }

  connectedCallback() {
    super.connectedCallback();
    store.addEventListener("change", () => this.requestUpdate());
    people.addEventListener("change", () => this.requestUpdate());
    calls.addEventListener("change", () => this.requestUpdate());
    store.addEventListener("load-error", (event) => {
      if (!store.hasList && client.state.phase !== "refused")
        this._error = /** @type {CustomEvent<Error>} */ (event).detail.message;
    });
  }

  /** @param {string} chatId of the chat that is open */
  select(chatId) {
    this._selected = chatId;
  }

  willUpdate() {
    this._had = this.contains(document.activeElement) ? document.activeElement : null;
  }

  updated() {
    // Moving an element up in the list removes its focus.
    if (
      this._had instanceof HTMLElement &&
      this._had.isConnected &&
      document.activeElement === document.body
    )
      this._had.focus({ preventScroll: true });
  }

  render() {
    const isFilterShown = store.hasList && store.list.length >= FILTER_FROM;
    return html` <div class="chat-list-head">
        <h2>${gettext("Chats")}</h2>
        <button
          type="button"
          class="icon-button"
          aria-label=${gettext("Threads")}
          title=${gettext("Threads you follow")}
          data-testid="threads"
          @click=${() => this._fire("open-threads")}
        >
          ${glyph("thread")}
        </button>
        <button
          type="button"
          class="icon-button"
          aria-label=${gettext("New chat")}
          title=${gettext("New chat")}
          data-testid="new-chat"
          @click=${() => this._fire("new-chat")}
        >
          ${glyph("add")}
        </button>
      </div>
      <input
        type="search"
        class="field"
        placeholder=${gettext("Find a chat")}
        aria-label=${gettext("Find a chat")}
        ?hidden=${!isFilterShown}
        @input=${(/** @type {Event} */ event) => {
          this._wanted = /** @type {HTMLInputElement} */ (event.target).value.trim();
        }}
      />
      <invitation-list></invitation-list>
      <nav aria-label=${gettext("Chats")}>
        <ul class="chat-items" aria-busy=${store.hasList || this._error ? nothing : "true"}>
          ${this._items()}
        </ul>
      </nav>`;
  }

  _items() {
    if (!store.hasList) return this._error ? this._failed() : [skeleton, skeleton, skeleton];
    const chats = store.list;
    if (chats.length === 0) return this._none();
    const query = folded(this._wanted);
    const matches = chats.filter((chat) => folded(store.nameOf(chat)).includes(query));
    if (matches.length === 0)
      return html`<li class="chat-none">${gettext("No matching chats.")}</li>`;
    const sections = Object.keys(SECTIONS)
      .map((name) => ({ name, chats: matches.filter((chat) => sectionOf(chat) === name) }))
      .filter((one) => one.chats.length > 0);
    return repeat(
      sections,
      ({ name }) => name,
      (one) => this._section(one.name, one.chats, sections.length > 1),
    );
  }

  /**
   * Chats of one kind, with a heading if there are several kinds.
   * @param {string} name
   * @param {Chat[]} chats
   * @param {boolean} isNamed
   */
  _section(name, chats, isNamed) {
    const items = html`<ul class="chat-items" aria-label=${SECTIONS[name]}>
      ${repeat(
        chats,
        ({ id }) => id,
        (chat) => this._item(chat),
      )}
    </ul>`;
    if (name === "archived")
      return html`<li>
        <details class="chat-archive" data-testid="archived">
          <summary>${glyph("chevron")}${SECTIONS.archived} (${chats.length})</summary>
          ${items}
        </details>
      </li>`;
    return html`<li data-section=${name}>
      ${isNamed ? html`<h3 class="chat-section">${SECTIONS[name]}</h3>` : nothing}${items}
    </li>`;
  }

  /** @param {Chat} chat */
  _item(chat) {
    const name = store.nameOf(chat);
    const others = store.others(chat);
    const online = others.some((p) => p.kind === "user" && p.online);
    const unread = unreadOf(chat);
    const call = calls.of(chat.id);
    return html`<li
      class="chat-row"
      @contextmenu=${(/** @type {MouseEvent} */ event) => this._menu(event, chat)}
    >
      <a
        href="/chats/${chat.id}"
        class="chat-item"
        data-testid="chat-item"
        data-chat=${chat.id}
        aria-current=${chat.id === this._selected ? "page" : nothing}
        @click=${(/** @type {MouseEvent} */ event) => this._choose(event, chat.id)}
      >
        ${faceOfChat(chat, name, others, online)}
        <span class="chat-item-main">
          <span class="chat-item-top"
            ><b dir="auto">${name}</b>${
              chat.muted
                ? html`<span class="muted-mark" title=${gettext("Muted")}
                    >${glyph("muted")}<span class="visually-hidden">${gettext("muted")}</span></span
                  >`
                : ""
            }<time datetime=${chat.latest_at}>${shortTime(Date.parse(chat.latest_at))}</time></span
          >
          <span class="chat-item-sub"
            >${
              call
                ? html`<span class="chat-preview call-fact" dir="auto" data-testid="in-call"
                    >${glyph("phone")}${inCallText(call)}</span
                  >`
                : preview(chat)
            }${
              (chat.unread_replies ?? 0) > 0
                ? html`<span
                    class="unread is-replies"
                    data-testid="unread-replies"
                    aria-label=${interpolate(gettext("%(count)s new in threads"), {
                      count: chat.unread_replies ?? 0,
                    })}
                    title=${gettext("New replies in threads you follow")}
                    >${glyph("thread")}${shown99(chat.unread_replies ?? 0)}</span
                  >`
                : ""
            }${
              unread.mentions > 0
                ? html`<span
                    class="unread is-mention"
                    role="img"
                    data-testid="unread-mentions"
                    aria-label=${interpolate(
                      ngettext("%(n)s mention of you", "%(n)s mentions of you", unread.mentions),
                      { n: unread.mentions },
                    )}
                    title=${gettext("Messages that mention you")}
                    >@${shown99(unread.mentions)}</span
                  >`
                : ""
            }${
              chat.marked_unread && !unread.shown
                ? html`<span
                    class="unread is-marked-unread"
                    role="img"
                    data-testid="marked-unread"
                    aria-label=${gettext("Marked as unread")}
                  ></span>`
                : ""
            }${
              unread.shown > 0 && !(chat.muted && unread.mentions)
                ? html`<span
                    class="unread ${unread.counts ? "" : "is-muted"}"
                    role="img"
                    aria-label=${interpolate(gettext("%(n)s unread"), { n: unread.shown })}
                    >${shown99(unread.shown)}</span
                  >`
                : ""
            }</span
          > </span
        >${online ? html`<span class="visually-hidden">${gettext("online")}</span>` : ""}</a
      ><button
        type="button"
        class="icon-button chat-more"
        aria-label=${interpolate(gettext("Actions for %(name)s"), { name })}
        title=${gettext("Actions")}
        aria-haspopup="menu"
        aria-expanded="false"
        data-testid="chat-more"
        @click=${(/** @type {MouseEvent} */ event) => this._menu(event, chat)}
      >
        ${glyph("more")}
      </button>
    </li>`;
  }

  /** @param {MouseEvent} event @param {Chat} chat */
  _menu(event, chat) {
    event.preventDefault();
    const row = /** @type {HTMLElement} */ (event.currentTarget).closest(".chat-row");
    row
      ?.querySelector(".chat-more")
      ?.dispatchEvent(new CustomEvent("chat-menu", { bubbles: true, detail: chat }));
  }

  _none() {
    return html`<li class="chat-none">
      <p>${gettext("You have no chats yet.")}</p>
      <button type="button" class="button button-primary" @click=${() => this._fire("new-chat")}>
        ${gettext("Start a chat")}
      </button>
    </li>`;
  }

  _failed() {
    return html`<li class="chat-none">
      <p>${gettext("Couldn't load your chats.")} ${this._error}</p>
      <button type="button" class="button" @click=${() => store.refresh()}>
        ${gettext("Try again")}
      </button>
    </li>`;
  }

  /** @param {MouseEvent} event @param {string} chatId */
  _choose(event, chatId) {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    seen(chatId);
    this._fire("open-chat", chatId);
  }

  /** @param {string} type @param {string} [detail] */
  _fire(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { bubbles: true, detail }));
  }
}
customElements.define("chat-list", ChatList);
