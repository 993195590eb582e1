/** The threads that the user follows, in all chats: those with new replies first. */

import { api, store } from "../context.js";
import { beginningOf } from "../markdown/plain.js";
import { fullTime, shortTime } from "../text/time.js";
import { View, face, glyph, spinner } from "../view.js";
import { html, nothing, repeat } from "../../vendor/lit/lit.js";
import { authorOf } from "./author.js";
import { gettext, interpolate, ngettext } from "../words.js";

/** The number of characters shown of a message. */
const SHOWN_SIGNS = 300;

/**
 * @typedef {object} FollowedThread
 * @property {string} id
 * @property {string} chat_id
 * @property {string} chat_title
 * @property {string} name
 * @property {"user"|"agent"} sender_kind
 * @property {string} content
 * @property {number} replies
 * @property {number} unread
 * @property {string} last_at ISO 8601
 */

/**
 * Opened by `open-threads` and Ctrl+Shift+L. Fires (bubbling) `open-message` (detail: `chatId`,
 * `threadId`).
 */
class ThreadsDialog extends View {
  static properties = {
    _threads: { state: true },
    _cursor: { state: true },
    _error: { state: true },
  };

  constructor() {
    super();
    /** @type {FollowedThread[]|null} null until loaded */
    this._threads = null;
    /** @type {string|null} */
    this._cursor = null;
    this._error = "";
  }

  connectedCallback() {
    super.connectedCallback();
    addEventListener("open-threads", () => this.open());
    addEventListener("keydown", (event) => {
      const isWanted =
        (event.ctrlKey || event.metaKey) && event.shiftKey && event.key.toLowerCase() === "l";
      if (!isWanted || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      this.open();
    });
  }

  async open() {
    await this.updateComplete;
    this._dialog.showModal();
    this._threads = null;
    await this._load("");
  }

  get _dialog() {
    return /** @type {HTMLDialogElement} */ (this.querySelector("dialog"));
  }

  /** @param {string} cursor "" for the first page */
  async _load(cursor) {
    this._error = "";
    try {
      const page = await api.get(
        `/threads?limit=20${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`,
      );
      const known = cursor ? this._threads || [] : [];
      // A thread with a new reply may be on two pages.
      this._threads = [
        ...known,
        ...page.data.filter(
          (/** @type {FollowedThread} */ { id }) => !known.some((one) => one.id === id),
        ),
      ];
      this._cursor = page.next_cursor;
    } catch (/** @type {any} */ error) {
      if (error.name !== "ApiError") throw error;
      this._error = error.message;
    }
  }

  render() {
    return html`<dialog
      class="dialog is-wide search threads"
      aria-labelledby="threads-title"
      data-testid="threads-dialog"
    >
      <div class="dialog-form" @keydown=${(/** @type {KeyboardEvent} */ event) => this._key(event)}>
        <header>
          <h2 id="threads-title">${gettext("Threads")}</h2>
          <button
            type="button"
            class="icon-button"
            aria-label=${gettext("Close")}
            title=${gettext("Close")}
            @click=${() => this._dialog.close()}
          >
            ${glyph("close")}
          </button>
        </header>
        <div
          class="search-results"
          role="region"
          aria-label=${gettext("Threads you follow")}
          aria-busy=${String(!this._threads && !this._error)}
        >
          ${this._body()}
        </div>
        <p class="visually-hidden" role="status">
          ${
            this._threads
              ? interpolate(ngettext("%(n)s thread", "%(n)s threads", this._threads.length), {
                  n: this._threads.length,
                })
              : ""
          }
        </p>
      </div>
    </dialog>`;
  }

  _body() {
    const failed = this._error
      ? html`<p class="search-note" role="alert">
          ${this._error}
          <button
            type="button"
            class="button"
            @click=${() => this._load(this._threads ? this._cursor || "" : "")}
          >
            ${gettext("Try again")}
          </button>
        </p>`
      : nothing;
    if (!this._threads) return this._error ? failed : spinner(gettext("Loading the threads"));
    if (!this._threads.length) {
      return html`<div class="empty" role="note" data-testid="threads-none">
        ${glyph("thread")}
        <h3>${gettext("You don't follow any threads yet")}</h3>
        <p>
          ${gettext(
            "To start a thread, press T on a message or choose “Reply in thread” from its menu. Threads you start, reply to or are mentioned in appear here.",
          )}
        </p>
      </div>`;
    }
    return html`<ul>
        ${repeat(
          this._threads,
          ({ id }) => id,
          (thread) => this._item(thread),
        )}
      </ul>
      ${failed}
      ${
        this._cursor && !this._error
          ? html`<button
              type="button"
              class="button"
              @click=${() => this._load(this._cursor || "")}
            >
              ${gettext("Show more")}
            </button>`
          : nothing
      }`;
  }

  /** @param {FollowedThread} thread */
  _item({
    id,
    chat_id: chatId,
    chat_title: title,
    name,
    sender_kind: kind,
    content,
    replies,
    unread,
    last_at: at,
  }) {
    const chat = store.get(chatId);
    return html`<li>
      <button
        type="button"
        class="search-result"
        data-testid="thread-item"
        @click=${() => this._go(chatId, id)}
      >
        ${face(name, kind)}
        <span class="search-words"
          ><span class="search-head"
            ><b dir="auto">${authorOf(kind, name)}</b>
            <span class="search-chat" dir="auto"
              >${chat ? store.nameOf(chat) : title || gettext("Another chat")}</span
            >
            <time datetime=${at} title=${fullTime(Date.parse(at))}
              >${shortTime(Date.parse(at))}</time
            ></span
          >
          <span class="search-text" dir="auto"
            >${beginningOf(content, SHOWN_SIGNS) || gettext("A file or a deleted message")}</span
          >
          <span class="search-files"
            >${interpolate(ngettext("%(n)s reply", "%(n)s replies", replies), { n: replies })}${
              unread
                ? html`<span class="unread is-replies" data-testid="thread-news"
                    >${interpolate(gettext("%(n)s new"), { n: unread })}</span
                  >`
                : nothing
            }</span
          ></span
        >
      </button>
    </li>`;
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const stops = Array.from(this.querySelectorAll(".search-results button"));
    const at = stops.indexOf(/** @type {Element} */ (document.activeElement));
    const next = /** @type {HTMLElement|undefined} */ (stops[at < 0 ? 0 : at + step]);
    if (!next) return;
    event.preventDefault();
    next.focus();
  }

  /** @param {string} chatId @param {string} threadId */
  _go(chatId, threadId) {
    this._dialog.close();
    this.dispatchEvent(
      new CustomEvent("open-message", {
        bubbles: true,
        detail: { chatId, messageId: "", threadId },
      }),
    );
  }
}
customElements.define("threads-dialog", ThreadsDialog);
