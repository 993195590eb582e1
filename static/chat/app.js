/** The page: the open chat, the address, and the visible side panels. */

import {
  checkSignedIn,
  checkedLogs,
  client,
  drafts,
  offlineChats,
  lastChat,
  me,
  page,
  settings,
  start,
  store,
} from "./context.js";
import { forwardToLater, loadLater } from "./deferred.js";
import { avatar, on, part } from "./dom.js";
import { loadFormulasWhenIdle } from "./markdown/formulas.js";
import { Notifier } from "./notifications/notifier.js";
import { unreadOf } from "./notifications/rules.js";
import { keepWhatIsRead } from "./offline/keeping.js";
import { onSignOut, tellSignOut } from "./offline/worker.js";
import { people } from "./person/looks.js";
import "./panels/chat-list.js";
import "./calls/call-bar.js";
import "./chat-view.js";
import "./panels/connection-banner.js";
import "./notifications/notification-banner.js";
import { rootOf } from "./store/threads.js";
import { gettext, interpolate, ngettext } from "./words.js";

const siteName = /** @type {HTMLMetaElement} */ (
  document.querySelector('meta[name="application-name"]')
).content;
const isNarrow = matchMedia("(max-width: 759px)");
const isWide = matchMedia("(min-width: 1180px)");
const isVeryWide = matchMedia("(min-width: 1560px)");

/** @typedef {import("./store/entry.js").Entry} Entry */
/**
 * @typedef {{messageId?: string, threadId?: string}} Place where a chat is opened: a message, a
 *   thread, or a message in it
 */

class ChatApp extends HTMLElement {
  constructor() {
    super();
    this._sidebar = /** @type {HTMLElement} */ (this.querySelector(".sidebar"));
    this._main = /** @type {HTMLElement} */ (this.querySelector(".main"));
    this._list = part("chat-list");
    this._view = part("chat-view");
    this._members = part("members-panel");
    this._thread = part("thread-panel");
    this._notifier = new Notifier(store, settings, me, people);
    this._chatId = "";
    /** Resolves when the last opened chat is shown. @type {Promise<void>|undefined} */
    this._opened = undefined;
    this._sidebarOpen = false;
    this._membersWanted = false;
    /** Whether the members panel returns when the thread closes. */
    this._membersAfter = false;
    /** The element focused when the thread opened. @type {Element|null} */
    this._threadOrigin = null;
  }

  connectedCallback() {
    this._showMe();
    this._listen();
    this._membersWanted = isWide.matches;
    this._loadLater();
    client.connect();
    // The same page is kept for offline use, whichever chat is opened.
    this._go(start.chat_id || idFromAddress(), "replace", placeFromAddress());
  }

  /**
   * Load the rest of the page once the chat is shown and the socket is open, or could not be
   * opened.
   */
  _loadLater() {
    forwardToLater();
    const begin = async () => {
      if (["closed", "connecting"].includes(client.state.phase)) return;
      client.removeEventListener("state", begin);
      await this._opened;
      await loadLater();
      loadFormulasWhenIdle();
    };
    client.addEventListener("state", begin);
  }

  _listen() {
    on("open-chat", (/** @type {string} */ chatId) => this._openToWrite(chatId));
    on(
      "open-message",
      (
        /** @type {{chatId: string, messageId: string, threadId?: string}} */ {
          chatId,
          messageId,
          threadId,
        },
      ) => this._go(chatId, "push", { messageId, threadId }),
    );
    on("open-thread", (/** @type {Entry} */ entry, origin) => this._openThread(entry, origin));
    on("close-thread", () => this._closeThread());
    addEventListener("open-sidebar", () => {
      this._showSidebar(true);
      /** @type {HTMLElement|null} */ (
        this._list.querySelector("[aria-current], .chat-item")
      )?.focus();
    });
    addEventListener("toggle-members", () => {
      this._membersWanted = Boolean(this._members.hidden);
      this._membersAfter = false;
      if (this._membersWanted && !isVeryWide.matches) this._leaveThread();
      const hadFocus = this._members.contains(document.activeElement);
      this._layOut();
      if (!this._members.hidden && !isWide.matches) this._members.querySelector("button")?.focus();
      // The button that closed the panel is hidden with it.
      if (this._members.hidden && hadFocus)
        /** @type {HTMLElement|null} */ (this._view.querySelector(".members-button"))?.focus();
    });
    people.addEventListener("change", () => this._showMe());
    // A user who leaves a chat goes to the start page; one who is removed stays and reads so.
    on("left-chat", (/** @type {string} */ chatId) => {
      if (chatId === this._chatId) this._go("", "replace");
    });
    this.querySelector(".settings-button")?.addEventListener("click", () =>
      dispatchEvent(new CustomEvent("open-settings")),
    );
    addEventListener("pagehide", () => drafts.save());
    keepWhatIsRead(offlineChats, store, page);
    onSignOut(() => this._forget());
    this.querySelector("form[action$=logout]")?.addEventListener("submit", (event) =>
      this._signOut(event),
    );
    addEventListener("popstate", () => this._go(idFromAddress(), "none", placeFromAddress()));
    addEventListener("keydown", (e) => this._key(e));
    this._main.addEventListener("pointerdown", (e) => this._closeDrawers(e));
    isNarrow.addEventListener("change", () => this._layOut());
    isWide.addEventListener("change", () => this._layOut());
    document.addEventListener("visibilitychange", () => document.hidden || client.retryNow());
    client.addEventListener("state", (event) => {
      const { phase, attempt } =
        /** @type {CustomEvent<import("../uamp/client.js").ConnectionState>} */ (event).detail;
      if (phase === "waiting" && attempt === 2) checkSignedIn();
    });
    store.addEventListener("load-error", (event) => {
      const { status } = /** @type {CustomEvent<import("./api.js").ApiError>} */ (event).detail;
      if (status === 401 || status === 403) checkSignedIn();
    });
    store.addEventListener("change", () => this._showTitle());
    if (!start.chat_id) store.addEventListener("change", () => this._openFirst(), { once: true });
  }

  /**
   * @param {string} chatId "" for none @param {"push"|"replace"|"none"} history
   * @param {Place} [place]
   */
  _go(chatId, history, { messageId = "", threadId = "" } = {}) {
    const isOpen = chatId !== "" && chatId === this._chatId && threadId !== "";
    this._chatId = chatId;
    if (chatId) lastChat.keep(chatId);
    const place = new URLSearchParams(
      Object.entries({ thread: threadId, message: messageId }).filter(([, id]) => id),
    );
    const path = chatId ? `/chats/${encodeURIComponent(chatId)}` : "/";
    const address = place.size ? `${path}?${place}` : path;
    if (history === "push" && address !== location.pathname + location.search)
      window.history.pushState(null, "", address);
    if (history === "replace" && address !== location.pathname + location.search)
      window.history.replaceState(null, "", address);
    // The chat around a thread opens at the message that begins the thread.
    if (!chatId) this._view.showNothing();
    else if (!isOpen) this._opened = this._view.open(chatId, threadId || messageId);
    this._showThread(chatId, threadId, messageId);
    this._list.select(chatId);
    this._notifier.show(chatId);
    this._members.chatId = chatId;
    this._showSidebar(!chatId);
    this._showTitle();
    // The drawer now covers the focused element.
    if (chatId && isNarrow.matches) this._main.focus({ preventScroll: true });
  }

  /**
   * Open a chat that the user chose, and focus its composer.
   * @param {string} chatId "" for none
   */
  async _openToWrite(chatId) {
    this._go(chatId, "push");
    const dialog = document.querySelector("dialog[open]");
    // A closing dialog restores the focus first.
    if (dialog) await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
    const origin = document.activeElement;
    await this._opened;
    // The user may have moved the focus by now.
    const isFree =
      [origin, document.body].includes(document.activeElement) &&
      !document.querySelector("dialog[open]");
    // On a phone the keyboard would cover the chat.
    if (chatId && chatId === this._chatId && matchMedia("(pointer: fine)").matches && isFree)
      this._view.focusComposer();
  }

  /**
   * Beside the list, open the last open chat, or the user's only one; on a phone, where the chat
   * would cover the list, open only an empty one.
   */
  _openFirst() {
    if (this._chatId) return;
    const [first, second] = store.list;
    if (!isNarrow.matches && store.get(lastChat.id)) this._go(lastChat.id, "replace");
    else if (first && !second && (!isNarrow.matches || !first.preview)) this._go(first.id, "none");
  }

  /**
   * @param {Entry} entry in the thread, or its first message
   * @param {HTMLElement} origin
   */
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
    // Show only one panel beside the chat where two would not fit.
    if (!isVeryWide.matches && this._membersWanted)
      [this._membersWanted, this._membersAfter] = [false, true];
    this._thread.hidden = false;
    loadLater().then((isHere) => {
      if (isHere && !this._thread.hidden) this._thread.open(chatId, threadId, messageId);
    });
    this._layOut();
  }

  _leaveThread() {
    if (this._thread.hidden) return;
    this._thread.hidden = true;
    this._thread.leave?.();
    // Restore the members panel, which had made room.
    if (this._membersAfter) [this._membersWanted, this._membersAfter] = [isWide.matches, false];
    this._layOut();
  }

  /** Close the thread, and return the focus to where it was opened. */
  _closeThread() {
    const { rootId } = this._thread;
    this._leaveThread();
    window.history.pushState(null, "", `/chats/${encodeURIComponent(this._chatId)}`);
    const row = Array.from(this._view.querySelectorAll("chat-message")).find(
      ({ entry }) => rootOf(entry) === rootId,
    );
    const origin =
      this._threadOrigin?.isConnected && this._threadOrigin !== document.body
        ? this._threadOrigin
        : row;
    /** @type {HTMLElement|null} */ (origin ?? this._view.querySelector(".log"))?.focus({
      preventScroll: true,
    });
    this._threadOrigin = null;
  }

  _showTitle() {
    const chat = store.get(this._chatId);
    const unread = store.list
      .map((one) => ({ ...unreadOf(one), replies: one.muted ? 0 : one.unread_replies || 0 }))
      .reduce((sum, { shown, counts, replies }) => sum + (counts ? shown : 0) + replies, 0);
    document.title = `${unread ? `(${unread}) ` : ""}${
      chat ? store.nameOf(chat) : gettext("Chats")
    } · ${siteName}`;
  }

  /** @param {Event} event the form of the sign-out */
  _signOut(event) {
    const { turns } = client.outbox;
    const text = interpolate(
      ngettext(
        "%(count)s message hasn't been sent yet. Sign out and discard it?",
        "%(count)s messages haven't been sent yet. Sign out and discard them?",
        turns.length,
      ),
      { count: turns.length },
    );
    if (turns.length && !confirm(text)) {
      event.preventDefault();
      return;
    }
    this._forget();
    tellSignOut();
  }

  /** Drop everything that the user wrote or checked on this device: they sign out. */
  _forget() {
    drafts.forget();
    lastChat.forget();
    checkedLogs.forget();
    client.outbox.forget();
  }

  /** Show the user at the foot of the list. */
  _showMe() {
    const foot = /** @type {HTMLElement} */ (this.querySelector(".sidebar-account"));
    foot.querySelector(".avatar")?.replaceWith(avatar(me.username, "user"));
    const name = foot.querySelector("b");
    if (name) name.textContent = people.nameOf(me.username);
  }

  /** @param {boolean} isOpen */
  _showSidebar(isOpen) {
    this._sidebarOpen = isOpen;
    if (isOpen && isNarrow.matches) this._membersWanted = false;
    this._layOut();
  }

  _layOut() {
    const narrow = isNarrow.matches;
    this.classList.toggle("has-sidebar", this._sidebarOpen || !narrow);
    this.classList.toggle("has-no-chat", !this._chatId);
    // Hidden parts must be unreachable by Tab, too.
    this._sidebar.inert = narrow && !this._sidebarOpen;
    this._main.inert = narrow && this._sidebarOpen;
    // On a phone the thread covers the chat.
    this._view.inert = narrow && !this._thread.hidden;
    this._members.hidden = !this._membersWanted || !this._chatId;
    this._view.membersShown = !this._members.hidden;
  }

  /** @param {PointerEvent} event */
  _closeDrawers(event) {
    if (
      !isWide.matches &&
      !this._members.hidden &&
      !(/** @type {Element} */ (event.target).closest(".members-button"))
    ) {
      this._membersWanted = false;
      this._layOut();
    }
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    // Escape closes the dialog alone.
    if (/** @type {Element} */ (event.target).closest("dialog[open]")) return;
    if (!isWide.matches && !this._members.hidden) {
      if (this._members.contains(document.activeElement))
        /** @type {HTMLElement|null} */ (this._view.querySelector(".members-button"))?.focus();
      this._membersWanted = false;
    } else if (this._thread.contains(/** @type {Node} */ (event.target))) {
      if (!this._thread.escape()) this._closeThread();
      return;
    } else if (this._view.escape(event)) return;
    else if (!this._thread.hidden) {
      this._closeThread();
      return;
    } else if (isNarrow.matches && this._chatId) this._sidebarOpen = false;
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
