/** Where one writes: text, attachments, mentions; send and stop. */

import { announce, h, iconButton } from "../dom.js";
import { drafts, page, store } from "../context.js";
import { AttachmentTray } from "./attachments.js";
import { MentionMenu } from "./mentions.js";
import { PriceLine } from "../price.js";
import "../actions/quote.js";
import "./mention-hint.js";

const NOTE_MS = 6_000;
const NAME_CHARS = 40;
const SAVE_AFTER_MS = 400;

function brief(name) {
  const characters = Array.from(name);
  return characters.length > NAME_CHARS ? `${characters.slice(0, NAME_CHARS).join("")}…` : name;
}

class ChatComposer extends HTMLElement {
  connectedCallback() {
    this._own = [];
    this._text = h("textarea", {
      id: "composer-text", rows: 1, dir: "auto", "data-testid": "composer", "aria-label": "Message",
      placeholder: "Message", enterkeyhint: "send", autocomplete: "off", maxlength: 100_000,
    });
    this._send = iconButton("send", "Send", { type: "submit", class: "send", "data-testid": "send" });
    this._stop = iconButton("stop", "Stop the answer", {
      class: "stop", "data-testid": "stop", hidden: true, onclick: () => this.stopOwn(),
    });
    this._files = h("input", { type: "file", multiple: true, hidden: true, tabindex: "-1", "data-testid": "file-input" });
    this._attach = iconButton("attach", "Attach files", {
      "data-testid": "attach", onclick: () => this._files.click(),
    });
    this._tray = new AttachmentTray(() => this._showSendable(), (text) => this.say(text));
    this._mentions = new MentionMenu(this._text);
    this._price = new PriceLine();
    this._hint = document.createElement("mention-hint");
    this._note = h("p", { class: "composer-note", role: "status", hidden: true });
    this._form = h(
      "form", { class: "composer", onsubmit: (e) => this._submit(e) },
      this._mentions.element, document.createElement("reply-preview"), this._tray.element,
      h("div", { class: "composer-row" }, this._attach, this._files, this._text, this._stop, this._send),
    );
    this._text.setAttribute("aria-describedby", "price-line");
    this.append(this._note, this._form, this._hint, this._price.element, h("div", { class: "drop-hint", "aria-hidden": "true" }, "Drop files to attach them"));
    this._listen();
    this._showSendable();
    this._onChats = () => this._chatsChanged();
    store.addEventListener("change", this._onChats);
  }

  disconnectedCallback() {
    clearTimeout(this._noteTimer);
    store.removeEventListener("change", this._onChats);
    this._tray.clear();
  }

  /** @param {import("../chat-store.js").Chat} chat @param {import("../../uamp/chat-session.js").ChatSession} session */
  open(chat, session) {
    this._chat = chat;
    this._session = session;
    this._text.value = drafts.get(chat.id);
    // A placeholder that does not fit would be cut in the middle of a letter.
    this._text.placeholder = matchMedia("(max-width: 519px)").matches ? "Message" : `Message ${brief(store.nameOf(chat))}`;
    this._mentions.members = store.others(chat);
    this._hint.chat = chat;
    this._hint.text = this._text.value;
    this._grow();
    this._showSendable();
    this._showPrice();
    // After a click on a chat, the person writes in it; any other focused element keeps the focus.
    // On a phone the keyboard would cover the chat.
    const isFree = document.activeElement === document.body || document.activeElement?.matches(".chat-item");
    if (matchMedia("(pointer: fine)").matches && isFree) this._text.focus();
  }

  /** Give the text field the focus. */
  focusText() {
    this._text.focus();
  }

  /** Propose a text; what is written already stays. */
  write(text) {
    if (!this._text.value.trim()) {
      this._text.value = text;
      this._written();
    }
    this._text.focus();
  }

  /**
   * Show whether there is something to stop.
   * @param {import("../../uamp/live-response.js").LiveResponse[]} responses running answers that this person asked for
   */
  showRunning(responses) {
    this._own = responses;
    const had = this._stop.hidden;
    this._stop.hidden = responses.length === 0;
    const names = responses.map((response) => response.agent || "agent").join(", ");
    this._stop.setAttribute("aria-label", `Stop ${names}`);
    if (!had && this._stop.hidden && document.activeElement === this._stop) this._text.focus();
  }

  /** Show the writer a text for a moment. */
  say(text) {
    clearTimeout(this._noteTimer);
    this._note.hidden = false;
    this._note.textContent = text;
    this._noteTimer = setTimeout(() => {
      this._note.hidden = true;
    }, NOTE_MS);
  }

  _listen() {
    this._text.addEventListener("input", () => this._written());
    this._text.addEventListener("keydown", (e) => this._key(e));
    this._text.addEventListener("paste", (e) => this._take(e, e.clipboardData.files));
    this._text.addEventListener("blur", () => this._session?.typing(false));
    this._files.addEventListener("change", () => {
      this._tray.add(this._files.files);
      this._files.value = "";
      this._text.focus();
    });
    const main = this.closest("chat-view");
    main.ondragover = (e) => {
      if (!e.dataTransfer.types.includes("Files")) return;
      e.preventDefault();
      this.classList.add("is-dropping");
    };
    main.ondragleave = (e) => {
      if (!main.contains(e.relatedTarget)) this.classList.remove("is-dropping");
    };
    main.ondrop = (e) => {
      this.classList.remove("is-dropping");
      this._take(e, e.dataTransfer.files);
    };
  }

  _take(event, files) {
    if (files.length === 0) return;
    event.preventDefault();
    this._tray.add(files);
  }

  _written() {
    this._grow();
    this._showSendable();
    this._mentions.update();
    this._hint.text = this._text.value;
    this._showPrice();
    if (!this._chat) return;
    drafts.set(this._chat.id, this._text.value);
    clearTimeout(this._saveTimer);
    this._saveTimer = setTimeout(() => drafts.save(), SAVE_AFTER_MS);
    this._session.typing(this._text.value.trim() !== "");
  }

  _key(event) {
    // While an input method composes, Enter belongs to it; some browsers say so only by 229.
    if (event.isComposing || event.keyCode === 229) return;
    if (this._mentions.key(event)) {
      event.preventDefault();
      return;
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this._form.requestSubmit();
    }
  }

  _submit(event) {
    event.preventDefault();
    const text = this._text.value.trim();
    if (!this._session || (!text && this._tray.isEmpty)) return;
    if (this._tray.isBusy) {
      this.say("The upload is not finished yet.");
      return;
    }
    this._session.send({ text, attachments: this._tray.take(), replyTo: page.state.replyTo?.id });
    if (page.state.replyTo) page.dispatch({ type: "reply-to", entry: null });
    this._text.value = "";
    drafts.set(this._chat.id, "");
    drafts.save();
    this._grow();
    this._showSendable();
    this._showPrice();
    this._mentions.close();
    this._hint.text = "";
    this.closest("chat-view").querySelector("message-list").toBottom();
  }

  /**
   * Stop the answers that this person asked for. Answers to others have a button of their own.
   * @returns {boolean} whether there was one
   */
  stopOwn() {
    if (this._own.length === 0) return false;
    for (const response of this._own) this._session.cancel(response.id);
    announce("Stopping");
    return true;
  }

  /** Whether nothing is written or attached. */
  get isEmpty() {
    return this._text.value === "" && this._tray.isEmpty;
  }

  _grow() {
    this._text.style.height = "auto";
    this._text.style.height = `${this._text.scrollHeight}px`;
  }

  /** Members came or went, or another payer was chosen. */
  _chatsChanged() {
    const chat = this._chat && store.get(this._chat.id);
    if (chat) this._mentions.members = store.others(chat);
    this._hint.chat = chat;
    this._showPrice();
  }

  /** What the text would cost as it stands, and the payer, which an owner may have changed. */
  _showPrice() {
    this._price.update(this._chat && (store.get(this._chat.id) || this._chat), this._text.value);
  }

  _showSendable() {
    this._send.disabled = !this._text.value.trim() && this._tray.isEmpty;
  }
}
customElements.define("chat-composer", ChatComposer);
