/**
 * The messages of the open chat: a part of it, which grows where one scrolls to and is cut far from
 * there. The reader rules the scroll position: it follows only from the bottom.
 */

import { page, pageAt, settings, store, threadPage } from "../context.js";
import { people } from "../person/looks.js";
import { Selected } from "../store/store.js";
import { rowsOf } from "../store/rows.js";
import { ARRIVED_KEPT } from "../store/window.js";
import { dayName } from "../text/time.js";
import { View, glyph, spinner } from "../view.js";
import { html, nothing, repeat } from "../../vendor/lit/lit.js";
import { rowKey } from "../actions/row-keys.js";
import "../cards/approval-card.js";
import "../cards/payment-card.js";
import "./live-response.js";
import "./message.js";
import "./pending-turn.js";
import { repliesText } from "./reply-strip.js";
import { ScrollPlace } from "./scroll-place.js";
import { welcome } from "./welcome.js";
import { gettext, interpolate, ngettext } from "../words.js";

const NEAR_BOTTOM_PX = 60;
const NEAR_END_PX = 600;
/** So long after a wheel, a finger or a key the reader is taken to be the one who scrolls. */
const READER_MS = 1_000;

/** What of the chat is drawn here: a delta of an answer is not, its own view draws it. */
/** @typedef {import("../store/open-chat.js").OpenChat} OpenChat */
/** @typedef {import("../../uamp/approvals.js").Approval} Approval */
/** @typedef {import("./message.js").ChatMessage} ChatMessage */

/** @type {(keyof OpenChat)[]} */
const PARTS = ["chatId", "loaded", "entries", "hasOlder", "hasNewer", "loadingOlder", "loadingNewer", "arrived", "target", "editing", "unreadAfter",
  "answers", "failures", "changes", "readers", "receipts", "approvals", "payments", "turns"];

/** The text of the message whose answer a payment is for; "" where it is not on the page. @param {OpenChat} state @param {{responseId: string}} payment */
function questionOf({ live, entries }, { responseId }) {
  const id = live.get(responseId)?.response.messageId;
  return entries.find((entry) => entry.id === id)?.content ?? "";
}

/** Select the parts of the state, as the same object until one of them changes. */
function partsSelector() {
  /** @type {OpenChat|null} */
  let known = null;
  return (/** @type {OpenChat} */ state) => {
    const before = known;
    if (before && PARTS.every((part) => before[part] === state[part])) return before;
    known = state;
    return state;
  };
}

/** Fires `bottom` when the newest message is in view, `older`, `newer` and `newest` when these messages are wanted, `place` (detail: a place in the log) for others. */
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
    /** @type {Element|undefined} from which the person went on to the newest message */
    this._leftQuestion = undefined;
    this._scrollTop = 0;
    /** How high the log and what is in it were then. */
    this._sizes = "";
    this._movedAt = -Infinity;
    /** Whether the newest messages are on their way, to be followed then. */
    this._isGoingDown = false;
    /** What had the focus in here before it was drawn. @type {HTMLElement|null} */
    this._had = null;
    /** The last place in the log that was seen. */
    this._seen = 0;
    /** The target that was shown last. @type {{id: string}|null} */
    this._shown = null;
    /** Made with the first drawing. @type {ScrollPlace|null} */
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
    this._place = new ScrollPlace(this._log, /** @type {HTMLElement} */ (this.querySelector(".log-messages")));
    const resizes = new ResizeObserver(() => (this._following ? this._toBottom() : this._place?.restore()));
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

  /** What is asked for here: in the open thread, or in the chat for all other places. @template {{thread?: string}} T @param {T[]} list @returns {T[]} */
  _here(list) {
    const open = this._thread.value;
    return list.filter(({ thread }) => (this._page === threadPage ? thread === open : !thread || thread !== open));
  }

  get atBottom() {
    return this._following && !this._page.state.hasNewer;
  }

  willUpdate() {
    const { entries, hasNewer } = this._state.value;
    const { activeElement } = document;
    this._had = activeElement instanceof HTMLElement && this.contains(activeElement) ? activeElement : null;
    if (!this._following) this._place?.remember();
    // There is more below: its end is not the end of the chat.
    if (hasNewer) this._following = false;
    else if (this._isGoingDown) [this._following, this._isGoingDown] = [true, false];
    if (this._following) this._seen = entries.at(-1)?.seq ?? 0;
  }

  render() {
    const state = this._state.value;
    const moves = { handleEvent: () => this._moves(), passive: true };
    return html`
      <div class="log" role="log" aria-live="off" aria-label=${state.thread ? gettext("Replies") : gettext("Messages")} aria-describedby="log-keys" tabindex="0"
        @scroll=${{ handleEvent: () => this._scrolled(), passive: true }} @wheel=${moves} @touchmove=${moves} @pointerdown=${moves}
        @keydown=${(/** @type {KeyboardEvent} */ event) => { this._moves(); rowKey(event); }}>
        <div class="log-column">
          ${state.loaded
            ? html`<div class="log-top" ?hidden=${state.entries.length === 0 && state.turns.length > 0}>${this._top(state)}</div>`
            // An element of its own: one that grew into the greeting of an empty chat would move up the page.
            : html`<div class="log-top" ?hidden=${state.entries.length === 0 && state.turns.length > 0}>${spinner(gettext("Loading"))}</div>`}
          <div class="log-messages">${repeat(state.loaded ? rowsOf(state) : [], ({ key }) => key, (row) => this._row(row))}</div>
          ${state.hasNewer ? html`<div class="log-bottom">${this._bottom(state)}</div>` : this._end(state)}
        </div>
      </div>
      ${state.thread ? nothing : html`<p class="visually-hidden" id="log-keys">${gettext("Use the arrow keys to move between messages. M opens the menu, T the thread.")}</p>`}
      ${this._unreadAbove(state)}
      <button type="button" class="jump" ?hidden=${this._following} data-testid="jump" @click=${() => this._jumped()}>
        ${glyph("down")}<span>${this._jumpLabel(state)}</span>
      </button>`;
  }

  async updated() {
    // A row that moves loses the focus. A button that was pressed may go away: the focus stays in the chat.
    if (this._had && !this.contains(document.activeElement)) (this._had.isConnected ? this._had : this._log).focus({ preventScroll: true });
    await Promise.all(this._rows.map((view) => view.updateComplete));
    if (this._following) this._toBottom();
    else this._place?.restore();
    if (this._showTarget()) return;
    const cut = this._place?.cut();
    if (cut) this._page.dispatch({ type: "cut", ...cut });
    this._place?.sweep();
    this._wantMore();
  }

  /** Follow the newest message. @param {boolean} [smooth] because the reader asked for it */
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
    // Where the page went by itself must not look like a reader who scrolled up.
    this._remember();
    if (!smooth && scrollHeight - this._scrollTop - clientHeight >= NEAR_BOTTOM_PX) this._following = false;
  }

  /** How far the page goes by itself: to where one's question is at the top, for a person who wants to read its answer from there. */
  _stayAt() {
    if (settings.values.follow_answers) return Infinity;
    const question = this._question;
    if (!question || question === this._leftQuestion) return Infinity;
    return this._log.scrollTop + question.getBoundingClientRect().top - this._log.getBoundingClientRect().top;
  }

  /** One's own message, behind which only agents wrote. @returns {Element|undefined} */
  get _question() {
    const last = Array.from(this.querySelectorAll("chat-message.from-user, pending-turn")).at(-1);
    return last?.matches(".is-mine, pending-turn") ? last : undefined;
  }

  /** Whether the chat is one of two people: then each message says whether it was read. */
  get _isDirect() {
    const { participants = [] } = store.get(this._page.state.chatId) ?? {};
    return participants.length === 2 && participants.every(({ kind }) => kind === "user");
  }

  /** Show the message that is wanted, once. @returns {boolean} whether it was */
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

  /** @param {import("../store/rows.js").Row} row */
  _row(row) {
    if (row.kind === "day") return html`<div class="separator is-day" role="separator"><span>${dayName(row.at)}</span></div>`;
    if (row.kind === "unread") return html`<div class="separator is-unread" role="separator"><span>${gettext("New")}</span></div>`;
    if (row.kind === "change") return this._change(row);
    if (row.kind === "replies") return html`<div class="separator is-replies" role="separator"><span>${repliesText(row.count)}</span></div>`;
    if (row.kind === "answer") return html`<live-response .responseId=${row.id} .again=${row.again}></live-response>`;
    return html`<chat-message .entry=${row.entry} .isMine=${row.isMine} .follows=${row.follows} .error=${row.error} .again=${row.again}
      .readers=${this._isDirect ? [] : row.readers} .tick=${this._isDirect ? row.tick : ""} .receipt=${row.receipt} .isEditing=${row.isEditing} .isLatest=${row.isLatest} .target=${row.target}></chat-message>`;
  }

  /** A line of the log; where a fork comes from is a link for those who may read it. @param {import("../store/rows.js").ChangeRow} row */
  _change({ text, more, source }) {
    const { chatId = null, messageId = "" } = source || {};
    const isReadable = chatId && store.get(page.state.chatId)?.forked_from?.readable;
    const detail = { chatId, messageId, threadId: "" };
    const open = (/** @type {MouseEvent} */ event) => {
      // A new tab is the browser's.
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.dispatchEvent(new CustomEvent("open-message", { bubbles: true, detail }));
    };
    const said = isReadable ? html`<a href=${`/chats/${encodeURIComponent(chatId)}?message=${encodeURIComponent(messageId)}`} @click=${open}>${text}</a>` : text;
    return html`<p class="change" data-testid="change">${said}${more ? html`<br>${more}` : nothing}</p>`;
  }

  /** What stands behind the last message of the chat. @param {OpenChat} state */
  _end(state) {
    return html`
      <div class="log-asks">${repeat(this._here(state.approvals), ({ key }) => key, (approval) => this._approval(approval))}</div>
      <div class="log-payments">${repeat(this._here(state.payments), ({ key }) => key, (payment) => html`<payment-card .payment=${payment} .question=${questionOf(state, payment)}></payment-card>`)}</div>
      <div class="log-turns">${repeat(state.turns, ({ id }) => id, (turn) => html`<pending-turn .turn=${turn} .state=${turn.state}></pending-turn>`)}</div>`;
  }

  /** @param {Approval} approval */
  _approval(approval) {
    return html`<approval-card .mayDecide=${this.mayDecide(approval)} .itemOf=${itemOf} .approval=${approval}></approval-card>`;
  }

  /** @param {OpenChat} state */
  _top(state) {
    if (state.loadingOlder === "yes") return spinner(gettext("Loading older messages"));
    if (state.loadingOlder === "failed") return html`<button type="button" class="button" @click=${() => this._want("older")}>${gettext("Load older messages")}</button>`;
    if (state.hasOlder || state.thread) return "";
    if (state.entries.length) return html`<p class="log-start">${gettext("Start of the conversation")}</p>`;
    return welcome(state.chatId);
  }

  /** @param {OpenChat} state */
  _bottom({ loadingNewer }) {
    if (loadingNewer === "yes") return spinner(gettext("Loading newer messages"));
    if (loadingNewer === "failed") return html`<button type="button" class="button" @click=${() => this._want("newer")}>${gettext("Load newer messages")}</button>`;
    return "";
  }

  /** A way to the first message that was not read, where it is farther up than what is here. @param {OpenChat} state */
  _unreadAbove({ unreadAfter, entries, hasOlder }) {
    if (unreadAfter === null || !hasOlder || !entries.length || unreadAfter >= entries[0].seq) return nothing;
    return html`<button type="button" class="jump is-up" data-testid="first-unread"
      @click=${() => this.dispatchEvent(new CustomEvent("place", { detail: unreadAfter }))}>${glyph("up")}<span>${gettext("First unread")}</span></button>`;
  }

  /** @param {OpenChat} state */
  _jumpLabel({ arrived }) {
    const unseen = arrived.filter((seq) => seq > (this._seen ?? 0)).length;
    if (!unseen) return gettext("Latest");
    if (unseen === ARRIVED_KEPT) return interpolate(gettext("%(n)s or more new messages"), { n: unseen });
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
    const isNear = !this._page.state.hasNewer && scrollHeight - scrollTop - clientHeight < NEAR_BOTTOM_PX;
    // What grows below (a picture that arrives) is not the reader who scrolls up, nor is the browser that
    // scrolls because the log became shorter, where another message has come since.
    const isReader = performance.now() - this._movedAt < READER_MS || this._sizes === `${scrollHeight} ${clientHeight}`;
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
    if (scrollHeight - scrollTop - clientHeight < NEAR_END_PX && this._page.state.loadingNewer === "no") this._want("newer");
  }

  /** @param {"older"|"newer"} end */
  _want(end) {
    const { entries, hasOlder, hasNewer, loadingOlder, loadingNewer } = this._page.state;
    const [has, loading] = end === "older" ? [hasOlder, loadingOlder] : [hasNewer, loadingNewer];
    if (has && loading !== "yes" && entries.length) this.dispatchEvent(new Event(end));
  }
}
customElements.define("message-list", MessageList);

/** What a member sent or a tool made under a content id, as far as it is on the page. @param {string} contentId @returns {import("../parts/parts.js").Item|undefined} */
function itemOf(contentId) {
  const items = [...page.state.entries, ...threadPage.state.entries].flatMap((entry) => entry.content_items || []);
  const all = items.flatMap((item) => [item, ...(item.tool_result?.content_items || [])]);
  return all.find((item) => item.content_id === contentId);
}
