/** The open chat: its head, its messages, the people typing, and the composer. */

import { isApiError } from "./api.js";
import { api, checkSignedIn, client, offlineChats, me, page, store } from "./context.js";
import { failure, nothingOpen } from "./chat-notices.js";
import { ChatMoney } from "./money/chat-money.js";
import { AnswerActs } from "./actions/answer-acts.js";
import { mayDecide } from "./decisions.js";
import { loadLog } from "./deferred.js";
import { detailListener } from "./dom.js";
import { editLast, onEscape } from "./keyboard/chat-keys.js";
import { Announcements } from "./log/announcements.js";
import { Places } from "./log/places.js";
import { markRead, readersOf, showReader } from "./read-marker.js";
import { isUnclear } from "./store/acts.js";
import { entryOf, isFrom } from "./store/entry.js";
import { History, catchUp, followSession } from "./store/history.js";
import { isShownIn, rootOf } from "./store/threads.js";
import { View } from "./view.js";
import { html, repeat } from "../vendor/lit/lit.js";
import "./composer/composer.js";
import "./panels/chat-head.js";
import "./panels/queue-strip.js";
import "./panels/shared-state.js";
import "./panels/typing-line.js";
import { learnTranscript } from "./parts/sound-transcript.js";
import { gettext } from "./words.js";

/**
 * @typedef {import("./store/chat.js").Chat} Chat
 * @typedef {import("./store/entry.js").Entry} Entry
 * @typedef {import("../uamp/types.js").Frame} Frame
 * @typedef {import("../uamp/chat-session.js").ChatSession} ChatSession
 * @typedef {import("../uamp/live-response.js").LiveResponse} LiveResponse
 */

export class ChatView extends View {
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
    /** @type {import("./chat-notices.js").Problem|null} */
    this._error = null;
    this._listeners = new AbortController();
    /** @type {ChatSession|null} */
    this.session = null;
    /** @type {Chat|null} */
    this.chat = null;
    /** The message to open the chat at; "" for the end. */
    this._wanted = "";
    /** Whether the members' read positions are loaded. */
    this._hasReaders = false;
    /** The running answers that the composer shows. @type {Set<string>|null} */
    this._ownShown = null;
    this._history = new History(page, api, offlineChats);
    this._places = new Places(this._history, (text) => this._say(text));
    this._announcements = new Announcements();
    this._acts = new AnswerActs(
      () => this.session,
      (text) => this._say(text),
    );
  }

  connectedCallback() {
    super.connectedCallback();
    this.addEventListener("show-message", (event) =>
      this.showMessage(/** @type {CustomEvent<string>} */ (event).detail),
    );
    this.addEventListener("choose-files", () => this._composer?.chooseFiles());
    this.addEventListener("say", (event) =>
      this._composer?.say(/** @type {CustomEvent<string>} */ (event).detail),
    );
    store.addEventListener("change", () => {
      this.chat = (this.chatId && store.get(this.chatId)) || this.chat;
      if (this._error?.code === "removed" && store.get(this.chatId)) void this.open(this.chatId);
    });
    store.addEventListener("removed", (event) =>
      this._removed(/** @type {CustomEvent<string>} */ (event).detail),
    );
    document.addEventListener("visibilitychange", () => this._markRead());
    addEventListener("focus", () => this._markRead());
  }

  render() {
    return html`<chat-head .chatId=${this.chatId} .membersShown=${this.membersShown}></chat-head
      >${this._body()}`;
  }

  _body() {
    if (!this.chatId)
      return nothingOpen(() => this.dispatchEvent(new Event("new-chat", { bubbles: true })));
    if (this._error) return failure(this._error, () => this.open(this.chatId));
    return repeat(
      [this._opened],
      (opened) => opened,
      () =>
        html` <shared-state></shared-state
          ><message-list
            .mayDecide=${(/** @type {import("../uamp/approvals.js").Approval} */ approval) =>
              this.chat !== null && mayDecide(this.chat, approval)}
            @bottom=${() => this._markRead()}
            @older=${() => this._history.loadOlder()}
            @newer=${() => this._history.loadNewer()}
            @newest=${() => this._places.goTo(() => this._history.loadNewest())}
            @place=${(/** @type {CustomEvent} */ e) =>
              this._places.goTo(() => this._history.loadAround(e.detail))}
            @retry-turn=${(/** @type {CustomEvent} */ e) => this.session?.retry(e.detail)}
            @discard-turn=${(/** @type {CustomEvent} */ e) => this.session?.discard(e.detail)}
            @ask-again=${(/** @type {CustomEvent} */ e) => this._composer?.write(e.detail)}
            @reply=${(/** @type {CustomEvent} */ e) => this._reply(e.detail)}
            @answer-again=${(/** @type {CustomEvent} */ e) => this._acts.answerAgain(e.detail)}
            @edit-and-ask=${(/** @type {CustomEvent} */ e) => this._acts.editAndAsk(e)}
            @decide=${(/** @type {CustomEvent} */ e) => this._acts.decide(e.detail)}
            @stop-answer=${(/** @type {CustomEvent} */ e) => this._acts.stop(e.detail)}
          ></message-list>
          <typing-line></typing-line
          ><queue-strip
            @queue-start=${(/** @type {CustomEvent} */ e) => this._acts.onQueue(e.detail, "start")}
            @queue-remove=${(/** @type {CustomEvent} */ e) =>
              this._acts.onQueue(e.detail, "remove")}
            @queue-edit=${(/** @type {CustomEvent} */ e) =>
              this._places.goTo(() => this._acts.editQueued(e.detail, this._composer))}
          ></queue-strip>
          <chat-composer
            @keydown=${(/** @type {KeyboardEvent} */ e) => editLast(e, this._composer)}
          ></chat-composer>`,
    );
  }

  /** @returns {import("./log/message-list.js").MessageList|null} */
  get _list() {
    return this.querySelector("message-list");
  }

  /** @returns {import("./panels/typing-line.js").TypingLine|null} */
  get _typing() {
    return this.querySelector("typing-line");
  }

  /** @returns {import("./composer/composer.js").ChatComposer|null} */
  get _composer() {
    return this.querySelector("chat-composer");
  }

  /** No chat is open. */
  showNothing = () => this._leave();

  /**
   * @param {string} chatId
   * @param {string} [messageId] where to open the chat, instead of at its end
   */
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
      const log = loadLog();
      const chat = await store.find(chatId);
      if (this.chatId !== chatId) return;
      this.chat = chat;
      const session = store.session(chat);
      this._listen(session);
      await this._composer?.open(chat, session);
      await log;
      await this._loadHistory();
    } catch (error) {
      if (!isApiError(error)) throw error;
      if (this.chatId === chatId) this._error = error;
    }
  }

  _leave() {
    this._listeners.abort();
    this._listeners = new AbortController();
    this.session?.typing(false);
    [this.session, this.chat, this._error] = [null, null, null];
    [this.chatId, this._hasReaders] = ["", false];
  }

  /** Give the composer the focus. */
  focusComposer() {
    this._composer?.focusText();
  }

  /**
   * The user was removed from the open chat; close what they see.
   * @param {string} chatId
   */
  _removed(chatId) {
    client.leave(chatId);
    if (chatId !== this.chatId) return;
    this._leave();
    this.chatId = chatId;
    page.dispatch({ type: "opened", chatId });
    this._error = { code: "removed", message: "" };
  }

  /** @param {string} text to show in the composer for a moment */
  _say = (text) => this._composer?.say(text);

  /** @param {ChatSession} session */
  _listen(session) {
    this.session = session;
    const { signal } = this._listeners;
    const on = detailListener(session, signal);
    followSession(page, session, signal);
    on("message", (/** @type {{message: Frame, seq: number}} */ event) => this._onMessage(event));
    on("transcript", (/** @type {Frame} */ event) =>
      learnTranscript(
        page.state.entries.find(({ id }) => id === event.message_id),
        event.transcript,
      ),
    );
    on("act", (/** @type {Frame} */ event) => this._onAct(event));
    on("response", (/** @type {LiveResponse} */ response) => this._onResponse(response));
    on("response-end", (/** @type {LiveResponse} */ response) => this._onResponseEnd(response));
    on("typing", (/** @type {{user_id: string, username: string, is_typing: boolean}} */ event) =>
      this._typing?.typed(event),
    );
    on("read", (/** @type {Frame} */ event) => showReader(this.chat, event));
    on("approvals", (/** @type {import("../uamp/approvals.js").Approval|null} */ asked) =>
      this._announcements.approvals(session.approvals.list, asked),
    );
    if (this._list)
      new ChatMoney(this._list, (text) => this._say(text)).listen(session, () => this.chat, signal);
    on("ready", () => this._markRead());
    on("reset", (/** @type {{epoch: string}} */ event) => this._onReset(event));
    on("limit", () => this._say(gettext("You're sending messages too fast. Wait a moment.")));
    on("error", (/** @type {Frame & {message: string, fatal?: boolean}} */ error) =>
      this._onError(error),
    );
  }

  async _loadHistory() {
    const { chatId, session } = this;
    if (!session) return;
    const receipts = readersOf(chatId);
    // Awaited below; until then a failure must not count as unhandled.
    receipts.catch(() => {});
    const wanted = this._wanted;
    this._wanted = "";
    await this._places.begin(wanted, session.failures);
    if (this.chatId !== chatId || this.session !== session) return;
    if (this._history.isKept) {
      catchUp(page, session);
      session.addEventListener("ready", () => this._places.goTo(() => this._readAgain()), {
        once: true,
        signal: this._listeners.signal,
      });
      return;
    }
    const readers = await receipts;
    if (this.chatId !== chatId || this.session !== session) return;
    page.dispatch({ type: "readers", readers });
    if (this.chat?.unread)
      page.dispatch({ type: "unread-after", seq: readers.get(me.id)?.seq ?? 0 });
    catchUp(page, session);
    this._showRunning();
    this._hasReaders = true;
    this._markRead();
    this._loadPins();
  }

  /** Show a message of the open chat, loading its place if needed. @param {string} id */
  showMessage(id) {
    return this._places.show(id);
  }

  _loadPins() {
    return this._places.goTo(() => this._history.loadPins());
  }

  async _readAgain() {
    page.dispatch({ type: "emptied" });
    await this._loadHistory();
  }

  /** @param {{epoch: string}} event */
  async _onReset(event) {
    await this._readAgain();
    this.session?.reconcile(
      event.epoch,
      page.state.entries.map((e) => ({ ...e, created_at: e.at })),
    );
  }

  /** @param {{message: Frame, seq: number}} event */
  async _onMessage({ message, seq }) {
    let entry = entryOf(message, seq);
    const { session } = this;
    if (!session) return;
    if (entry.reply_to && isShownIn(page.state, entry)) {
      entry = await this._history.withQuote(entry);
      if (session !== this.session) return;
    }
    session.approvals.clearClosed();
    page.dispatch({ type: "message", entry });
    if (!isShownIn(page.state, entry)) {
      this._typing?.stopped(entry.sender_id);
      return;
    }
    if (isFrom(entry, me.id)) {
      this._list?.toBottom?.();
      if (!this._isReplayed(seq)) this.dispatchEvent(new Event("message-sent", { bubbles: true }));
    } else if (entry.sender_kind === "user") {
      this._typing?.stopped(entry.sender_id);
      if (!this._isReplayed(seq)) this._announcements.message(entry);
    }
    this._markRead();
  }

  /**
   * A member acted on a message: the state applies it, except for what only the server knows.
   * @param {Frame} event
   */
  _onAct(event) {
    const entry = page.state.entries.find(({ id }) => id === event.message_id);
    if (event.type === "message.deleted" && event.thread) this._countAgain(event.thread);
    if (isUnclear(entry, event)) this._places.goTo(() => this._history.refresh(event.message_id));
    if (event.type === "message.pinned" && page.state.loaded) this._loadPins();
  }

  /** A reply was deleted: the server counts the remaining ones. @param {string} rootId */
  _countAgain(rootId) {
    const root = page.state.entries.find((entry) => rootOf(entry) === rootId);
    if (root) this._places.goTo(() => this._history.refresh(root.id));
  }

  /** @param {Entry} entry */
  _reply(entry) {
    page.dispatch({ type: "reply-to", entry });
    this._composer?.focusText();
  }

  /** @param {LiveResponse} response */
  _onResponse(response) {
    if (!page.state.live.has(response.id)) return;
    this._announcements.answering(response);
    this._showRunning();
  }

  /** @param {LiveResponse} response */
  _onResponseEnd(response) {
    if (!response.thread) this._announcements.ended(response);
    this._showRunning();
  }

  _showRunning() {
    if (page.state.own === this._ownShown) return;
    this._ownShown = page.state.own;
    this._composer?.showRunning(this.session?.ownResponses.filter(({ thread }) => !thread) ?? []);
  }

  /**
   * Stop the user's own answers, if nothing is being written.
   * @param {KeyboardEvent} event
   * @returns {boolean} whether the key had this meaning
   */
  escape(event) {
    return Boolean(
      this.session &&
        this.contains(/** @type {Node} */ (event.target)) &&
        onEscape(event, this._composer),
    );
  }

  _markRead() {
    if (this._hasReaders) markRead(this.session, this._list);
  }

  /** @param {number} seq */
  _isReplayed(seq) {
    return seq <= (this.session?.replayedTo ?? 0);
  }

  /** @param {Frame & {message: string, fatal?: boolean}} error */
  async _onError(error) {
    const { chatId } = this;
    if (error.fatal) {
      if ((await checkSignedIn()) && this.chatId === chatId) this._error = error;
    } else this._say(error.message || error.code);
  }
}
customElements.define("chat-view", ChatView);
