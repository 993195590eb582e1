/**
 * The messages of the open chat: the newest page first, older ones when one scrolls up, answers as
 * they grow. The reader rules the scroll position: it follows only from the bottom.
 */

import { page } from "../context.js";
import { Selected } from "../store/store.js";
import { rowsOf } from "../store/rows.js";
import { isFrom } from "../store/entry.js";
import { dayName } from "../time.js";
import { View, glyph, spinner } from "../view.js";
import { html, repeat } from "../../vendor/lit/lit.js";
import "../cards/approval-card.js";
import "./live-response.js";
import "./message.js";
import "../cards/payment-card.js";
import "./pending-turn.js";

/** More messages than this are not kept on the page while one reads at the bottom. */
const KEPT = 250;
const NEAR_BOTTOM_PX = 60;
const NEAR_TOP_PX = 400;

/** What of the chat is drawn here: a delta of an answer is not, its own view draws it. */
const PARTS = ["chatId", "loaded", "entries", "hasOlder", "loadingOlder", "unreadAfter", "answers", "failures", "changes", "readers", "receipts", "approvals", "payments", "turns"];

/** Select the parts of the state, as the same object until one of them changes. */
function partsSelector() {
  let known = {};
  return (state) => {
    if (PARTS.some((part) => known[part] !== state[part])) known = state;
    return known;
  };
}

/** Fires `bottom` when the newest message is in view, and `older` when older messages are wanted. */
class MessageList extends View {
  static properties = {
    mayDecide: { attribute: false },
    _following: { state: true },
  };

  constructor() {
    super();
    /** @type {(approval: object) => boolean} */
    this.mayDecide = () => false;
    this._following = true;
    this._scrollTop = 0;
    this._state = new Selected(this, page, partsSelector());
  }

  firstUpdated() {
    this._log = this.querySelector(".log");
    this._resizes = new ResizeObserver(() => this._following && this.toBottom());
    this._resizes.observe(this._log);
    this._resizes.observe(this._log.firstElementChild);
  }

  get atBottom() {
    return this._following;
  }

  willUpdate() {
    const { entries } = this._state.value;
    this._hadFocus = this.contains(document.activeElement);
    // What one reads stays where it is, however tall the older messages are.
    const isOlder = this._first !== undefined && entries.length > 0 && entries[0].seq < this._first;
    this._below = isOlder && this._log ? this._log.scrollHeight - this._log.scrollTop : null;
    this._first = entries[0]?.seq;
    if (this._following) this._seen = entries.at(-1)?.seq ?? 0;
  }

  render() {
    const state = this._state.value;
    return html`
      <div class="log" role="log" aria-live="off" aria-label="Messages" tabindex="0" @scroll=${{ handleEvent: () => this._scrolled(), passive: true }}>
        <div class="log-column">
          <div class="log-top" ?hidden=${state.entries.length === 0 && state.turns.length > 0}>${this._top(state)}</div>
          <div class="log-messages">${repeat(rowsOf(state), ({ key }) => key, (row) => this._row(row))}</div>
          <div class="log-asks">${repeat(state.approvals, ({ key }) => key, (approval) => this._approval(approval))}</div>
          <div class="log-payments">${repeat(state.payments, ({ key }) => key, (payment) => html`<payment-card .payment=${payment}></payment-card>`)}</div>
          <div class="log-turns">${repeat(state.turns, ({ id }) => id, (turn) => html`<pending-turn .turn=${turn} .state=${turn.state}></pending-turn>`)}</div>
        </div>
      </div>
      <button type="button" class="jump" ?hidden=${this._following} data-testid="jump" @click=${() => this._jumped()}>
        ${glyph("down")}<span>${this._jumpLabel(state)}</span>
      </button>`;
  }

  async updated() {
    const { entries } = this._state.value;
    // The button that was pressed went away: the focus stays in the chat.
    if (this._hadFocus && !this.contains(document.activeElement)) this._log.focus({ preventScroll: true });
    if (this._following && entries.length > KEPT) page.dispatch({ type: "trimmed", keep: KEPT });
    const below = this._below;
    if (below === null && !this._following) return;
    await Promise.all(Array.from(this.querySelectorAll("chat-message"), (view) => view.updateComplete));
    if (this._following) this.toBottom();
    else if (below !== null) {
      this._log.scrollTop = this._log.scrollHeight - below;
      this._scrollTop = this._log.scrollTop;
    }
  }

  /** Follow the newest message. @param {boolean} [smooth] because the reader asked for it */
  toBottom(smooth = false) {
    this._following = true;
    if (!this._log) return;
    const { scrollTop, scrollHeight, clientHeight } = this._log;
    const isFar = scrollHeight - scrollTop > 3 * clientHeight;
    this._log.scrollTo({ top: scrollHeight, behavior: smooth && !isFar ? "smooth" : "instant" });
    // Where the page went by itself must not look like a reader who scrolled up.
    this._scrollTop = this._log.scrollTop;
    if (smooth) this.dispatchEvent(new Event("bottom"));
  }

  _row(row) {
    if (row.kind === "day") return html`<div class="separator is-day" role="separator"><span>${dayName(row.at)}</span></div>`;
    if (row.kind === "unread") return html`<div class="separator is-unread" role="separator"><span>New</span></div>`;
    if (row.kind === "change") return html`<p class="change" data-testid="change">${row.text}</p>`;
    if (row.kind === "answer") return html`<live-response .responseId=${row.id} .again=${row.again}></live-response>`;
    return html`<chat-message .entry=${row.entry} .isMine=${row.isMine} .follows=${row.follows} .error=${row.error} .again=${row.again}
      .readers=${row.readers} .receipt=${row.receipt}></chat-message>`;
  }

  _approval(approval) {
    return html`<approval-card .mayDecide=${this.mayDecide(approval)} .itemOf=${itemOf} .approval=${approval}></approval-card>`;
  }

  _top(state) {
    if (!state.loaded) return spinner("Loading");
    if (state.loadingOlder === "yes") return spinner("Loading older messages");
    if (state.loadingOlder === "failed") return html`<button type="button" class="button" @click=${() => this._wantOlder()}>Load older messages</button>`;
    if (state.hasOlder) return "";
    if (state.entries.length) return html`<p class="log-start">This is where the chat begins.</p>`;
    return html`<div class="empty">${glyph("message")}<h2>Nothing said yet</h2><p>Write the first message. Type @ to ask one of the agents.</p></div>`;
  }

  _jumpLabel({ entries, userId }) {
    const unseen = entries.filter((entry) => entry.seq > (this._seen ?? 0) && !isFrom(entry, userId)).length;
    if (!unseen) return "Latest";
    return unseen === 1 ? "1 new message" : `${unseen} new messages`;
  }

  _jumped() {
    this.toBottom(true);
    this._log.focus({ preventScroll: true });
  }

  _scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this._log;
    const wasFollowing = this._following;
    const isNear = scrollHeight - scrollTop - clientHeight < NEAR_BOTTOM_PX;
    // What grows below (a picture that arrives) is not the reader who scrolls up.
    if (isNear || scrollTop < this._scrollTop) this._following = isNear;
    this._scrollTop = scrollTop;
    if (this._following && !wasFollowing) this.dispatchEvent(new Event("bottom"));
    if (scrollTop < NEAR_TOP_PX) this._wantOlder();
  }

  _wantOlder() {
    const { hasOlder, loadingOlder } = page.state;
    if (hasOlder && loadingOlder !== "yes") this.dispatchEvent(new Event("older"));
  }
}
customElements.define("message-list", MessageList);

/** What a member sent or a tool made under a content id, as far as it is on the page. */
function itemOf(contentId) {
  const items = page.state.entries.flatMap((entry) => entry.content_items || []);
  const all = items.flatMap((item) => [item, ...(item.tool_result?.content_items || [])]);
  return all.find((item) => item.content_id === contentId);
}
