/** The open chat: its head, its messages, the people typing, and the composer. */

import { api, checkSignedIn, me, page, store } from "./context.js";
import { ChatMoney } from "./chat-money.js";
import { decide, mayDecide } from "./decisions.js";
import { announce } from "./dom.js";
import { Announcements } from "./log/announcements.js";
import { people } from "./person/looks.js";
import { isUnclear } from "./store/acts.js";
import { entryOf, isFrom } from "./store/entry.js";
import { History, catchUp, followSession } from "./store/history.js";
import { newestOfOthers } from "./store/open-chat.js";
import { isShownIn, rootOf } from "./store/threads.js";
import { View, glyph } from "./view.js";
import { html, nothing, repeat } from "../vendor/lit/lit.js";
import "./composer/composer.js";
import "./log/message-list.js";
import "./panels/chat-head.js";
import "./panels/shared-state.js";
import "./panels/typing-line.js";
import { gettext, interpolate } from "./words.js";

/** A line with a sign where messages would be. */
const notice = (name, title, text, action = nothing) => html`<div class="empty" role="note">${glyph(name)}<h1>${title}</h1><p>${text}</p>${action}</div>`;

class ChatView extends View {
  static properties = {
    chatId: { attribute: false },
    membersShown: { attribute: false },
    _error: { state: true },
  };

  constructor() {
    super();
    this.chatId = "";
    this.membersShown = false;
    /** Counts the chats that were opened: each has a list and a composer of its own. */
    this._opened = 0;
    this._error = null;
    this._listeners = new AbortController();
    this.session = null;
    this.chat = null;
    this._history = new History(page, api);
    this._announcements = new Announcements();
  }

  connectedCallback() {
    super.connectedCallback();
    this.addEventListener("show-message", (e) => this.showMessage(e.detail));
    this.addEventListener("say", (e) => this._composer?.say(e.detail));
    store.addEventListener("change", () => {
      this.chat = (this.chatId && store.get(this.chatId)) || this.chat;
    });
    document.addEventListener("visibilitychange", () => this._markRead());
    addEventListener("focus", () => this._markRead());
  }

  render() {
    return html`<chat-head .chatId=${this.chatId} .membersShown=${this.membersShown}></chat-head>${this._body()}`;
  }

  _body() {
    const begin = () => this.dispatchEvent(new Event("new-chat", { bubbles: true }));
    if (!this.chatId) {
      return notice("message", gettext("Choose a chat"), gettext("Pick one from the list, or start a new one with people and agents."),
        html`<button type="button" class="button button-primary" @click=${begin}>${glyph("add")}${gettext("New chat")}</button>`);
    }
    if (this._error) return this._failure(this._error);
    return repeat([this._opened], (opened) => opened, () => html`
      <shared-state></shared-state><message-list .mayDecide=${(approval) => mayDecide(this.chat, approval)} @bottom=${() => this._markRead()}
        @older=${() => this._history.loadOlder()} @newer=${() => this._history.loadNewer()}
        @newest=${() => this._goTo(() => this._history.loadNewest())} @place=${(e) => this._goTo(() => this._history.loadAround(e.detail))}
        @retry-turn=${(e) => this.session.retry(e.detail)} @discard-turn=${(e) => this.session.discard(e.detail)}
        @ask-again=${(e) => this._composer.write(e.detail)} @reply=${(e) => this._reply(e.detail)} @answer-again=${(e) => this._answerAgain(e.detail)}
        @decide=${(e) => decide(this.session, e.detail, (text) => this._composer.say(text))} @stop-answer=${(e) => this._stopAnswer(e.detail)}></message-list>
      <typing-line></typing-line>
      <chat-composer @keydown=${(e) => this._editLast(e)}></chat-composer>`);
  }

  _failure({ status, code, message }) {
    if (status === 404 || ["chat_not_found", "forbidden"].includes(code)) {
      return notice("alert", gettext("This chat is not here"), gettext("It does not exist, or you are not a member of it. Ask a member to add you."));
    }
    return notice("alert", gettext("The chat could not be loaded"), `${message} ${gettext("What you wrote is kept.")}`,
      html`<button type="button" class="button button-primary" @click=${() => this.open(this.chatId)}>${gettext("Try again")}</button>`);
  }

  get _list() {
    return this.querySelector("message-list");
  }

  get _typing() {
    return this.querySelector("typing-line");
  }

  get _composer() {
    return this.querySelector("chat-composer");
  }

  /** No chat is open. */
  showNothing() {
    this._leave();
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
    this._opened += 1;
    page.dispatch({ type: "opened", chatId });
    await this.updateComplete;
    try {
      const chat = store.get(chatId) || (await store.reload(chatId));
      if (this.chatId !== chatId) return;
      this.chat = chat;
      this._money = new ChatMoney(this._list, (text) => this._composer.say(text));
      this._listen(store.session(chat));
      await this._composer.open(chat, this.session);
      await this._loadHistory();
    } catch (error) {
      if (error.name !== "ApiError") throw error;
      if (this.chatId === chatId) this._error = error;
    }
  }

  _leave() {
    this._listeners.abort();
    this._listeners = new AbortController();
    this.session?.typing(false);
    this.session = null;
    this.chat = null;
    this.chatId = "";
    this._error = null;
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
    on("approvals", (asked) => this._announcements.approvals(session.approvals.list, asked));
    this._money.listen(session, () => this.chat, this._listeners.signal);
    on("ready", () => this._markRead());
    on("reset", (event) => this._onReset(event));
    on("limit", () => this._composer.say(gettext("You are writing faster than the server allows. Wait a moment.")));
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
      this._composer.say(gettext("That message is not in this chat."));
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
    if (entry.reply_to && isShownIn(page.state, entry)) {
      entry = await this._history.withQuote(entry);
      if (!session || session !== this.session) return;
    }
    session.approvals.clearClosed();
    page.dispatch({ type: "message", entry });
    if (!isShownIn(page.state, entry)) {
      this._typing.stopped(entry.sender_id);
      return;
    }
    if (isFrom(entry, me.id)) this._list.toBottom();
    else if (entry.sender_kind === "user") {
      this._typing.stopped(entry.sender_id);
      if (!this._isReplayed(seq)) announce(interpolate(gettext("New message from %(name)s"), { name: people.nameOf(entry.name) }));
    }
    this._markRead();
  }

  /** A member did something with a message: the state has it, except for what only the server has. */
  _onAct(event) {
    const entry = page.state.entries.find(({ id }) => id === event.message_id);
    if (event.type === "message.deleted" && event.thread) this._countAgain(event.thread);
    if (isUnclear(entry, event)) this._goTo(() => this._history.refresh(event.message_id));
    if (event.type === "message.pinned" && page.state.loaded) this._loadPins();
  }

  /** A reply was deleted: the server counts what is left. @param {string} rootId */
  _countAgain(rootId) {
    const root = page.state.entries.find((entry) => rootOf(entry) === rootId);
    if (root) this._goTo(() => this._history.refresh(root.id));
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
    this._announcements.answering(response);
    this._showRunning();
  }

  _onResponseEnd(response) {
    if (!response.thread) this._announcements.ended(response);
    this._showRunning();
  }

  _showRunning() {
    if (page.state.own === this._ownShown) return;
    this._ownShown = page.state.own;
    this._composer.showRunning(this.session.ownResponses.filter(({ thread }) => !thread));
  }

  /** Stop one answer, that of another member too. */
  /** Its price is that of an answer to a new question. */
  _answerAgain({ id }) {
    if (!this.session.answerAgain(id)) this._composer.say(gettext("There is no connection. Try again when it is back."));
  }

  _stopAnswer(response) {
    this.session.cancel(response.id);
    announce(response.agent ? interpolate(gettext("Stopping %(name)s"), { name: response.agent }) : gettext("Stopping the answer"));
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
    if (!this.session || !this._hasReaders || document.hidden || !this._list?.atBottom) return;
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
      if ((await checkSignedIn()) && this.chatId === chatId) this._error = error;
    } else this._composer?.say(error.message || error.code);
  }
}
customElements.define("chat-view", ChatView);
