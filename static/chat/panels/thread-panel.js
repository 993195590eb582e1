/**
 * The open thread beside the chat: its first message, its replies, and its own composer. On a phone
 * it covers the chat.
 */

import { isApiError } from "../api.js";
import { api, me, store, threadPage } from "../context.js";
import { ChatMoney } from "../money/chat-money.js";
import { copyText } from "../controls/clipboard.js";
import { decide, mayDecide } from "../decisions.js";
import { announce } from "../dom.js";
import { Announcements } from "../log/announcements.js";
import { isUnclear } from "../store/acts.js";
import { entryOf, isFrom } from "../store/entry.js";
import { History, catchUp, followSession } from "../store/history.js";
import { newestOfOthers } from "../store/open-chat.js";
import { View, glyph } from "../view.js";
import { html, repeat } from "../../vendor/lit/lit.js";
import { threadLink } from "../actions/actions.js";
import "../composer/composer.js";
import "../log/message-list.js";
import { gettext, interpolate } from "../words.js";

/** Fires (bubbling) `close-thread`, and `open-message` for a message that is not in the thread. */
export class ThreadPanel extends View {
  static properties = {
    rootId: { attribute: false },
    _problem: { state: true },
  };

  constructor() {
    super();
    this.rootId = "";
    this._chatId = "";
    /** Counts the threads that were opened: each has a list and a composer of its own. */
    this._opened = 0;
    /** @type {{status: number, message: string}|null} */
    this._problem = null;
    this._listeners = new AbortController();
    this._history = new History(threadPage, api);
    this._announcements = new Announcements();
  }

  connectedCallback() {
    super.connectedCallback();
    this.setAttribute("role", "complementary");
    this.setAttribute("aria-label", gettext("Thread"));
    this.addEventListener("show-message", (e) =>
      this.showMessage(/** @type {CustomEvent} */ (e).detail),
    );
    this.addEventListener("say", (e) => this._composer?.say(/** @type {CustomEvent} */ (e).detail));
    store.addEventListener("change", () => this.requestUpdate());
    document.addEventListener("visibilitychange", () => this._markRead());
    addEventListener("focus", () => this._markRead());
  }

  render() {
    if (!this.rootId) return "";
    const chat = store.get(this._chatId);
    return html` <header class="panel-head">
        <div class="chat-title">
          <h2>${gettext("Thread")}</h2>
          ${chat ? html`<p dir="auto">${store.nameOf(chat)}</p>` : ""}
        </div>
        <button
          type="button"
          class="icon-button"
          aria-label=${gettext("Copy the link to this thread")}
          title=${gettext("Copy the link to this thread")}
          @click=${() => this._copyLink()}
        >
          ${glyph("link")}
        </button>
        <button
          type="button"
          class="icon-button"
          aria-label=${gettext("Close the thread")}
          title=${gettext("Close the thread (Esc)")}
          data-testid="close-thread"
          @click=${() => this._close()}
        >
          ${glyph("close")}
        </button>
      </header>
      ${this._problem ? this._failure(this._problem) : this._body()}`;
  }

  /** @param {{status: number, message: string}} problem */
  _failure({ status, message }) {
    if (status === 404) {
      return html`<div class="empty" role="note">
        ${glyph("alert")}
        <h3>${gettext("Thread not found")}</h3>
        <p>${gettext("It doesn't exist, or you're not a member of the chat.")}</p>
      </div>`;
    }
    return html`<div class="empty" role="note">
      ${glyph("alert")}
      <h3>${gettext("Couldn't load the thread")}</h3>
      <p>${message}</p>
      <button type="button" class="button button-primary" @click=${() => this._again()}>
        ${gettext("Try again")}
      </button>
    </div>`;
  }

  _again() {
    const { _chatId: chatId, rootId } = this;
    this.leave();
    this.open(chatId, rootId);
  }

  _body() {
    return repeat(
      [this._opened],
      (opened) => opened,
      () =>
        html` <message-list
            .mayDecide=${(/** @type {any} */ approval) =>
              this._chat !== undefined && mayDecide(this._chat, approval)}
            @bottom=${() => this._markRead()}
            @older=${() => this._history.loadOlder()}
            @newer=${() => this._history.loadNewer()}
            @newest=${() => this._goTo(() => this._history.loadNewest())}
            @place=${(/** @type {CustomEvent} */ e) =>
              this._goTo(() => this._history.loadAround(e.detail))}
            @retry-turn=${(/** @type {CustomEvent} */ e) => this._session.retry(e.detail)}
            @discard-turn=${(/** @type {CustomEvent} */ e) => this._session.discard(e.detail)}
            @ask-again=${(/** @type {CustomEvent} */ e) => this._composer.write(e.detail)}
            @reply=${(/** @type {CustomEvent} */ e) => this._reply(e.detail)}
            @edit-and-ask=${(/** @type {CustomEvent} */ e) => this._editAndAsk(e)}
            @answer-again=${(/** @type {CustomEvent} */ e) => this._answerAgain(e.detail)}
            @stop-answer=${(/** @type {CustomEvent} */ e) => this._stopAnswer(e.detail)}
            @decide=${(/** @type {CustomEvent} */ e) =>
              decide(this._session, e.detail, (text) => this._composer.say(text))}
          ></message-list>
          <chat-composer></chat-composer>`,
    );
  }

  /** @returns {any} */
  get _list() {
    return this.querySelector("message-list");
  }

  /** @returns {any} */
  get _composer() {
    return this.querySelector("chat-composer");
  }

  /** @param {string} chatId @param {string} rootId */
  isOpenAt(chatId, rootId) {
    return this._chatId === chatId && this.rootId === rootId;
  }

  /**
   * Show a thread.
   * @param {string} chatId @param {string} rootId its first message
   * @param {string} [messageId] the reply to show and mark
   */
  async open(chatId, rootId, messageId = "") {
    if (this.isOpenAt(chatId, rootId)) {
      if (messageId) this.showMessage(messageId);
      else this._composer?.focusText();
      return;
    }
    const isAsked = document.activeElement !== document.body;
    this.leave();
    [this._chatId, this.rootId, this._problem] = [chatId, rootId, null];
    this._opened += 1;
    const isHere = () => this.isOpenAt(chatId, rootId);
    threadPage.dispatch({ type: "opened", chatId, thread: rootId });
    await this.updateComplete;
    try {
      const chat = store.get(chatId) || (await store.reload(chatId));
      if (!isHere()) return;
      this._chat = chat;
      this._listen(store.session(chat));
      await this._composer.open(chat, this._session);
      // Opening a thread focuses its composer; on a phone, the keyboard would cover it.
      if (!messageId && matchMedia("(pointer: fine)").matches) this._composer.focusText();
      else if (isAsked) this._list.querySelector(".log").focus({ preventScroll: true });
      await this._load(messageId);
      if (!isHere()) return;
      catchUp(threadPage, this._session);
      this._showRunning();
      this._markRead();
    } catch (error) {
      if (!isApiError(error)) throw error;
      if (isHere()) this._problem = error;
    }
  }

  /** Close the thread. */
  leave() {
    this._listeners.abort();
    this._listeners = new AbortController();
    this._session = null;
    [this.rootId, this._chatId] = ["", ""];
    threadPage.dispatch({ type: "opened", chatId: "", thread: "" });
  }

  /**
   * Handle Escape in the thread before it closes the panel.
   * @returns {boolean} whether it had an effect
   */
  escape() {
    if (threadPage.state.replyTo) {
      threadPage.dispatch({ type: "reply-to", entry: null });
      return true;
    }
    return Boolean(this._composer?.isEmpty && this._composer.stopOwn());
  }

  /** Show a message of the thread, or open the chat at it. @param {string} id */
  async showMessage(id) {
    if (threadPage.state.entries.some((entry) => entry.id === id))
      threadPage.dispatch({ type: "target", id });
    else if (!(await this._isShown(id))) {
      this.dispatchEvent(
        new CustomEvent("open-message", {
          bubbles: true,
          detail: { chatId: this._chatId, messageId: id },
        }),
      );
    }
  }

  /** @param {string} id @returns {Promise<boolean>} whether the thread has the message */
  async _isShown(id) {
    try {
      await this._history.loadAround(id);
    } catch (/** @type {any} */ error) {
      if (error.status !== 404 && error.status !== 400) throw error;
      return false;
    }
    threadPage.dispatch({ type: "target", id });
    return true;
  }

  /** @param {string} messageId */
  async _load(messageId) {
    if (messageId && (await this._isShown(messageId))) return;
    await this._history.load(this._session.failures);
    const replies = threadPage.state.entries[0]?.replies;
    if (replies?.following && replies.readSeq < replies.lastSeq)
      threadPage.dispatch({ type: "unread-after", seq: replies.readSeq });
  }

  /** @param {any} session */
  _listen(session) {
    this._session = session;
    const { signal } = this._listeners;
    const on = (/** @type {string} */ type, /** @type {(detail: any) => void} */ listener) =>
      session.addEventListener(type, (/** @type {CustomEvent} */ e) => listener(e.detail), {
        signal,
      });
    followSession(threadPage, session, signal);
    on("message", (event) => this._onMessage(event));
    on("act", (event) => this._onAct(event));
    on("response", (response) => this._onResponse(response));
    on("response-end", (response) => this._onResponseEnd(response));
    on("ready", () => this._markRead());
    on("reset", () => this._onReset());
    new ChatMoney(this._list, (text) => this._composer.say(text), threadPage).listen(
      session,
      () => store.get(this._chatId) || this._chat,
      signal,
    );
  }

  async _onReset() {
    threadPage.dispatch({ type: "emptied" });
    await this._goTo(() => this._load(""));
  }

  /** @param {{message: any, seq: number}} event */
  async _onMessage({ message, seq }) {
    let entry = entryOf(message, seq);
    const { _session: session, rootId } = this;
    if (entry.thread !== rootId) return;
    if (entry.reply_to) {
      entry = await this._history.withQuote(entry);
      if (session !== this._session || rootId !== this.rootId) return;
    }
    threadPage.dispatch({ type: "message", entry });
    if (isFrom(entry, me.id)) this._list.toBottom();
    else if (entry.sender_kind === "user" && seq > session.replayedTo)
      announce(interpolate(gettext("New reply from %(name)s"), { name: entry.name }));
    this._markRead();
  }

  /** @param {any} event */
  _onAct(event) {
    const entry = threadPage.state.entries.find(({ id }) => id === event.message_id);
    if (isUnclear(entry, event)) this._goTo(() => this._history.refresh(event.message_id));
  }

  /** @param {any} response */
  _onResponse(response) {
    if (!threadPage.state.live.has(response.id)) return;
    this._announcements.answering(response);
    this._showRunning();
  }

  /** @param {any} response */
  _onResponseEnd(response) {
    if (response.thread === this.rootId) this._announcements.ended(response);
    this._showRunning();
  }

  _showRunning() {
    this._composer?.showRunning(
      this._session.ownResponses.filter((/** @type {any} */ one) => one.thread === this.rootId),
    );
  }

  /** @param {import("../store/entry.js").Entry} entry */
  _reply(entry) {
    threadPage.dispatch({ type: "reply-to", entry });
    this._composer.focusText();
  }

  /** @param {CustomEvent} event */
  _editAndAsk(event) {
    if (this._session.editAndAsk(event.detail)) return;
    event.preventDefault();
    this._composer.say(gettext("You're offline. Try again when you're back online."));
  }

  /** @param {{id: string}} entry */
  _answerAgain({ id }) {
    if (!this._session.answerAgain(id))
      this._composer.say(gettext("You're offline. Try again when you're back online."));
  }

  /** @param {any} response */
  _stopAnswer(response) {
    this._session.cancel(response.id);
    announce(
      interpolate(gettext("Stopping %(name)s"), { name: response.agent || gettext("the answer") }),
    );
  }

  /** @param {() => Promise<any>} load */
  async _goTo(load) {
    try {
      await load();
    } catch (error) {
      if (!isApiError(error)) throw error;
      this._composer?.say(error.message);
    }
  }

  /** Mark the thread as read, if its end is on the screen and the user follows it. */
  _markRead() {
    if (!this._session || document.hidden || !this._list?.atBottom) return;
    const root = threadPage.state.entries.find(({ id }) => id === this.rootId);
    const newest = newestOfOthers(threadPage.state);
    if (
      !newest ||
      newest.alsoInChat ||
      newest.id === this.rootId ||
      (root && !root.replies?.following)
    )
      return;
    if (newest.seq <= Math.max(root?.replies?.readSeq ?? 0, this._read ?? 0)) return;
    if (this._session.markRead(newest.id)) this._read = newest.seq;
  }

  async _copyLink() {
    announce(
      (await copyText(threadLink(this._chatId, this.rootId)))
        ? gettext("Link copied.")
        : gettext("Copying is blocked by the browser."),
    );
  }

  _close() {
    this.dispatchEvent(new Event("close-thread", { bubbles: true }));
  }
}
customElements.define("thread-panel", ThreadPanel);
