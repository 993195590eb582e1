/** The chats: members, the last words, when, how many unread, members online. */

import { client, store } from "./context.js";
import { avatar, h, iconButton, renew } from "./dom.js";
import { shortTime } from "./time.js";

const FILTER_FROM = 8;

/** The beginning of a message on one line, without the marks of markdown. */
function plain(text) {
  return text.replace(/```\w*|\*\*|~~|^#+ /gm, "").replace(/\s+/g, " ").slice(0, 120);
}

/** What stands for a message without words; an agent's may have had no time for any. */
function wordless({ preview, participants }) {
  return participants.some((p) => p.kind === "agent" && p.name === preview.name) ? "…" : "sent a file";
}

/** Fires (bubbling) `open-chat` (detail: chat id) and `new-chat`. */
class ChatList extends HTMLElement {
  connectedCallback() {
    this._filter = h("input", { type: "search", class: "field", placeholder: "Find a chat", "aria-label": "Find a chat", hidden: true });
    this._filter.addEventListener("input", () => this._show());
    this._items = h("ul", { class: "chat-items" });
    const head = h(
      "div", { class: "chat-list-head" }, h("h2", {}, "Chats"),
      iconButton("add", "New chat", { "data-testid": "new-chat", onclick: () => this._fire("new-chat") }),
    );
    this.append(head, this._filter, h("nav", { "aria-label": "Chats" }, this._items));
    this._skeleton();
    store.addEventListener("change", () => this._show());
    store.addEventListener("load-error", (e) => this._showError(e.detail));
  }

  /** @param {string} chatId of the chat that is open */
  select(chatId) {
    this._selected = chatId;
    this._show();
  }

  _skeleton() {
    const line = () => h("li", { class: "skeleton" }, h("i"), h("span", {}, h("b"), h("b")));
    this._items.replaceChildren(line(), line(), line());
    this._items.setAttribute("aria-busy", "true");
  }

  _show() {
    if (!store.loaded) return;
    this._items.removeAttribute("aria-busy");
    const chats = store.list;
    this._filter.hidden = chats.length < FILTER_FROM;
    const wanted = this._filter.value.trim().toLowerCase();
    const shown = chats.filter((chat) => store.nameOf(chat).toLowerCase().includes(wanted));
    // An item is made anew only when it changed.
    const known = new Map(Array.from(this._items.children, (item) => [item.dataset.key, item]));
    renew(this._items, ...shown.map((chat) => this._item(chat, known)));
    if (chats.length === 0) this._items.replaceChildren(this._empty());
    else if (shown.length === 0) this._items.replaceChildren(h("li", { class: "chat-none" }, "No chat has that name."));
  }

  _item(chat, known) {
    const others = store.others(chat);
    const face = others.length === 1 ? others[0] : { name: store.nameOf(chat), kind: "user" };
    const online = others.some((p) => p.kind === "user" && p.online);
    const selected = chat.id === this._selected;
    const words = chat.preview ? `${chat.preview.name}: ${chat.preview.content || wordless(chat)}` : "No messages yet";
    const key = JSON.stringify([chat.id, store.nameOf(chat), words.slice(0, 200), chat.unread, chat.latest_at, online, selected]);
    if (known.has(key)) return known.get(key);
    const unread = chat.unread > 99 ? "99+" : chat.unread;
    const link = h(
      "a",
      {
        href: `/chats/${chat.id}`, class: "chat-item", "data-testid": "chat-item",
        "data-chat": chat.id, "aria-current": selected ? "page" : null,
        onclick: (e) => {
          if (e.metaKey || e.ctrlKey || e.shiftKey) return;
          e.preventDefault();
          this._fire("open-chat", chat.id);
        },
      },
      avatar(face.name, face.kind, online),
      h(
        "span", { class: "chat-item-main" },
        h("span", { class: "chat-item-top" }, h("b", { dir: "auto" }, store.nameOf(chat)), h("time", { datetime: chat.latest_at }, shortTime(Date.parse(chat.latest_at)))),
        h(
          "span", { class: "chat-item-sub" }, h("span", { class: "chat-preview", dir: "auto" }, plain(words)),
          chat.unread > 0 && h("span", { class: "unread", "aria-label": `${chat.unread} unread` }, String(unread)),
        ),
      ),
      online && h("span", { class: "visually-hidden" }, "online"),
    );
    return h("li", { "data-key": key }, link);
  }

  _empty() {
    const button = h("button", { type: "button", class: "button button-primary", onclick: () => this._fire("new-chat") }, "Start a chat");
    return h("li", { class: "chat-none" }, h("p", {}, "You have no chats yet."), button);
  }

  _showError(error) {
    if (store.loaded || client.state.phase === "refused") return;
    const again = h("button", { type: "button", class: "button", onclick: () => store.refresh() }, "Try again");
    this._items.replaceChildren(h("li", { class: "chat-none" }, h("p", {}, `The chats could not be loaded. ${error.message}`), again));
  }

  _fire(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { bubbles: true, detail }));
  }
}
customElements.define("chat-list", ChatList);
