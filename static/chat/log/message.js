/** One message of the chat: who, when, what, and how it ended. */

import { actionsFor } from "../actions/actions.js";
import { onLongPress } from "../actions/long-press.js";
import { quoteTemplate } from "../actions/quote.js";
import { reactionsTemplate } from "../actions/reactions.js";
import { people } from "../person/looks.js";
import { fullTime, clockTime } from "../time.js";
import { View, face, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { partsOf, partsTemplate } from "../parts/parts.js";
import { receiptTemplate } from "../cards/receipts.js";
import { page, pageAt } from "../context.js";
import { replyStrip } from "./reply-strip.js";
import { transportBadge } from "./transport-badge.js";
import "../actions/message-editor.js";
import { gettext, interpolate } from "../words.js";

const READERS_SHOWN = 5;
/** How many characters of a text are shown at first: people paste, agents write what one asked for. */
const SHOWN = { user: 4_000, agent: 20_000 };
const MARKED_MS = 2_500;

/** Name, badges and time above a message. */
export const messageHead = (name, kind, at, transport) => html`
  <header class="message-head"><span class="message-name">${name}</span>${kind === "agent" ? html` <span class="badge">${gettext("agent")}</span>` : ""}${transportBadge(transport, kind === "agent")}${
    at ? html` <time datetime=${new Date(at).toISOString()} title=${fullTime(at)}>${clockTime(at)}</time>` : ""}</header>`;

const ENDINGS = {
  cancelled: { text: gettext("Stopped"), icon: "stop", because: (name) => interpolate(gettext("Stopped by %(name)s"), { name }) },
  failed: { text: gettext("The answer failed"), icon: "alert", because: (error) => interpolate(gettext("The answer failed: %(error)s"), { error }) },
};

/**
 * The line that says that an answer did not come to its end. Fires (bubbling) `ask-again` with the question.
 * @param {string} status @param {string} [reason] who stopped it, or why it failed
 * @param {string} [again] the question, where it may be asked once more
 */
export function endingLine(status, reason, again) {
  const ending = ENDINGS[status];
  if (!ending) return "";
  const ask = (event) => event.target.dispatchEvent(new CustomEvent("ask-again", { bubbles: true, detail: again }));
  return html`<p class="message-ending is-${status}">${glyph(ending.icon)}<span>${reason ? ending.because(reason) : ending.text}</span>${
    again ? html`<button type="button" class="link" data-testid="ask-again" @click=${ask}>${gettext("Ask again")}</button>` : ""}</p>`;
}

const namesOf = (readers) => readers.map((reader) => people.nameOf(reader.username)).join(", ");

/** Fires (bubbling) `message-menu` with the message, and what its actions fire. */
class ChatMessage extends View {
  static properties = {
    entry: { attribute: false },
    isMine: { attribute: false },
    follows: { attribute: false },
    error: { attribute: false },
    again: { attribute: false },
    readers: { attribute: false, hasChanged: (now, before) => !before || namesOf(now) !== namesOf(before) },
    receipt: { attribute: false },
    isEditing: { attribute: false },
    target: { attribute: false },
    _isNear: { state: true },
    _isMarked: { state: true },
  };

  constructor() {
    super();
    this.readers = [];
    // The buttons beside a message are made when the pointer or the focus comes.
    for (const type of ["pointerenter", "focusin"]) this.addEventListener(type, () => { this._isNear = true; });
    this.addEventListener("pointerleave", () => { this._isNear = this.contains(document.activeElement); });
    this.addEventListener("focusout", (event) => { this._isNear = this.matches(":hover") || this.contains(event.relatedTarget); });
    onLongPress(this, () => this.openMenu());
  }

  willUpdate(changed) {
    const { entry } = this;
    this._isInThread = pageAt(this) !== page;
    if (changed.has("entry")) this._parts = partsOf(entry);
    if (changed.has("target") && this.target) this._mark();
    this._name = (entry.sender_kind === "user" && people.nameOf(entry.name)) || entry.name || (entry.sender_kind === "agent" ? gettext("Agent") : gettext("A former member"));
    // A message that follows one of the same sender closely needs no head of its own.
    this.className = `message ${this.isMine ? "is-mine" : ""} from-${entry.sender_kind} ${this.follows ? "is-following" : ""} ${
      this._isMarked ? "is-marked" : ""} ${entry.deletedAt ? "is-deleted" : ""}`;
    this.tabIndex = -1;
    this.setAttribute("role", "article");
    this.setAttribute("aria-label", `${this.isMine ? gettext("You") : this._name}, ${fullTime(entry.at)}`);
    Object.assign(this.dataset, { testid: "message", id: entry.id, status: entry.status });
  }

  render() {
    const { entry, isMine, _name: name } = this;
    return html`
      <div class="message-side">${face(entry.name || name, entry.sender_kind)}</div>
      <div class="message-main">
        ${messageHead(isMine ? gettext("You") : name, entry.sender_kind, entry.at, entry.transport)}
        ${this.isEditing && !entry.deletedAt ? html`<message-editor .entry=${entry}></message-editor>` : this._bubbleRow()}
        ${reactionsTemplate(entry)}${this._isInThread ? this._shownInChat() : html`${this._fromThread()}${replyStrip(entry)}`}
        <div class="message-foot">${this._marks()}${this.receipt ? receiptTemplate(this.receipt) : ""}</div>
        ${this._readersTemplate()}
      </div>`;
  }

  /** That a reply is shown in the chat too. */
  _shownInChat() {
    return this.entry.thread && this.entry.alsoInChat ? html`<p class="thread-note">${gettext("Also sent to the chat")}</p>` : nothing;
  }

  /** The way from a reply in the chat to its thread. */
  _fromThread() {
    if (!this.entry.thread) return nothing;
    const open = () => this.dispatchEvent(new CustomEvent("open-thread", { bubbles: true, detail: this.entry }));
    return html`<button type="button" class="link thread-note" data-testid="from-thread" @click=${open}>${gettext("Replied in a thread")}</button>`;
  }

  /** Open the menu of the message, at the button beside it. */
  openMenu() {
    const button = this.querySelector(".message-more");
    button?.dispatchEvent(new CustomEvent("message-menu", { bubbles: true, detail: this.entry }));
  }

  _bubbleRow() {
    const { entry } = this;
    const actions = this.isMine ? gettext("Actions for your message") : interpolate(gettext("Actions for the message of %(name)s"), { name: this._name });
    return html`<div class="bubble-row">
      <div class="bubble">${entry.deletedAt ? html`<p class="deleted" data-testid="deleted">${gettext("This message was deleted.")}</p>`
        : html`${quoteTemplate(entry.reply_to)}<div class="parts">${partsTemplate(this._parts, { most: SHOWN[entry.sender_kind], agent: entry.sender_kind === "agent" ? name : "" })}</div>`}${endingLine(entry.status, this.error, this.again)}</div>
      <div class="message-tools">${this._isNear ? actionsFor(entry).filter(({ isQuick }) => isQuick).map((action) => this._quick(action)) : nothing}<button
        type="button" class="icon-button message-more" aria-label=${actions} title=${actions} aria-haspopup="menu" aria-expanded="false"
        data-testid="message-more" @click=${() => this.openMenu()}>${glyph("more")}</button></div>
    </div>`;
  }

  _quick(action) {
    const label = action.label(this.entry).replace("…", "");
    return html`<button type="button" class="icon-button message-quick" aria-label=${label} title=${label} data-testid="quick-${action.name}"
      @click=${() => action.run(this.entry, this.querySelector(".message-more"))}>${glyph(action.icon)}</button>`;
  }

  /** That it is pinned, and that it was edited, which opens the earlier texts. */
  _marks() {
    const { entry } = this;
    if (entry.deletedAt || (!entry.pinned && !entry.revision && !entry.versionOf)) return nothing;
    const fires = (type) => (event) => event.currentTarget.dispatchEvent(new CustomEvent(type, { bubbles: true, detail: entry }));
    return html`${entry.pinned ? html`<span class="mark" data-testid="pinned">${glyph("pin")}${gettext("Pinned")}</span>` : nothing}${
      entry.revision ? html`<button type="button" class="link mark" data-testid="edited" title=${fullTime(entry.editedAt)} @click=${fires("show-revisions")}>${gettext("Edited")}</button>` : nothing}${
      entry.versionOf ? html`<button type="button" class="link mark" data-testid="answered-again" @click=${fires("show-versions")}>${gettext("Answered again")}</button>` : nothing}`;
  }

  _readersTemplate() {
    const names = namesOf(this.readers);
    return html`<div class="readers" title=${names}>${this.readers.slice(0, READERS_SHOWN).map((reader) => face(reader.username, "user"))}${
      names ? html`<span class="visually-hidden">${interpolate(gettext("Read by %(names)s"), { names })}</span>` : ""}</div>`;
  }

  /** Stand out for a moment. */
  _mark() {
    this._isMarked = true;
    clearTimeout(this._marking);
    this._marking = setTimeout(() => { this._isMarked = false; }, MARKED_MS);
  }
}
customElements.define("chat-message", ChatMessage);
