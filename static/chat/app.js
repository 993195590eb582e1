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
import "./calls/call-bar.js";
import "./chat-view.js";
import "./panels/connection-banner.js";
import "./panels/members-panel.js";
import "./panels/thread-panel.js";
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
import { rootOf } from "./store/threads.js";
import { gettext } from "./words.js";

const isNarrow = matchMedia("(max-width: 759px)");
const isWide = matchMedia("(min-width: 1180px)");
const isVeryWide = matchMedia("(min-width: 1560px)");

class ChatApp extends HTMLElement {
  connectedCallback() {
    this._sidebar = this.querySelector(".sidebar");
    this._main = this.querySelector(".main");
    this._list = this.querySelector("chat-list");
    this._view = this.querySelector("chat-view");
    this._members = this.querySelector("members-panel");
    this._thread = this.querySelector("thread-panel");
    this._dialog = document.querySelector("new-chat-dialog");
    this._notifier = new Notifier(store, settings, me, people);
    this._showMe();
    this._listen();
    this._membersWanted = isWide.matches;
    client.connect();
    store.refresh();
    this._go(start.chat_id, "replace", placeFromAddress());
  }

  _listen() {
    addEventListener("open-chat", (e) => this._go(e.detail, "push"));
    addEventListener("open-message", ({ detail: { chatId, messageId, threadId } }) => this._go(chatId, "push", { messageId, threadId }));
    addEventListener("open-thread", ({ target, detail: entry }) => this._openThread(entry, target));
    addEventListener("close-thread", () => this._closeThread());
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
      this._membersAfter = false;
      if (this._membersWanted && !isVeryWide.matches) this._leaveThread();
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
    addEventListener("popstate", () => this._go(idFromAddress(), "none", placeFromAddress()));
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

  /**
   * @param {string} chatId "" for none @param {"push"|"replace"|"none"} history
   * @param {{messageId?: string, threadId?: string}} [place] where it is opened: a message, a thread, or a message in it
   */
  _go(chatId, history, { messageId = "", threadId = "" } = {}) {
    const isOpen = chatId !== "" && chatId === this._chatId && threadId !== "";
    this._chatId = chatId;
    const place = new URLSearchParams(Object.entries({ thread: threadId, message: messageId }).filter(([, id]) => id));
    const path = chatId ? `/chats/${encodeURIComponent(chatId)}` : "/";
    const address = place.size ? `${path}?${place}` : path;
    if (history === "push" && address !== location.pathname + location.search) window.history.pushState(null, "", address);
    // The chat around a thread is opened at the message with which the thread begins.
    if (!chatId) this._view.showNothing();
    else if (!isOpen) this._view.open(chatId, threadId || messageId);
    this._showThread(chatId, threadId, messageId);
    this._list.select(chatId);
    this._notifier.show(chatId);
    this._members.open(chatId);
    this._showSidebar(!chatId);
    this._showTitle();
    // What had the focus is out of reach behind the drawer now.
    if (chatId && isNarrow.matches) this._main.focus({ preventScroll: true });
  }

  /** @param {import("./store/entry.js").Entry} entry in the thread, or the message with which it begins @param {EventTarget} origin */
  _openThread(entry, origin) {
    if (!this._thread.contains(origin)) this._threadOrigin = document.activeElement;
    const threadId = entry.thread || rootOf(entry);
    this._go(this._chatId, "push", { threadId, messageId: entry.thread ? entry.id : "" });
  }

  /** @param {string} chatId @param {string} threadId "" for none @param {string} messageId */
  _showThread(chatId, threadId, messageId) {
    if (!chatId || !threadId) {
      this._leaveThread();
      return;
    }
    // One panel beside the chat at a time, where two leave no room for it.
    if (!isVeryWide.matches && this._membersWanted) [this._membersWanted, this._membersAfter] = [false, true];
    this._thread.hidden = false;
    this._thread.open(chatId, threadId, messageId);
    this._layOut();
  }

  _leaveThread() {
    if (this._thread.hidden) return;
    this._thread.hidden = true;
    this._thread.leave();
    // The members, which had to make room, come back.
    if (this._membersAfter) [this._membersWanted, this._membersAfter] = [isWide.matches, false];
    this._layOut();
  }

  /** Close the thread; the focus goes back to where it was opened. */
  _closeThread() {
    const { rootId } = this._thread;
    this._leaveThread();
    window.history.pushState(null, "", `/chats/${encodeURIComponent(this._chatId)}`);
    const row = Array.from(this._view.querySelectorAll("chat-message")).find(({ entry }) => rootOf(entry) === rootId);
    const origin = this._threadOrigin?.isConnected && this._threadOrigin !== document.body ? this._threadOrigin : row;
    (origin || this._view.querySelector(".log"))?.focus({ preventScroll: true });
    this._threadOrigin = null;
  }

  _showTitle() {
    const chat = store.get(this._chatId);
    const unread = store.list
      .map((one) => ({ ...unreadOf(one), replies: one.muted ? 0 : one.unread_replies || 0 }))
      .reduce((sum, { shown, counts, replies }) => sum + (counts ? shown : 0) + replies, 0);
    document.title = `${unread ? `(${unread}) ` : ""}${chat ? store.nameOf(chat) : gettext("Chats")} · UAMP`;
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
    // On a phone the thread covers the chat.
    this._view.inert = narrow && !this._thread.hidden;
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
    } else if (this._thread.contains(event.target)) {
      if (!this._thread.escape()) this._closeThread();
      return;
    } else if (this._view.escape(event)) return;
    else if (!this._thread.hidden) {
      this._closeThread();
      return;
    }
    else if (isNarrow.matches && this._chatId) this._sidebarOpen = false;
    this._layOut();
  }
}

function idFromAddress() {
  return decodeURIComponent(/^\/chats\/([^/]+)$/.exec(location.pathname)?.[1] || "");
}

function placeFromAddress() {
  const place = new URLSearchParams(location.search);
  return { messageId: place.get("message") || "", threadId: place.get("thread") || "" };
}

customElements.define("chat-app", ChatApp);
