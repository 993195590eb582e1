/** The page: which chat is open, what the address says, which side panels are shown. */

import { checkSignedIn, client, drafts, me, settings, start, store } from "./context.js";
import { avatar } from "./dom.js";
import { Notifier } from "./notifications/notifier.js";
import { unreadOf } from "./notifications/rules.js";
import { people } from "./person/looks.js";
import "./actions/emoji-picker.js";
import "./actions/message-dialogs.js";
import "./actions/message-menu.js";
import "./panels/chat-list.js";
import "./chat-view.js";
import "./panels/connection-banner.js";
import "./panels/members-panel.js";
import "./dialogs/chat-settings-dialog.js";
import "./dialogs/media-viewer.js";
import "./dialogs/member-dialog.js";
import "./dialogs/message-console.js";
import "./dialogs/new-chat-dialog.js";
import "./dialogs/payer-dialog.js";
import "./keyboard/palette.js";
import "./keyboard/shortcuts-dialog.js";
import "./notifications/notification-banner.js";
import "./person/settings-dialog.js";
import "./search/search-dialog.js";

const isNarrow = matchMedia("(max-width: 759px)");
const isWide = matchMedia("(min-width: 1180px)");

class ChatApp extends HTMLElement {
  connectedCallback() {
    this._sidebar = this.querySelector(".sidebar");
    this._main = this.querySelector(".main");
    this._list = this.querySelector("chat-list");
    this._view = this.querySelector("chat-view");
    this._members = this.querySelector("members-panel");
    this._dialog = document.querySelector("new-chat-dialog");
    this._notifier = new Notifier(store, settings, me, people);
    this._showMe();
    this._listen();
    this._membersWanted = isWide.matches;
    client.connect();
    store.refresh();
    this._go(start.chat_id, "replace", messageFromAddress());
  }

  _listen() {
    addEventListener("open-chat", (e) => this._go(e.detail, "push"));
    addEventListener("open-message", ({ detail: { chatId, messageId } }) => this._go(chatId, "push", messageId));
    addEventListener("new-chat", () => this._dialog.startChat());
    addEventListener("add-members", (e) => this._dialog.addTo(e.detail));
    addEventListener("open-member", (e) => document.querySelector("member-dialog").open(e.detail.chat, e.detail.member));
    addEventListener("chat-settings", (e) => document.querySelector("chat-settings-dialog").open(e.detail));
    addEventListener("set-payer", (e) => document.querySelector("payer-dialog").open(e.detail));
    addEventListener("message-menu", (e) => document.querySelector("message-menu").open(e.target, e.detail));
    addEventListener("react", (e) => document.querySelector("emoji-picker").open(e.target, e.detail));
    addEventListener("delete-message", (e) => document.querySelector("delete-dialog").open(e.target, e.detail));
    addEventListener("show-revisions", (e) => document.querySelector("revisions-dialog").open(e.target, e.detail));
    addEventListener("show-versions", (e) => document.querySelector("versions-dialog").open(e.target, e.detail));
    addEventListener("show-frames", (e) => document.querySelector("message-console").open(e.detail));
    addEventListener("open-sidebar", () => {
      this._showSidebar(true);
      this._list.querySelector("[aria-current], .chat-item")?.focus();
    });
    addEventListener("toggle-members", () => {
      this._membersWanted = this._members.hidden;
      const hadFocus = this._members.contains(document.activeElement);
      this._layOut();
      if (!this._members.hidden && !isWide.matches) this._members.querySelector("button")?.focus();
      // What closed the panel went away with it.
      if (this._members.hidden && hadFocus) this._view.querySelector(".members-button")?.focus();
    });
    people.addEventListener("change", () => this._showMe());
    this.querySelector(".settings-button").addEventListener("click", () => dispatchEvent(new CustomEvent("open-settings")));
    addEventListener("pagehide", () => drafts.save());
    this.querySelector("form[action$=logout]")?.addEventListener("submit", () => drafts.forget());
    addEventListener("popstate", () => this._go(idFromAddress(), "none", messageFromAddress()));
    addEventListener("keydown", (e) => this._key(e));
    this._main.addEventListener("pointerdown", (e) => this._closeDrawers(e));
    isNarrow.addEventListener("change", () => this._layOut());
    isWide.addEventListener("change", () => this._layOut());
    document.addEventListener("visibilitychange", () => document.hidden || client.retryNow());
    client.addEventListener("state", ({ detail: { phase, attempt } }) => {
      if (phase === "waiting" && attempt === 2) checkSignedIn();
    });
    store.addEventListener("load-error", ({ detail: { status } }) => {
      if (status === 401 || status === 403) checkSignedIn();
    });
    store.addEventListener("change", () => this._showTitle());
  }

  /** @param {string} chatId "" for none @param {"push"|"replace"|"none"} history @param {string} [messageId] where it is opened */
  _go(chatId, history, messageId = "") {
    this._chatId = chatId;
    const path = chatId ? `/chats/${encodeURIComponent(chatId)}` : "/";
    const address = messageId ? `${path}?message=${encodeURIComponent(messageId)}` : path;
    if (history === "push" && address !== location.pathname + location.search) window.history.pushState(null, "", address);
    if (chatId) this._view.open(chatId, messageId);
    else this._view.showNothing();
    this._list.select(chatId);
    this._notifier.show(chatId);
    this._members.open(chatId);
    this._showSidebar(!chatId);
    this._showTitle();
    // What had the focus is out of reach behind the drawer now.
    if (chatId && isNarrow.matches) this._main.focus({ preventScroll: true });
  }

  _showTitle() {
    const chat = store.get(this._chatId);
    const unread = store.list.map((one) => unreadOf(one)).reduce((sum, { shown, counts }) => sum + (counts ? shown : 0), 0);
    document.title = `${unread ? `(${unread}) ` : ""}${chat ? store.nameOf(chat) : "Chats"} · UAMP`;
  }

  /** The person at the foot of the list. */
  _showMe() {
    const foot = this.querySelector(".sidebar-account");
    foot.querySelector(".avatar").replaceWith(avatar(me.username, "user"));
    foot.querySelector("b").textContent = people.nameOf(me.username);
  }

  _showSidebar(isOpen) {
    this._sidebarOpen = isOpen;
    if (isOpen && isNarrow.matches) this._membersWanted = false;
    this._layOut();
  }

  _layOut() {
    const narrow = isNarrow.matches;
    this.classList.toggle("has-sidebar", this._sidebarOpen || !narrow);
    this.classList.toggle("has-no-chat", !this._chatId);
    // What is out of sight must be out of reach of Tab, too.
    this._sidebar.inert = narrow && !this._sidebarOpen;
    this._main.inert = narrow && this._sidebarOpen;
    this._members.hidden = !this._membersWanted || !this._chatId;
    this._view.membersShown = !this._members.hidden;
  }

  _closeDrawers(event) {
    if (!isWide.matches && !this._members.hidden && !event.target.closest(".members-button")) {
      this._membersWanted = false;
      this._layOut();
    }
  }

  _key(event) {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    if (!isWide.matches && !this._members.hidden) {
      if (this._members.contains(document.activeElement)) this._view.querySelector(".members-button")?.focus();
      this._membersWanted = false;
    } else if (this._view.escape(event)) return;
    else if (isNarrow.matches && this._chatId) this._sidebarOpen = false;
    this._layOut();
  }
}

function idFromAddress() {
  return decodeURIComponent(/^\/chats\/([^/]+)$/.exec(location.pathname)?.[1] || "");
}

const messageFromAddress = () => new URLSearchParams(location.search).get("message") || "";

customElements.define("chat-app", ChatApp);
