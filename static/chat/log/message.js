/** One message of the chat: who, when, what, and how it ended. */

import { fullTime, clockTime } from "../time.js";
import { View, face, glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { partsOf, partsTemplate } from "../parts/parts.js";
import { receiptTemplate } from "../cards/receipts.js";
import { transportBadge } from "./transport-badge.js";

const READERS_SHOWN = 5;
/** How many characters of a text are shown at first: people paste, agents write what one asked for. */
const SHOWN = { user: 4_000, agent: 20_000 };

/** Name, badges and time above a message. */
export const messageHead = (name, kind, at, transport) => html`
  <header class="message-head"><span class="message-name">${name}</span>${kind === "agent" ? html` <span class="badge">agent</span>` : ""}${transportBadge(transport, kind === "agent")}${
    at ? html` <time datetime=${new Date(at).toISOString()} title=${fullTime(at)}>${clockTime(at)}</time>` : ""}</header>`;

const ENDINGS = {
  cancelled: { text: "Stopped", icon: "stop" },
  failed: { text: "The answer failed", icon: "alert" },
};

/**
 * The line that says that an answer did not come to its end. Fires (bubbling) `ask-again` with the question.
 * @param {string} status @param {string} [error] @param {string} [again] the question, where it may be asked once more
 */
export function endingLine(status, error, again) {
  const ending = ENDINGS[status];
  if (!ending) return "";
  const ask = (event) => event.target.dispatchEvent(new CustomEvent("ask-again", { bubbles: true, detail: again }));
  return html`<p class="message-ending is-${status}">${glyph(ending.icon)}<span>${error ? `${ending.text}: ${error}` : ending.text}</span>${
    again ? html`<button type="button" class="link" data-testid="ask-again" @click=${ask}>Ask again</button>` : ""}</p>`;
}

const namesOf = (readers) => readers.map((reader) => reader.username).join(", ");

class ChatMessage extends View {
  static properties = {
    entry: { attribute: false },
    isMine: { attribute: false },
    follows: { attribute: false },
    error: { attribute: false },
    again: { attribute: false },
    readers: { attribute: false, hasChanged: (now, before) => !before || namesOf(now) !== namesOf(before) },
    receipt: { attribute: false },
  };

  constructor() {
    super();
    this.readers = [];
  }

  willUpdate(changed) {
    const { entry } = this;
    if (changed.has("entry")) this._parts = partsOf(entry);
    this._name = entry.name || (entry.sender_kind === "agent" ? "Agent" : "Someone");
    // A message that follows one of the same sender closely needs no head of its own.
    this.className = `message ${this.isMine ? "is-mine" : ""} from-${entry.sender_kind} ${this.follows ? "is-following" : ""}`;
    this.setAttribute("role", "article");
    this.setAttribute("aria-label", `${this.isMine ? "You" : this._name}, ${fullTime(entry.at)}`);
    Object.assign(this.dataset, { testid: "message", id: entry.id, status: entry.status });
  }

  render() {
    const { entry, isMine, _name: name } = this;
    return html`
      <div class="message-side">${face(name, entry.sender_kind)}</div>
      <div class="message-main">
        ${messageHead(isMine ? "You" : name, entry.sender_kind, entry.at, entry.transport)}
        <div class="bubble-row">
          <div class="bubble"><div class="parts">${partsTemplate(this._parts, { most: SHOWN[entry.sender_kind] })}</div>${endingLine(entry.status, this.error, this.again)}</div>
          <button type="button" class="icon-button message-more" aria-label=${`Actions for ${isMine ? "your message" : `the message of ${name}`}`}
            title=${`Actions for ${isMine ? "your message" : `the message of ${name}`}`} aria-haspopup="menu" aria-expanded="false" data-testid="message-more"
            @click=${(event) => this._more(event)}>${glyph("more")}</button>
        </div>
        <div class="message-foot">${this.receipt ? receiptTemplate(this.receipt) : ""}</div>
        ${this._readersTemplate()}
      </div>`;
  }

  _readersTemplate() {
    const names = namesOf(this.readers);
    return html`<div class="readers" title=${names}>${this.readers.slice(0, READERS_SHOWN).map((reader) => face(reader.username, "user"))}${
      names ? html`<span class="visually-hidden">Read by ${names}</span>` : ""}</div>`;
  }

  /** Fires (bubbling) `message-menu` with the message. */
  _more(event) {
    event.currentTarget.dispatchEvent(new CustomEvent("message-menu", { bubbles: true, detail: this.entry }));
  }
}
customElements.define("chat-message", ChatMessage);
