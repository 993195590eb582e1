/** One message of the chat: its sender, time, content and status. */

import { actionsFor } from "../actions/actions.js";
import { onLongPress } from "../actions/long-press.js";
import { quoteTemplate } from "../actions/quote.js";
import { reactionsTemplate } from "../actions/reactions.js";
import { mentioned } from "../store/mentions.js";
import { people } from "../person/looks.js";
import { fullTime } from "../text/time.js";
import { View, face, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { partsOf, partsTemplate } from "../parts/parts.js";
import { receiptTemplate } from "../cards/receipts.js";
import { me, page, pageAt, start } from "../context.js";
import { replyStrip } from "./reply-strip.js";
import { endingLine, messageHead } from "./message-head.js";
import { isSignable } from "./signature-badge.js";
import { spokenText } from "../parts/spoken-text.js";
import { fromThread, shownInChat } from "./thread-notes.js";
import "../actions/message-editor.js";
import "../parts/link-cards.js";
import "./message-versions.js";
import { gettext, interpolate } from "../words.js";

const MAX_READERS = 5;
/**
 * How many characters of a text are shown at first: people paste, agents write what was asked for.
 */
const SHOWN = { user: 4_000, agent: 20_000 };
const MARKED_MS = 2_500;

/**
 * @typedef {import("../store/entry.js").Entry} Entry
 * @typedef {import("../store/open-chat.js").Reader} Reader
 */

const namesOf = (/** @type {Reader[]} */ readers) =>
  readers.map((reader) => people.nameOf(reader.username)).join(", ");

/** Fires (bubbling) `message-menu` with the message, and the events of its actions. */
export class ChatMessage extends View {
  static properties = {
    entry: { attribute: false },
    isMine: { attribute: false },
    follows: { attribute: false },
    error: { attribute: false },
    again: { attribute: false },
    readers: {
      attribute: false,
      hasChanged: (/** @type {Reader[]} */ now, /** @type {Reader[]|undefined} */ before) =>
        !before || namesOf(now) !== namesOf(before),
    },
    tick: { attribute: false },
    receipt: { attribute: false },
    isEditing: { attribute: false },
    isLatest: { attribute: false },
    isRemoved: { attribute: false },
    target: { attribute: false },
    _former: { state: true },
    _isNear: { state: true },
    _isMarked: { state: true },
  };

  constructor() {
    super();
    /** Set before it is rendered. @type {Entry} */
    this.entry = /** @type {Entry} */ (/** @type {unknown} */ (undefined));
    this.isMine = false;
    /** Whether it follows another message of its sender closely. */
    this.follows = false;
    /** Why the answer failed, or who stopped it. */
    this.error = "";
    /** The question, if it may be asked again. */
    this.again = "";
    /** @type {Reader[]} */
    this.readers = [];
    /** Whether the other person in the chat has read it. @type {"read"|"sent"|""} */
    this.tick = "";
    /** @type {import("../cards/receipts.js").Receipt|undefined} */
    this.receipt = undefined;
    this.isEditing = false;
    /** Whether no person wrote after it. */
    this.isLatest = false;
    /** Whether it is about to be deleted. */
    this.isRemoved = false;
    /** A new object each time the message is to be marked. @type {{id: string}|null} */
    this.target = null;
    this._isNear = false;
    this._isMarked = false;
    this._isInThread = false;
    this._marking = 0;
    this._name = "";
    /** @type {import("../../uamp/live-response.js").Part[]} */
    this._parts = [];
    /** @type {Entry|null} the former version that the reader chose */
    this._former = null;
    // The buttons beside a message are created on pointer or focus.
    for (const type of ["pointerenter", "focusin"])
      this.addEventListener(type, () => {
        this._isNear = true;
      });
    this.addEventListener("pointerleave", () => {
      this._isNear = this.contains(document.activeElement);
    });
    this.addEventListener("focusout", (event) => {
      this._isNear =
        this.matches(":hover") ||
        this.contains(/** @type {Node|null} */ (/** @type {FocusEvent} */ (event).relatedTarget));
    });
    onLongPress(this, () => this.openMenu());
  }

  /** The visible version: the newest until the reader chooses another. */
  get shown() {
    return this._former ?? this.entry;
  }

  /** @param {import("../../vendor/lit/lit.js").PropertyValues<ChatMessage>} changed */
  willUpdate(changed) {
    const { entry } = this;
    this._isInThread = pageAt(this) !== page;
    if (entry.deletedAt) this.isRemoved = false;
    // Show a deletion of the newest version, or a newer version, at once.
    if (changed.has("entry") && (entry.deletedAt || changed.get("entry")?.id !== entry.id))
      this._former = null;
    if (changed.has("entry") || changed.has("_former")) this._parts = partsOf(this.shown);
    if (changed.has("target") && this.target) this._mark();
    this._name =
      (entry.sender_kind === "user" && people.nameOf(entry.name)) ||
      entry.name ||
      (entry.sender_kind === "agent" ? gettext("Agent") : gettext("A former member"));
    // A message soon after another of the same sender needs no head.
    this.className = `message ${this.isMine ? "is-mine" : ""} from-${entry.sender_kind} ${
      this.follows ? "is-following" : ""
    } ${this._isMarked ? "is-marked" : ""} ${
      this._mentionsMe ? "is-for-me" : ""
    } ${this.isRemoved ? "is-removed" : ""} ${entry.deletedAt ? "is-deleted" : ""}`;
    this.tabIndex = -1;
    this.setAttribute("role", "article");
    this.setAttribute("aria-label", this._spoken());
    Object.assign(this.dataset, { testid: "message", id: entry.id, status: entry.status });
  }

  /** Whether it mentions this user. */
  get _mentionsMe() {
    const { content, deletedAt } = this.entry;
    return !this.isMine && !deletedAt && mentioned(content, [me.username]).size > 0;
  }

  /**
   * Return the text that screen readers announce for the focused message: author, content, time.
   */
  _spoken() {
    const author = this.isMine ? gettext("You") : this._name;
    return `${author}: ${spokenText(this.shown)}, ${fullTime(this.shown.at)}`;
  }

  render() {
    const { entry, isMine, _name: name } = this;
    return html` <div class="message-side">
        <button
          type="button"
          class="face-button"
          tabindex="-1"
          aria-label=${interpolate(gettext("%(name)s's profile"), { name })}
          ?disabled=${!entry.name}
          data-testid="open-profile"
          @click=${() => this._openProfile()}
        >
          ${face(entry.name || name, entry.sender_kind)}
        </button>
      </div>
      <div class="message-main">
        ${messageHead(
          isMine ? gettext("You") : name,
          entry.sender_kind,
          this.shown.at,
          this.shown.transport,
        )}
        ${
          this.isEditing && !entry.deletedAt
            ? html`<message-editor .entry=${entry}></message-editor>`
            : this._bubbleRow()
        }
        ${this._linkCards()}${this._former ? nothing : reactionsTemplate(entry)}${
          this._isInThread ? shownInChat(entry) : html`${fromThread(entry)}${replyStrip(entry)}`
        }
        <div class="message-foot">
          ${this._answerTools()}${this._marks()}${
            isSignable(this.shown)
              ? html`<signature-badge .entry=${this.shown}></signature-badge>`
              : nothing
          }${this._tick()}${
            this.receipt && !this._former ? receiptTemplate(this.receipt, this.shown) : ""
          }
        </div>
        ${this._readersTemplate()}
      </div>`;
  }

  /** Open the menu of the message beside its button. */
  openMenu() {
    const button = this.querySelector(".message-more");
    button?.dispatchEvent(new CustomEvent("message-menu", { bubbles: true, detail: this.shown }));
  }

  _bubbleRow() {
    const entry = this.shown;
    return html`<div class="bubble-row">
      <div class="bubble">
        ${
          entry.deletedAt
            ? html`<p class="deleted" data-testid="deleted">
                ${gettext("This message was deleted.")}
              </p>`
            : html`${quoteTemplate(entry.reply_to)}
                <div class="parts">
                  ${partsTemplate(this._parts, {
                    most: SHOWN[entry.sender_kind],
                    agent: entry.sender_kind === "agent" ? this._name : "",
                  })}
                </div>`
        }${
          this._former ? endingLine(entry.status) : endingLine(entry.status, this.error, this.again)
        }
      </div>
      <div class="message-tools ${this._isNear ? "is-near" : ""}">
        ${
          this._isNear
            ? actionsFor(entry)
                .filter(({ isQuick }) => isQuick)
                .map((action) => this._quick(action))
            : nothing
        }${this._isAnswer ? nothing : this._more()}
      </div>
    </div>`;
  }

  /** @param {import("../actions/actions.js").MessageAction} action */
  _quick(action) {
    const label = action.label(this.shown).replace("…", "");
    return html`<button
      type="button"
      class="icon-button message-quick"
      aria-label=${label}
      title=${label}
      data-testid="quick-${action.name}"
      @click=${() =>
        action.run(this.shown, /** @type {HTMLElement} */ (this.querySelector(".message-more")))}
    >
      ${glyph(action.icon)}
    </button>`;
  }

  /** Render the most frequent actions on an answer, below its text. */
  _answerTools() {
    if (!this._isAnswer) return nothing;
    const below = actionsFor(this.shown).filter(
      ({ isBelow, name }) => isBelow && (name !== "answer-again" || this.isLatest),
    );
    return html`<span class="answer-tools" role="group" aria-label=${gettext("Actions")}
      >${below.map((action) => this._quick(action))}${this._more()}</span
    >`;
  }

  /** Whether it is an answer that is neither deleted nor being edited. */
  get _isAnswer() {
    return this.entry.sender_kind === "agent" && !this.entry.deletedAt && !this.isEditing;
  }

  /** The button that opens the menu. */
  _more() {
    const label = this.isMine
      ? gettext("More actions for your message")
      : interpolate(gettext("More actions for %(name)s's message"), { name: this._name });
    return html`<button
      type="button"
      class="icon-button message-more"
      aria-label=${label}
      title=${label}
      aria-haspopup="menu"
      aria-expanded="false"
      data-testid="message-more"
      @click=${() => this.openMenu()}
    >
      ${glyph("more")}
    </button>`;
  }

  /**
   * The marks of a message: whether it is pinned; whether it was edited, which opens the earlier
   * texts; and the arrows to former versions.
   */
  _marks() {
    const { entry } = this;
    if (
      (entry.deletedAt && !entry.versionOf) ||
      (!entry.pinned && !entry.revision && !entry.versionOf)
    )
      return nothing;
    const fires = (/** @type {string} */ type) => (/** @type {MouseEvent} */ event) =>
      event.currentTarget?.dispatchEvent(new CustomEvent(type, { bubbles: true, detail: entry }));
    return html`${
      entry.pinned
        ? html`<span class="mark" data-testid="pinned">${glyph("pin")}${gettext("Pinned")}</span>`
        : nothing
    }${
      entry.revision
        ? html`<button
            type="button"
            class="link mark"
            data-testid="edited"
            title=${fullTime(entry.editedAt ?? 0)}
            @click=${fires("show-revisions")}
          >
            ${gettext("Edited")}
          </button>`
        : nothing
    }${
      entry.versionOf
        ? html`<message-versions
            .entry=${entry}
            @version=${(/** @type {CustomEvent<Entry|null>} */ event) => {
              this._former = event.detail;
            }}
          ></message-versions>`
        : nothing
    }`;
  }

  /** Render cards of the pages that a person links to; the server reads none for agents. */
  _linkCards() {
    const { entry } = this;
    if (
      !start.link_cards ||
      this._former ||
      this.isEditing ||
      entry.deletedAt ||
      entry.sender_kind !== "user" ||
      !entry.content.includes("://")
    )
      return nothing;
    return html`<link-cards .messageId=${entry.id} .revision=${entry.revision ?? 0}></link-cards>`;
  }

  _tick() {
    if (!this.tick) return nothing;
    const isRead = this.tick === "read";
    const text = isRead ? gettext("Read") : gettext("Sent");
    return html`<span class="tick is-${this.tick}" title=${text} data-testid="tick"
      >${glyph("check")}${isRead ? glyph("check") : nothing}<span class="visually-hidden"
        >${text}</span
      ></span
    >`;
  }

  _readersTemplate() {
    const names = namesOf(this.readers);
    return html`<div class="readers" title=${names}>
      ${this.readers.slice(0, MAX_READERS).map((reader) => face(reader.username, "user"))}${
        names
          ? html`<span class="visually-hidden"
              >${interpolate(gettext("Read by %(names)s"), { names })}</span
            >`
          : ""
      }
    </div>`;
  }

  _openProfile() {
    const { name, sender_kind: kind } = this.entry;
    this.dispatchEvent(new CustomEvent("open-profile", { bubbles: true, detail: { kind, name } }));
  }

  /** Stand out for a moment. */
  _mark() {
    this._isMarked = true;
    clearTimeout(this._marking);
    this._marking = window.setTimeout(() => {
      this._isMarked = false;
    }, MARKED_MS);
  }
}
customElements.define("chat-message", ChatMessage);
