/** The open chat: its head, its messages, the people typing, and the composer. */

import { api, checkSignedIn, me, page, store } from "./context.js";
import { ChatMoney } from "./chat-money.js";
import { announce, avatar, h, icon, iconButton } from "./dom.js";
import { outcomeText } from "./cards/approval-card.js";
import { isUnclear } from "./store/acts.js";
import { entryOf, isFrom } from "./store/entry.js";
import { History, catchUp, followSession } from "./store/history.js";
import { newestOfOthers } from "./store/open-chat.js";
import "./panels/balance-chip.js";
import "./panels/shared-state.js";
import "./composer/composer.js";
import "./log/message-list.js";
import "./actions/pinned-list.js";
import "./panels/typing-line.js";

/** Fires (bubbling) `open-sidebar`, `toggle-members`. */
class ChatView extends HTMLElement {
  connectedCallback() {
    this._listeners = new AbortController();
    this.session = null;
    this.chat = null;
    this._history = new History(page, api);
    this._balance = document.createElement("balance-chip");
    this._pins = document.createElement("pinned-list");
    this._search = iconButton("search", "Search (Ctrl+Shift+F)", {
      class: "search-button", "data-testid": "search", onclick: () => this.dispatchEvent(new Event("open-search", { bubbles: true })),
    });
    this.addEventListener("show-message", (e) => this.showMessage(e.detail));
    this.addEventListener("say", (e) => this._composer.say(e.detail));
    this.showNothing();
    store.addEventListener("change", () => this._showHead());
    document.addEventListener("visibilitychange", () => this._markRead());
    addEventListener("focus", () => this._markRead());
  }

  /** No chat is open. */
  showNothing() {
    this._leave();
    this.replaceChildren(
      h("header", { class: "chat-head is-bare" }, this._menuButton(), h("div", { class: "chat-title" }), this._balance),
      this._notice("message", "Choose a chat", "Pick one from the list, or start a new one."),
    );
  }

  /** @param {string} chatId @param {string} [messageId] where the chat is opened, instead of at its end */
  async open(chatId, messageId = "") {
    if (messageId && chatId === this.chatId && page.state.loaded) {
      this.showMessage(messageId);
      return;
    }
    this._leave();
    this.chatId = chatId;
    this._wanted = messageId;
    page.dispatch({ type: "opened", chatId });
    this._build();
    try {
      this.chat = store.get(chatId) || (await store.reload(chatId));
      if (this.chatId !== chatId) return;
      this._showHead();
      this._listen(store.session(this.chat));
      this._composer.open(this.chat, this.session);
      await this._loadHistory();
    } catch (error) {
      if (error.name !== "ApiError") throw error;
      if (this.chatId === chatId) this._showError(error);
    }
  }

  _build() {
    this._head = h("header", { class: "chat-head" }, this._menuButton());
    this._name = h("h1", { dir: "auto" });
    this._facts = h("p");
    this._members = h(
      "button",
      {
        type: "button", class: "members-button", "data-testid": "members", "aria-controls": "members", "aria-expanded": String(Boolean(this._membersShown)),
        onclick: () => this.dispatchEvent(new Event("toggle-members", { bubbles: true })),
      },
      h("span", { class: "avatar-stack" }), icon("members"),
    );
    this._list = document.createElement("message-list");
    this._typing = document.createElement("typing-line");
    this._composer = document.createElement("chat-composer");
    this._list.mayDecide = (approval) => this._mayDecide(approval);
    this._list.addEventListener("bottom", () => this._markRead());
    this._list.addEventListener("older", () => this._history.loadOlder());
    this._list.addEventListener("newer", () => this._history.loadNewer());
    this._list.addEventListener("newest", () => this._goTo(() => this._history.loadNewest()));
    this._list.addEventListener("place", (e) => this._goTo(() => this._history.loadAround(e.detail)));
    this._list.addEventListener("retry-turn", (e) => this.session.retry(e.detail));
    this._list.addEventListener("discard-turn", (e) => this.session.discard(e.detail));
    this._list.addEventListener("ask-again", (e) => this._composer.write(e.detail));
    this._list.addEventListener("reply", (e) => this._reply(e.detail));
    this._list.addEventListener("decide", (e) => this._decide(e.detail));
    this._list.addEventListener("stop-answer", (e) => this._stopAnswer(e.detail));
    this._composer.addEventListener("keydown", (e) => this._editLast(e));
    this.replaceChildren(this._head, document.createElement("shared-state"), this._list, this._typing, this._composer);
    this._money = new ChatMoney(this._list, (text) => this._composer.say(text));
  }

  /** Whether the panel of the members is shown. */
  set membersShown(isShown) {
    this._membersShown = isShown;
    this._members?.setAttribute("aria-expanded", String(isShown));
  }

  _menuButton() {
    return iconButton("back", "Show chats", {
      class: "menu-button",
      onclick: () => this.dispatchEvent(new Event("open-sidebar", { bubbles: true })),
    });
  }

  _showHead() {
    if (!this.chatId || !store.get(this.chatId)) return;
    this.chat = store.get(this.chatId);
    const name = store.nameOf(this.chat);
    const members = this.chat.participants;
    const online = members.filter((p) => p.kind === "user" && (p.online || p.id === me.id)).length;
    const agents = members.filter((p) => p.kind === "agent").length;
    const facts = [
      `${members.length - agents} ${members.length - agents === 1 ? "person" : "people"}`,
      agents && `${agents} ${agents === 1 ? "agent" : "agents"}`,
      online && `${online} online`,
    ].filter(Boolean).join(" · ");
    this._name.textContent = name;
    this._facts.textContent = facts;
    this._members.setAttribute("aria-label", `Members: ${facts}`);
    const others = store.others(this.chat).slice(0, 4);
    this._members.firstChild.replaceChildren(...others.map((p) => avatar(p.name, p.kind, p.online)));
    // What is in the head stays there: an element that is put in anew loses the focus.
    if (this._head.contains(this._members)) return;
    this._head.append(h("div", { class: "chat-title" }, this._name, this._facts), this._search, this._pins, this._balance, this._members);
  }

  _leave() {
    this._listeners.abort();
    this._listeners = new AbortController();
    this.session?.typing(false);
    this.session = null;
    this.chat = null;
    this.chatId = "";
    this._hasReaders = false;
  }

  _listen(session) {
    this.session = session;
    const on = (type, listener) =>
      session.addEventListener(type, (e) => listener(e.detail), { signal: this._listeners.signal });
    followSession(page, session, this._listeners.signal);
    on("message", (event) => this._onMessage(event));
    on("act", (event) => this._onAct(event));
    on("response", (response) => this._onResponse(response));
    on("response-end", (response) => this._onResponseEnd(response));
    on("typing", (event) => this._typing.typed(event));
    on("read", (event) => this._onRead(event));
    on("approvals", (asked) => this._onApprovals(asked));
    this._money.listen(session, () => this.chat, this._listeners.signal);
    on("ready", () => this._markRead());
    on("reset", (event) => this._onReset(event));
    on("limit", () => this._composer.say("You are writing faster than the server allows. Wait a moment."));
    on("error", (error) => this._onError(error));
  }

  async _loadHistory() {
    const { chatId, session } = this;
    const receipts = api.get(`/chats/${encodeURIComponent(chatId)}/receipts`);
    // Awaited below; a failure must not count as unhandled while the messages load.
    receipts.catch(() => {});
    await this._loadMessages(session);
    const readers = new Map((await receipts).data.map((receipt) => [String(receipt.user_id), receipt]));
    if (this.chatId !== chatId || this.session !== session) return;
    page.dispatch({ type: "readers", readers });
    if (this.chat.unread) page.dispatch({ type: "unread-after", seq: readers.get(me.id)?.seq ?? 0 });
    catchUp(page, session);
    this._showRunning();
    this._hasReaders = true;
    this._markRead();
    this._loadPins();
  }

  /** Load the newest messages, or those around the one that the address names. */
  async _loadMessages(session) {
    const wanted = this._wanted;
    this._wanted = "";
    if (wanted && (await this._isShown(wanted))) return;
    await this._history.load(session.failures);
  }

  /**
   * Show a message of the open chat, wherever it stands.
   * @param {string} id
   */
  async showMessage(id) {
    if (page.state.entries.some((entry) => entry.id === id)) page.dispatch({ type: "target", id });
    else await this._goTo(() => this._isShown(id));
  }

  /** @param {string} id @returns {Promise<boolean>} whether the chat has the message */
  async _isShown(id) {
    try {
      await this._history.loadAround(id);
    } catch (error) {
      if (error.status !== 404 && error.status !== 400) throw error;
      this._composer.say("That message is not in this chat.");
      return false;
    }
    page.dispatch({ type: "target", id });
    return true;
  }

  /** Go to another place of the chat; where it cannot be loaded, the reader stays. */
  async _goTo(load) {
    try {
      await load();
    } catch (error) {
      if (error.name !== "ApiError") throw error;
      this._composer.say(error.message);
    }
  }

  _loadPins() {
    return this._goTo(() => this._history.loadPins());
  }

  async _onReset(event) {
    page.dispatch({ type: "opened", chatId: this.chatId });
    await this._loadHistory();
    this.session.reconcile(event.epoch, page.state.entries.map((e) => ({ ...e, created_at: e.at })));
  }

  async _onMessage({ message, seq }) {
    let entry = entryOf(message, seq);
    const { session } = this;
    if (entry.reply_to) {
      entry = await this._history.withQuote(entry);
      if (!session || session !== this.session) return;
    }
    session.approvals.clearClosed();
    page.dispatch({ type: "message", entry });
    if (isFrom(entry, me.id)) this._list.toBottom();
    else if (entry.sender_kind === "user") {
      this._typing.stopped(entry.sender_id);
      if (!this._isReplayed(seq)) announce(`New message from ${entry.name}`);
    }
    this._markRead();
  }

  /** A member did something with a message: the state has it, except for what only the server has. */
  _onAct(event) {
    const entry = page.state.entries.find(({ id }) => id === event.message_id);
    if (isUnclear(entry, event)) this._goTo(() => this._history.refresh(event.message_id));
    if (event.type === "message.pinned" && page.state.loaded) this._loadPins();
  }

  _reply(entry) {
    page.dispatch({ type: "reply-to", entry });
    this._composer.focusText();
  }

  /** The arrow up, where nothing is written, changes one's last message. */
  _editLast(event) {
    if (event.key !== "ArrowUp" || event.defaultPrevented || !event.target.matches("textarea") || !this._composer.isEmpty) return;
    const last = page.state.entries.findLast((entry) => isFrom(entry, me.id) && !entry.deletedAt);
    if (!last) return;
    event.preventDefault();
    page.dispatch({ type: "editing", id: last.id });
  }

  _onResponse(response) {
    if (!page.state.live.has(response.id)) return;
    this._announced ||= new Set();
    if (response.agent && !this._announced.has(response.id)) {
      this._announced.add(response.id);
      announce(`${response.agent} is answering`);
    }
    this._showRunning();
  }

  _onResponseEnd(response) {
    if (this._announced?.has(response.id)) {
      const ends = { completed: "answer complete", cancelled: "answer stopped", failed: "answer failed" };
      const joint = response.status === "cancelled" ? " by " : ". ";
      announce(`${response.agent || "Agent"}: ${ends[response.status]}${response.reason ? joint + response.reason : ""}`);
    }
    this._showRunning();
  }

  /** @param {import("../uamp/approvals.js").Approval|null} asked one that is asked for now */
  _onApprovals(asked) {
    const { list } = this.session.approvals;
    this._announced ||= new Set();
    for (const approval of list) {
      if (approval.state === "closed" && !this._announced.has(approval.key)) {
        this._announced.add(approval.key);
        announce(outcomeText(approval));
      }
    }
    if (asked) announce(`${asked.agent} asks to use ${asked.name}. Allow or refuse it at the end of the chat.`);
  }

  _mayDecide({ userId }) {
    const mine = this.chat.participants.find((p) => p.kind === "user" && String(p.id) === me.id);
    return !userId || userId === me.id || mine?.role === "owner";
  }

  _decide({ approval: { key }, approved, reason }) {
    // The card has a copy: the client keeps the approval itself.
    const approval = this.session.approvals.list.find((one) => one.key === key);
    if (approval && !this.session.decide(approval, approved, reason)) {
      this._composer.say("There is no connection. Try again when it is back.");
    }
  }

  _showRunning() {
    if (page.state.own === this._ownShown) return;
    this._ownShown = page.state.own;
    this._composer.showRunning(this.session.ownResponses);
  }

  /** Stop one answer, that of another member too. */
  _stopAnswer(response) {
    this.session.cancel(response.id);
    announce(`Stopping ${response.agent || "the answer"}`);
  }

  /**
   * Stop one's own answers where Escape means that: nothing is being written.
   * @param {KeyboardEvent} event
   * @returns {boolean} whether the key had this meaning
   */
  escape(event) {
    const isWriting = event.isComposing || event.keyCode === 229 || Boolean(event.target.value);
    if (!this.session || isWriting || !this.contains(event.target)) return false;
    if (page.state.replyTo) {
      page.dispatch({ type: "reply-to", entry: null });
      return true;
    }
    return this._composer.isEmpty && this._composer.stopOwn();
  }

  _onRead({ user_id: userId, message_id: messageId }) {
    const entry = page.state.entries.find((e) => e.id === messageId);
    const reader = this.chat.participants.find(
      (p) => p.kind === "user" && String(p.id) === String(userId),
    );
    if (!entry || !reader) return;
    page.dispatch({ type: "read", reader: { user_id: userId, username: reader.name, seq: entry.seq } });
  }

  /** What is on the screen at the bottom of a visible page is read. */
  _markRead() {
    if (!this.session || !this._hasReaders || document.hidden || !this._list.atBottom) return;
    const newest = newestOfOthers(page.state);
    const known = page.state.readers.get(me.id)?.seq ?? 0;
    if (!newest || newest.seq <= known) return;
    if (this.session.markRead(newest.id)) {
      page.dispatch({ type: "read", reader: { user_id: me.id, username: me.username, seq: newest.seq } });
    }
  }

  _isReplayed(seq) {
    return seq <= this.session.replayedTo;
  }

  async _onError(error) {
    const { chatId } = this;
    if (error.fatal) {
      if ((await checkSignedIn()) && this.chatId === chatId) this._showError(error);
    } else this._composer.say(error.message || error.code);
  }

  _showError(error) {
    const gone = error.status === 404 || ["chat_not_found", "forbidden"].includes(error.code);
    const again = h("button", { type: "button", class: "button button-primary", onclick: () => this.open(this.chatId) }, "Try again");
    const notice = gone
      ? this._notice("alert", "This chat is not here", "It does not exist, or you are not a member of it. Ask a member to add you.")
      : this._notice("alert", "The chat could not be loaded", `${error.message} What you wrote is kept.`, again);
    this.replaceChildren(this._head, notice);
  }

  _notice(name, title, text, ...actions) {
    return h("div", { class: "empty", role: "note" }, icon(name), h("h1", {}, title), h("p", {}, text), actions);
  }
}
customElements.define("chat-view", ChatView);
