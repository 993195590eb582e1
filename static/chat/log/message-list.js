/**
 * The messages of the open chat: a window that grows in the scroll direction and is trimmed at the
 * far end. The reader controls the scroll position: the list follows new messages only from the
 * bottom.
 */

import { pageAt, settings, store, threadPage } from "../context.js";
import { people } from "../person/looks.js";
import { Selected } from "../store/store.js";
import { rowsOf } from "../store/rows.js";
import { MAX_ARRIVED } from "../store/window.js";
import { View, glyph, spinner } from "../view.js";
import { html, nothing, repeat } from "../../vendor/lit/lit.js";
import { rowKey } from "../actions/row-keys.js";
import { partsSelector } from "./drawn-parts.js";
import { bottomTemplate, endTemplate, rowTemplate, topTemplate } from "./log-rows.js";
import { ScrollPlace } from "./scroll-place.js";
import { gettext, interpolate, ngettext } from "../words.js";

const NEAR_BOTTOM_PX = 60;
const NEAR_END_PX = 600;
/** How long after a wheel, touch or key event a scroll counts as the reader's. */
const READER_MS = 1_000;

/** @typedef {import("../store/open-chat.js").OpenChat} OpenChat */
/** @typedef {import("../../uamp/approvals.js").Approval} Approval */
/** @typedef {import("./message.js").ChatMessage} ChatMessage */

/**
 * Fires `bottom` when the newest message is in view; `older`, `newer` and `newest` to request these
 * messages, and `place` (detail: a place in the log) for others.
 */
export class MessageList extends View {
  static properties = {
    mayDecide: { attribute: false },
    _following: { state: true },
  };

  constructor() {
    super();
    /** @type {(approval: Approval) => boolean} */
    this.mayDecide = () => false;
    this._following = true;
    /** @type {Element|undefined} the question from which the reader jumped to the newest message */
    this._leftQuestion = undefined;
    this._scrollTop = 0;
    /** The heights of the log and its content at that scroll position. */
    this._sizes = "";
    this._movedAt = -Infinity;
    /** Whether the newest messages are being loaded, to be followed then. */
    this._isGoingDown = false;
    /** The element in here that had the focus before rendering. @type {HTMLElement|null} */
    this._had = null;
    /** The last place in the log that the reader saw. */
    this._seen = 0;
    /** The last shown target. @type {{id: string}|null} */
    this._shown = null;
    /** Created with the first rendering. @type {ScrollPlace|null} */
    this._place = null;
    this._onPeople = () => {
      for (const message of this._rows) message.requestUpdate();
    };
    this._state = new Selected(this, pageAt, partsSelector());
    this._thread = new Selected(this, threadPage, ({ thread }) => thread);
  }

  connectedCallback() {
    super.connectedCallback();
    people.addEventListener("change", this._onPeople);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    people.removeEventListener("change", this._onPeople);
  }

  firstUpdated() {
    this._place = new ScrollPlace(
      this._log,
      /** @type {HTMLElement} */ (this.querySelector(".log-messages")),
    );
    const resizes = new ResizeObserver(() =>
      this._following ? this._toBottom() : this._place?.restore(),
    );
    resizes.observe(this._log);
    resizes.observe(/** @type {Element} */ (this._log.firstElementChild));
  }

  /** @returns {HTMLElement} */
  get _log() {
    return /** @type {HTMLElement} */ (this.querySelector(".log"));
  }

  /** @returns {ChatMessage[]} */
  get _rows() {
    return Array.from(this.querySelectorAll("chat-message"));
  }

  get _page() {
    return pageAt(this);
  }

  /**
   * Return the items that belong here: those of the open thread, or of the chat and all other
   * threads.
   * @template {{thread?: string}} T
   * @param {T[]} list
   * @returns {T[]}
   */
  _here(list) {
    const open = this._thread.value;
    return list.filter(({ thread }) =>
      this._page === threadPage ? thread === open : !thread || thread !== open,
    );
  }

  get atBottom() {
    return this._following && !this._page.state.hasNewer;
  }

  willUpdate() {
    const { entries, hasNewer } = this._state.value;
    const { activeElement } = document;
    this._had =
      activeElement instanceof HTMLElement && this.contains(activeElement) ? activeElement : null;
    if (!this._following) this._place?.remember();
    // With newer messages not loaded, the bottom is not the end of the chat.
    if (hasNewer) this._following = false;
    else if (this._isGoingDown) [this._following, this._isGoingDown] = [true, false];
    if (this._following) this._seen = entries.at(-1)?.seq ?? 0;
  }

  render() {
    const state = this._state.value;
    const want = (/** @type {"older"|"newer"} */ end) => this._want(end);
    // The loading state is a separate element: one that turned into the greeting of an empty chat
    // would shift the page.
    const moves = { handleEvent: () => this._moves(), passive: true };
    return html` <div
        class="log"
        role="log"
        aria-live="off"
        aria-label=${state.thread ? gettext("Replies") : gettext("Messages")}
        aria-describedby="log-keys"
        tabindex="0"
        @scroll=${{ handleEvent: () => this._scrolled(), passive: true }}
        @wheel=${moves}
        @touchmove=${moves}
        @pointerdown=${moves}
        @keydown=${(/** @type {KeyboardEvent} */ event) => {
          this._moves();
          rowKey(event);
        }}
      >
        <div class="log-column">
          ${
            state.loaded
              ? html`<div
                  class="log-top"
                  ?hidden=${state.entries.length === 0 && state.turns.length > 0}
                >
                  ${topTemplate(state, want)}
                </div>`
              : html`<div
                  class="log-top"
                  ?hidden=${state.entries.length === 0 && state.turns.length > 0}
                >
                  ${spinner(gettext("Loading"))}
                </div>`
          }
          <div class="log-messages">
            ${repeat(
              state.loaded ? rowsOf(state) : [],
              ({ key }) => key,
              (row) => rowTemplate(row, this._isDirect),
            )}
          </div>
          ${
            state.hasNewer
              ? html`<div class="log-bottom">${bottomTemplate(state, want)}</div>`
              : endTemplate(state, (list) => this._here(list), this.mayDecide)
          }
        </div>
      </div>
      ${
        state.thread
          ? nothing
          : html`<p class="visually-hidden" id="log-keys">
              ${gettext(
                "Use the arrow keys to move between messages. M opens the menu, T the thread.",
              )}
            </p>`
      }
      ${this._unreadAbove(state)}
      <button
        type="button"
        class="jump"
        ?hidden=${this._following}
        data-testid="jump"
        @click=${() => this._jumped()}
      >
        ${glyph("down")}<span>${this._jumpLabel(state)}</span>
      </button>`;
  }

  async updated() {
    // A row that moves loses the focus. A pressed button may disappear: keep the focus in the chat.
    if (this._had && !this.contains(document.activeElement))
      (this._had.isConnected ? this._had : this._log).focus({ preventScroll: true });
    await Promise.all(this._rows.map((view) => view.updateComplete));
    if (this._following) this._toBottom();
    else this._place?.restore();
    if (this._showTarget()) return;
    const cut = this._place?.cut();
    if (cut) this._page.dispatch({ type: "cut", ...cut });
    this._place?.sweep();
    this._wantMore();
  }

  /** Follow the newest message. @param {boolean} [smooth] because the reader requested it */
  toBottom(smooth = false) {
    this._following = !this._page.state.hasNewer;
    this._isGoingDown = this._page.state.hasNewer;
    if (this._isGoingDown) this.dispatchEvent(new Event("newest"));
    else this._toBottom(smooth);
    if (smooth) this.dispatchEvent(new Event("bottom"));
  }

  _toBottom(smooth = false) {
    if (!this._log) return;
    const { scrollTop, scrollHeight, clientHeight } = this._log;
    const isFar = scrollHeight - scrollTop > 3 * clientHeight;
    const top = smooth ? scrollHeight : Math.min(scrollHeight, Math.max(scrollTop, this._stayAt()));
    this._log.scrollTo({ top, behavior: smooth && !isFar ? "smooth" : "instant" });
    // A scroll by the page must not look like a reader scrolling up.
    this._remember();
    if (!smooth && scrollHeight - this._scrollTop - clientHeight >= NEAR_BOTTOM_PX)
      this._following = false;
  }

  /**
   * How far the page scrolls automatically: until the user's question is at the top, if they want
   * to read its answer from there.
   */
  _stayAt() {
    if (settings.values.follow_answers) return Infinity;
    const question = this._question;
    if (!question || question === this._leftQuestion) return Infinity;
    return (
      this._log.scrollTop +
      question.getBoundingClientRect().top -
      this._log.getBoundingClientRect().top
    );
  }

  /** The user's last message, if only agents wrote after it. @returns {Element|undefined} */
  get _question() {
    const last = Array.from(this.querySelectorAll("chat-message.from-user, pending-turn")).at(-1);
    return last?.matches(".is-mine, pending-turn") ? last : undefined;
  }

  /** Whether the chat has two people: each message then shows whether it was read. */
  get _isDirect() {
    const { participants = [] } = store.get(this._page.state.chatId) ?? {};
    return participants.length === 2 && participants.every(({ kind }) => kind === "user");
  }

  /** Scroll to the target message, once. @returns {boolean} whether it was */
  _showTarget() {
    const { target } = this._state.value;
    if (!target || target === this._shown) return false;
    const row = this._rows.find((view) => view.entry.id === target.id);
    if (!row) return false;
    this._shown = target;
    this._following = false;
    row.scrollIntoView({ block: "center", behavior: "instant" });
    row.focus({ preventScroll: true });
    this._scrolled();
    return true;
  }

  /**
   * The button to the first unread message, if it is above the loaded ones.
   * @param {OpenChat} state
   */
  _unreadAbove({ unreadAfter, entries, hasOlder }) {
    if (unreadAfter === null || !hasOlder || !entries.length || unreadAfter >= entries[0].seq)
      return nothing;
    return html`<button
      type="button"
      class="jump is-up"
      data-testid="first-unread"
      @click=${() => this.dispatchEvent(new CustomEvent("place", { detail: unreadAfter }))}
    >
      ${glyph("up")}<span>${gettext("First unread")}</span>
    </button>`;
  }

  /** @param {OpenChat} state */
  _jumpLabel({ arrived }) {
    const unseen = arrived.filter((seq) => seq > (this._seen ?? 0)).length;
    if (!unseen) return gettext("Latest");
    if (unseen === MAX_ARRIVED)
      return interpolate(gettext("%(n)s or more new messages"), { n: unseen });
    return interpolate(ngettext("%(n)s new message", "%(n)s new messages", unseen), { n: unseen });
  }

  _jumped() {
    this._leftQuestion = this._question;
    this.toBottom(true);
    this._log.focus({ preventScroll: true });
  }

  _moves() {
    this._movedAt = performance.now();
  }

  _remember() {
    const { scrollTop, scrollHeight, clientHeight } = this._log;
    this._scrollTop = scrollTop;
    this._sizes = `${scrollHeight} ${clientHeight}`;
  }

  _scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this._log;
    const wasFollowing = this._following;
    const isNear =
      !this._page.state.hasNewer && scrollHeight - scrollTop - clientHeight < NEAR_BOTTOM_PX;
    // Content growing below (a loading picture) does not count as the reader scrolling up, nor does
    // a scroll by the browser after the log became shorter, when a message has arrived since.
    const isReader =
      performance.now() - this._movedAt < READER_MS ||
      this._sizes === `${scrollHeight} ${clientHeight}`;
    if (isNear || (scrollTop < this._scrollTop && isReader)) this._following = isNear;
    else if (wasFollowing && scrollTop < this._scrollTop) this._toBottom();
    this._remember();
    this._place?.remember();
    if (this._following && !wasFollowing) this.dispatchEvent(new Event("bottom"));
    this._wantMore();
  }

  _wantMore() {
    const { scrollTop, scrollHeight, clientHeight } = this._log;
    if (scrollTop < NEAR_END_PX && this._page.state.loadingOlder === "no") this._want("older");
    if (
      scrollHeight - scrollTop - clientHeight < NEAR_END_PX &&
      this._page.state.loadingNewer === "no"
    )
      this._want("newer");
  }

  /** @param {"older"|"newer"} end */
  _want(end) {
    const { entries, hasOlder, hasNewer, loadingOlder, loadingNewer } = this._page.state;
    const [has, loading] = end === "older" ? [hasOlder, loadingOlder] : [hasNewer, loadingNewer];
    if (has && loading !== "yes" && entries.length) this.dispatchEvent(new Event(end));
  }
}
customElements.define("message-list", MessageList);
