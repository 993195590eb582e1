/** The composer: text, attachments, mentions, commands; send and stop. */

import { drafts, pageAt, settings, store } from "../context.js";
import { Selected } from "../store/store.js";
import { announce } from "../dom.js";
import { costLine } from "../money/price.js";
import { View } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import "../actions/quote.js";
import { Attachments } from "./attachments.js";
import { alsoInChat, takeAlsoInChat } from "./also-in-chat.js";
import { commandOf, outcomeOf } from "./commands.js";
import { composerButton, sendButton, stopButton } from "./composer-button.js";
import { takeDrops } from "./drops.js";
import { emojiButton } from "./emoji-button.js";
import { meaningOf } from "./keys.js";
import { MAX_TEXT, longText } from "./pasting.js";
import { placeholder } from "./placeholder.js";
import { withEmoji } from "../text/emoji.js";
import "./mention-hint.js";
import { kinds } from "./suggestion-kinds.js";
import { Suggestions } from "./suggestions.js";
import { VoiceNote } from "./voice-note.js";
import { gettext } from "../words.js";

const NOTE_MS = 6_000;

/** @typedef {import("../store/chat.js").Chat} Chat */

export class ChatComposer extends View {
  static properties = {
    _chat: { state: true },
    _own: { state: true },
    _value: { state: true },
    _note: { state: true },
  };

  constructor() {
    super();
    /** @type {Chat|undefined} */
    this._chat = undefined;
    /** @type {any} */
    this._session = null;
    /** Whether to send the text once the chat is loaded. */
    this._isSentOnOpening = false;
    /** @type {import("../../uamp/live-response.js").LiveResponse[]} */
    this._own = [];
    this._value = "";
    this._note = "";
    this._noteTimer = 0;
    this._files = new Attachments(this, (text) => this.say(text));
    this._voice = new VoiceNote(
      this,
      (text) => this.say(text),
      (file) => this._files.add([file]),
    );
    this._suggestions = new Suggestions(
      this,
      () => this._text,
      kinds(() => this._chat),
    );
    this._onChats = () => this._chatsChanged();
    /** Whether the next message waits for the running answers. */
    this._isQueued = false;
    this._works = new Selected(
      this,
      () => this._page,
      (state) => state.works,
    );
  }

  connectedCallback() {
    super.connectedCallback();
    this._value = drafts.get(this._draft);
    store.addEventListener("change", this._onChats);
    takeDrops(this, this._view, (event) => this._take(event, event.dataTransfer?.files));
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    clearTimeout(this._noteTimer);
    store.removeEventListener("change", this._onChats);
  }

  /** The chat or thread that it belongs to. */
  get _view() {
    return /** @type {HTMLElement} */ (this.closest("thread-panel, chat-view"));
  }

  get _page() {
    return pageAt(this);
  }

  /** The storage name of the draft written here; known before the chat is loaded. */
  get _draft() {
    const { chatId, thread } = this._page.state;
    return [this._chat?.id ?? chatId, thread].filter(Boolean).join(" ");
  }

  /** @returns {HTMLTextAreaElement} */
  get _text() {
    return /** @type {HTMLTextAreaElement} */ (this.querySelector("textarea"));
  }

  render() {
    const price = this._value.trim() && this._chat ? costLine(this._chat, this._value) : "";
    const canSend = this._value.trim() !== "" || !this._files.isEmpty;
    const { thread } = this._page.state;
    const of = thread ? "thread-" : "";
    return html` <p class="composer-note" role="status" ?hidden=${!this._note}>${this._note}</p>
      <form class="composer" @submit=${(/** @type {Event} */ event) => this._submit(event)}>
        ${this._suggestions.template(of)}<reply-preview
        ></reply-preview>${this._voice.template()}${this._files.template()}
        <div class="composer-row">
          ${composerButton({
            name: "attach",
            label: gettext("Attach files"),
            icon: "attach",
            press: () => this._picker.click(),
          })}
          <input
            type="file"
            multiple
            hidden
            tabindex="-1"
            data-testid="file-input"
            @change=${() => this._picked()}
          />
          <textarea
            id="${of}composer-text"
            rows="1"
            dir="auto"
            data-testid="composer"
            aria-label=${thread ? gettext("Reply in the thread") : gettext("Message")}
            placeholder=${placeholder(this._chat, thread)}
            enterkeyhint="send"
            autocomplete="off"
            maxlength=${MAX_TEXT}
            aria-describedby="${of}price-line"
            aria-autocomplete="list"
            aria-controls="${of}suggestions"
            aria-activedescendant=${this._suggestions.activeId}
            @input=${() => this._written()}
            @keydown=${(/** @type {KeyboardEvent} */ event) => this._key(event)}
            @paste=${(/** @type {ClipboardEvent} */ event) => this._pasted(event)}
            @blur=${() => this._left()}
          ></textarea>
          ${emojiButton(
            () => this._text,
            () => this._written(),
          )} ${this._voice.button()}
          ${stopButton(this._own, () => this.stopOwn())}
          ${composerButton({
            name: "send-later",
            label: gettext("Queue (send when the answer is done)"),
            icon: "clock",
            isHidden: !this._mayQueue || !canSend,
            press: () => this._queue(),
          })}
          ${sendButton(canSend)}
        </div>
      </form>
      ${thread ? alsoInChat() : ""}
      <mention-hint .chat=${this._chat} .text=${this._value}></mention-hint>
      <p class="price-line" id="${of}price-line" data-testid="price-line" ?hidden=${!price}>
        ${price}
      </p>
      <div class="drop-hint" aria-hidden="true">${gettext("Drop files to attach them")}</div>`;
  }

  /** Show the draft before anyone can write, so that it never replaces a text. */
  firstUpdated() {
    this._text.value = this._value;
  }

  updated() {
    const text = this._text;
    text.style.height = "auto";
    text.style.height = `${text.scrollHeight}px`;
  }

  /** @param {Chat} chat @param {import("../../uamp/chat-session.js").ChatSession} session */
  async open(chat, session) {
    this._chat = chat;
    this._session = session;
    await this.updateComplete;
    if (this._isSentOnOpening) {
      this._isSentOnOpening = false;
      this.say("");
      this.querySelector("form")?.requestSubmit();
    }
    // After a click on a chat, focus the text field, unless another element has the focus. On a
    // phone the keyboard would cover the chat.
    const isFree =
      document.activeElement === document.body || document.activeElement?.matches(".chat-item");
    if (matchMedia("(pointer: fine)").matches && isFree) this._text.focus();
  }

  /** Give the text field the focus. */
  focusText() {
    this._text.focus();
  }

  /** Suggest a text, unless something is written already. @param {string} text */
  write(text) {
    if (!this._text.value.trim()) {
      this._text.value = text;
      this._written();
    }
    this._text.focus();
  }

  /** Return a text to the field, above whatever is written there. @param {string} text */
  putBack(text) {
    this._text.value = [text, this._text.value].filter(Boolean).join("\n");
    this._written();
    this._text.focus();
  }

  /**
   * Show whether there is something to stop.
   * @param {import("../../uamp/live-response.js").LiveResponse[]} responses running answers that
   *   this user asked for
   */
  async showRunning(responses) {
    const stop = this.querySelector(".stop");
    const hadFocus = stop !== null && document.activeElement === stop;
    this._own = responses;
    await this.updateComplete;
    if (hadFocus && responses.length === 0) this._text.focus();
  }

  /** Show the user a text for a moment. @param {string} text */
  say(text) {
    clearTimeout(this._noteTimer);
    this._note = text;
    this._noteTimer = window.setTimeout(() => {
      this._note = "";
    }, NOTE_MS);
  }

  /**
   * Stop the answers that this user asked for. Answers to others have their own buttons.
   * @returns {boolean} whether there was one
   */
  stopOwn() {
    if (this._own.length === 0) return false;
    for (const response of this._own) this._session.cancel(response.id);
    announce(gettext("Stopping"));
    return true;
  }

  /** Whether nothing is written or attached. */
  get isEmpty() {
    return this._text.value === "" && this._files.isEmpty;
  }

  get _picker() {
    return /** @type {HTMLInputElement} */ (this.querySelector("input[type=file]"));
  }

  /** Open the browser's file picker. */
  chooseFiles() {
    this._picker.click();
  }

  _picked() {
    this._files.add(this._picker.files ?? []);
    this._picker.value = "";
    this._text.focus();
  }

  /** @param {Event} event @param {FileList} [files] */
  _take(event, files) {
    if (!files?.length) return;
    event.preventDefault();
    this._files.add(files);
  }

  /**
   * Attach pasted files, and text that is too long for a message.
   * @param {ClipboardEvent} event
   */
  _pasted(event) {
    const { clipboardData: pasted } = event;
    this._take(event, pasted?.files);
    const file = event.defaultPrevented ? null : longText(event, this._text);
    if (!file) return;
    event.preventDefault();
    this._files.add([file]);
    this.say(gettext("The pasted text is too long for a message, so it was attached as a file."));
  }

  _left() {
    this._session?.typing(false);
    this._suggestions.close();
  }

  _written() {
    const replaced = withEmoji(this._text.value, this._text.selectionStart);
    if (replaced) {
      this._text.value = replaced.text;
      this._text.setSelectionRange(replaced.caret, replaced.caret);
    }
    this._value = this._text.value;
    this._suggestions.update();
    drafts.write(this._draft, this._value);
    if (settings.values.typing_notices) this._session?.typing(this._value.trim() !== "");
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    // Enter belongs to an input method while it composes; some browsers signal that only by 229.
    if (event.isComposing || event.keyCode === 229) return;
    if (this._voice.escape(event)) return;
    if (this._suggestions.key(event)) {
      event.preventDefault();
      return;
    }
    const meaning = meaningOf(event, this._mayQueue);
    if (!meaning) return;
    event.preventDefault();
    if (meaning === "queue") this._queue();
    else this.querySelector("form")?.requestSubmit();
  }

  /** Whether an answer is running after which a message can be sent. */
  get _mayQueue() {
    return this._works.value.length > 0 && !this._page.state.thread;
  }

  /** Send the text when the running answers have ended. */
  _queue() {
    this._isQueued = true;
    this.querySelector("form")?.requestSubmit();
    this._isQueued = false;
  }

  /** @param {Event} event */
  _submit(event) {
    event.preventDefault();
    const text = this._text.value.trim();
    if (!text && this._files.isEmpty) return;
    if (!this._session) {
      this._isSentOnOpening = true;
      this.say(gettext("Loading the chat. Your message will be sent automatically."));
      return;
    }
    const reason = this._voice.isRecording
      ? gettext("Finish the voice note before you send.")
      : this._files.isBusy && gettext("Wait for the upload to finish before you send.");
    if (reason) {
      this.say(reason);
      return;
    }
    const called = this._files.isEmpty ? commandOf(this._text.value) : null;
    if (called) {
      this._run(called);
      return;
    }
    const { replyTo, thread } = this._page.state;
    this._session.send({
      text,
      attachments: this._files.take(),
      replyTo: replyTo?.id,
      thread,
      alsoInChat: takeAlsoInChat(this),
      queue: this._isQueued,
    });
    if (replyTo) this._page.dispatch({ type: "reply-to", entry: null });
    this._clear();
    // Without its script, the list starts at its end.
    /** @type {any} */ (this._view.querySelector("message-list")).toBottom?.();
  }

  /** @param {NonNullable<ReturnType<typeof commandOf>>} called */
  async _run(called) {
    if (called.command) this._clear();
    const answer = await outcomeOf(called, this);
    if (answer) this.say(answer);
  }

  _clear() {
    this._text.value = "";
    this._value = "";
    this._suggestions.close();
    drafts.set(this._draft, "");
    drafts.save();
    this._session.typing(false);
  }

  /** Members came or went, or another payer was chosen. */
  _chatsChanged() {
    if (this._chat) this._chat = store.get(this._chat.id) || this._chat;
    this._suggestions.refresh();
    this.requestUpdate();
  }
}
customElements.define("chat-composer", ChatComposer);
