/** The search: messages of all chats by words and filters, and people, agents and chats by name. */

import { isApiError } from "../api.js";
import { api, me, page, store } from "../context.js";
import { folded } from "../text/folding.js";
import { View, glyph, spinner } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { foundMessage } from "./found-message.js";
import { nameRow } from "./name-row.js";
import { filterExamples, queryOf, takeFilters, withFilters, wordsOf } from "./query.js";
import { summary } from "./summary.js";
import { gettext, interpolate } from "../words.js";

const SEARCH_AFTER_MS = 250;
const MAX_NAMES = 4;

/**
 * @typedef {import("./query.js").Filter} Filter
 * @typedef {import("../store/chat.js").Chat} Chat
 *
 * @typedef {import("./found-message.js").FoundMessage} FoundMessage
 *
 * @typedef {{data: FoundMessage[], has_more: boolean, searched_chats: number, chats: number}} Found
 *
 * @typedef {object} SearchState
 * @property {"empty"|"searching"|"found"|"failed"} phase
 * @property {string} [error] why it failed
 * @property {Found} [found] kept during further searches
 * @property {string[]} [words] searched for
 * @property {string[]} [people] whose names begin with the one word
 * @property {string[]} [agents] likewise
 */

/**
 * Fires (bubbling) `open-message` (detail: `chatId`, `messageId`) and `open-chat` (detail: chat
 * id).
 */
class SearchDialog extends View {
  static properties = {
    _filters: { state: true },
    _text: { state: true },
    _state: { state: true },
  };

  constructor() {
    super();
    /** @type {Filter[]} */
    this._filters = [];
    this._text = "";
    /** @type {SearchState} */
    this._state = { phase: "empty" };
    this._asked = 0;
    /** @type {Promise<{name: string}[]>|null} */
    this._agents = null;
    this._timer = 0;
  }

  connectedCallback() {
    super.connectedCallback();
    addEventListener("open-search", () => this.open());
    addEventListener("keydown", (event) => {
      const isWanted =
        (event.ctrlKey || event.metaKey) && event.shiftKey && event.key.toLowerCase() === "f";
      if (!isWanted || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      this.open();
    });
  }

  async open() {
    await this.updateComplete;
    this._dialog.showModal();
    this._input.select();
    // There may be new messages since the last search.
    this._search(0);
  }

  /** @returns {HTMLDialogElement} */
  get _dialog() {
    return /** @type {HTMLDialogElement} */ (this.querySelector("dialog"));
  }

  /** @returns {HTMLInputElement} */
  get _input() {
    return /** @type {HTMLInputElement} */ (this.querySelector("input"));
  }

  render() {
    return html`<dialog
      class="dialog is-wide search"
      aria-labelledby="search-title"
      data-testid="search-dialog"
    >
      <form
        class="dialog-form"
        role="search"
        @submit=${(/** @type {SubmitEvent} */ event) => this._submit(event)}
        @keydown=${(/** @type {KeyboardEvent} */ event) => this._key(event)}
      >
        <header>
          <h2 id="search-title">${gettext("Search")}</h2>
          <button
            type="button"
            class="icon-button"
            aria-label=${gettext("Close")}
            title=${gettext("Close")}
            @click=${() => this._close()}
          >
            ${glyph("close")}
          </button>
        </header>
        <div class="search-field">
          <div class="search-box">
            ${glyph("search")}${this._filters.map((filter) => this._chip(filter))}
            <input
              type="search"
              aria-label=${gettext("Search messages, people, agents and chats")}
              placeholder=${gettext("Words, from:bob, has:file")}
              maxlength="400"
              autocomplete="off"
              enterkeyhint="search"
              data-testid="search-text"
              .value=${this._text}
              @input=${() => this._written()}
            />
          </div>
          <div class="search-offers" role="group" aria-label=${gettext("Filters")}>
            ${this._offers()}
          </div>
        </div>
        <div
          class="search-results"
          role="region"
          aria-label=${gettext("Results")}
          aria-busy=${String(this._state.phase === "searching")}
        >
          ${this._results()}
        </div>
        <p class="visually-hidden" role="status">${summary(this._state)}</p>
      </form>
    </dialog>`;
  }

  /** @param {Filter} filter */
  _chip({ name, value }) {
    return html`<button
      type="button"
      class="search-chip"
      aria-label=${interpolate(gettext("Remove the filter %(name)s: %(value)s"), { name, value })}
      data-testid="search-chip"
      @click=${() => this._drop(name)}
    >
      <span>${name}: <b>${this._valueName(name, value)}</b></span
      >${glyph("close")}
    </button>`;
  }

  /**
   * A chat filter has an id, and is shown by its name.
   * @param {string} name @param {string} value
   */
  _valueName(name, value) {
    const chat = name === "in" ? store.get(value) : undefined;
    return chat ? store.nameOf(chat) : value;
  }

  /** Render suggestions that narrow the search. */
  _offers() {
    const examples = filterExamples();
    const has = new Set(this._filters.map(({ name }) => name));
    const offer = (/** @type {string} */ label, /** @type {() => void} */ act) =>
      html`<button type="button" class="search-offer" @click=${act}>${label}</button>`;
    const write = (/** @type {string} */ name) => () => {
      this._text = `${this._text.trimEnd()} ${name}:`.trimStart();
      this.updateComplete.then(() => this._input.focus());
    };
    return [
      page.state.chatId && !has.has("in")
        ? offer(gettext("In this chat"), () => this._add("in", page.state.chatId))
        : nothing,
      has.has("from") ? nothing : offer(gettext("From me"), () => this._add("from", me.username)),
      has.has("has") ? nothing : offer(gettext("With files"), () => this._add("has", "file")),
      ...Object.entries(examples)
        .filter(([name]) => !has.has(name))
        .map(([name, example]) => offer(example, write(name))),
    ];
  }

  _results() {
    const { phase, error, found, words } = this._state;
    const names = this._names();
    if (phase === "failed")
      return html`${names}
        <p class="search-note" role="alert">${error}</p>`;
    if (phase === "empty")
      return html`<p class="search-note">
        ${gettext("Search your messages. Use filters to narrow results.")}
      </p>`;
    if (!found) return html`${names}${spinner(gettext("Searching"))}`;
    const { data, has_more: hasMore, searched_chats: searched, chats } = found;
    return html`${names}
    ${
      data.length
        ? html`<h3>${gettext("Messages")}</h3>
            <ul>
              ${data.map((message) =>
                foundMessage(message, words ?? [], (...place) => this._openMessage(...place)),
              )}
            </ul>`
        : html`<p class="search-note" data-testid="search-none">
            ${gettext("No messages found. Try fewer words, or remove a filter.")}
          </p>`
    }
    ${
      hasMore
        ? html`<p class="search-note">
            ${gettext("There are more. Narrow the search with before: and a date.")}
          </p>`
        : nothing
    }
    ${
      searched < chats
        ? html`<p class="search-note">
            ${interpolate(
              gettext(
                "Only the %(searched)s latest of your %(chats)s chats were searched. Use in: to search another.",
              ),
              { searched, chats },
            )}
          </p>`
        : nothing
    }`;
  }

  /** Chats, people and agents whose names contain the first word. */
  _names() {
    const { people = [], agents = [], words = [] } = this._state;
    const chats = words.length
      ? store.list
          .filter((chat) => folded(store.nameOf(chat)).includes(words.join(" ")))
          .slice(0, MAX_NAMES)
      : [];
    if (!chats.length && !people.length && !agents.length) return nothing;
    return html`<h3>${gettext("Names")}</h3>
      <ul class="search-names" data-testid="search-names">
        ${chats.map((chat) =>
          nameRow(store.nameOf(chat), "user", gettext("Open the chat"), () =>
            this._openChat(chat.id),
          ),
        )}
        ${people.map((/** @type {string} */ name) =>
          nameRow(name, "user", gettext("Messages from this person"), () =>
            this._add("from", name, true),
          ),
        )}
        ${agents.map((/** @type {string} */ name) =>
          nameRow(name, "agent", gettext("Messages from this agent"), () =>
            this._add("agent", name, true),
          ),
        )}
      </ul>`;
  }

  _written() {
    const { filters, text } = takeFilters(this._input.value);
    this._filters = withFilters(this._filters, filters);
    this._text = text;
    this._search(SEARCH_AFTER_MS);
  }

  /** @param {SubmitEvent} event */
  _submit(event) {
    event.preventDefault();
    const { filters, text } = takeFilters(this._input.value, true);
    this._filters = withFilters(this._filters, filters);
    this._text = text;
    this._search(0);
  }

  /**
   * @param {string} name
   * @param {string} value
   * @param {boolean} [isWhole] whether the filter replaces the input
   */
  _add(name, value, isWhole = false) {
    this._filters = withFilters(this._filters, [{ name, value }]);
    if (isWhole) this._text = "";
    this._input.focus();
    this._search(0);
  }

  /** @param {string} name of a filter */
  _drop(name) {
    this._filters = this._filters.filter((filter) => filter.name !== name);
    this._input.focus();
    this._search(0);
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const last = this._filters.at(-1);
    if (event.key === "Backspace" && event.target === this._input && !this._input.value && last)
      this._drop(last.name);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    /** @type {HTMLElement[]} */
    const stops = [
      this._input,
      .../** @type {NodeListOf<HTMLElement>} */ (this.querySelectorAll(".search-results button")),
    ];
    const at = stops.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const next = stops[at + step];
    if (!next || at === -1) return;
    event.preventDefault();
    next.focus();
  }

  /** @param {number} delay ms */
  _search(delay) {
    clearTimeout(this._timer);
    this._asked += 1;
    const query = queryOf(this._filters, this._text);
    if (!query) this._state = { phase: "empty" };
    else this._timer = window.setTimeout(() => this._ask(query), delay);
  }

  /** @param {string} query */
  async _ask(query) {
    const asked = this._asked;
    const words = wordsOf(this._text);
    this._state = { ...this._state, phase: "searching", words };
    const names = this._namesFor(words, asked);
    try {
      const found = await api.get(`/search?limit=30&q=${encodeURIComponent(query)}`);
      if (asked === this._asked) this._state = { ...this._state, phase: "found", found };
    } catch (error) {
      if (!isApiError(error)) throw error;
      if (asked === this._asked)
        this._state = { ...this._state, phase: "failed", error: error.message, found: undefined };
    }
    await names;
  }

  /**
   * Find people and agents by the only word of the input.
   * @param {string[]} words
   * @param {number} asked
   */
  async _namesFor(words, asked) {
    const wanted = words.length === 1 ? words[0].replace(/^@/, "") : "";
    /** @type {{username: string}[]} */
    let people = [];
    /** @type {{name: string}[]} */
    let agents = [];
    if (wanted) {
      this._agents ||= api.get("/agents").then((list) => list.data || list);
      try {
        [people, agents] = await Promise.all([
          api.get(`/users?q=${encodeURIComponent(wanted)}`).then(({ data }) => data),
          this._agents,
        ]);
      } catch (error) {
        this._agents = null;
        // The search for messages reports its own errors.
        if (!isApiError(error)) throw error;
      }
    }
    if (asked !== this._asked) return;
    const starts = (/** @type {string} */ name) => folded(name).startsWith(folded(wanted));
    this._state = {
      ...this._state,
      people: people.map(({ username }) => username).slice(0, MAX_NAMES),
      agents: agents
        .map(({ name }) => name)
        .filter(starts)
        .slice(0, MAX_NAMES),
    };
  }

  _close() {
    this._dialog.close();
  }

  /** @param {string} chatId @param {string} messageId @param {string} threadId */
  _openMessage(chatId, messageId, threadId) {
    this._close();
    this.dispatchEvent(
      new CustomEvent("open-message", { bubbles: true, detail: { chatId, messageId, threadId } }),
    );
  }

  /** @param {string} chatId */
  _openChat(chatId) {
    this._close();
    this.dispatchEvent(new CustomEvent("open-chat", { bubbles: true, detail: chatId }));
  }
}
customElements.define("search-dialog", SearchDialog);
