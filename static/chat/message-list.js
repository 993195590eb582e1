/**
 * The messages of the open chat: the newest page first, older ones when one scrolls up, answers as
 * they grow. The reader rules the scroll position: it follows only from the bottom.
 */

import { api } from "./context.js";
import { h, icon } from "./dom.js";
import { entryOf, isMine, offerAgain } from "./message.js";
import { dayName, daysAgo } from "./time.js";
import "./approval-card.js";
import "./live-message.js";

const PAGE = 50;
/** More messages than this are not kept on the page while one reads at the bottom. */
const KEPT = 250;
const NEAR_BOTTOM_PX = 60;
const FOLLOWS_WITHIN_MS = 5 * 60_000;

/** Where a message begins: with the lines above it. */
function startOf(view) {
  let start = view;
  while (start.previousElementSibling?.classList.contains("separator")) start = start.previousElementSibling;
  return start;
}

/** Fires `bottom` when the newest message is in view, and `older-error` (detail: ApiError). */
export class MessageList extends HTMLElement {
  connectedCallback() {
    this._top = h("div", { class: "log-top" });
    this._messages = h("div", { class: "log-messages" });
    this._live = h("div", { class: "log-live" });
    this._asks = h("div", { class: "log-asks" });
    this._turns = h("div", { class: "log-turns" });
    this._log = h(
      "div",
      // Not announced as it grows: the announcer says where answers begin and end.
      { class: "log", role: "log", "aria-live": "off", "aria-label": "Messages", tabindex: "0" },
      h("div", { class: "log-column" }, this._top, this._messages, this._live, this._asks, this._turns),
    );
    this._jumpLabel = h("span", {});
    this._jump = h(
      "button", { type: "button", class: "jump", hidden: true, "data-testid": "jump", onclick: () => this._jumped() },
      icon("down"), this._jumpLabel,
    );
    this.append(this._log, this._jump);
    this._log.addEventListener("scroll", () => this._scrolled(), { passive: true });
    this._resizes = new ResizeObserver(() => this._following && this.toBottom());
    this._resizes.observe(this._log);
    this._resizes.observe(this._log.firstElementChild);
    this._reset();
  }

  /**
   * Show the newest page of a chat.
   * @param {string} chatId
   * @param {Map<string, string>} failures why answers failed, by response id
   * @throws {import("./api.js").ApiError}
   */
  async load(chatId, failures) {
    this._reset();
    this._failures = failures;
    this.chatId = chatId;
    this._top.replaceChildren(h("div", { class: "spinner", role: "img", "aria-label": "Loading" }));
    const page = await this._page("");
    if (this.chatId !== chatId) return;
    this._hasOlder = page.has_more;
    for (const message of page.data) this.add(entryOf(message));
    this._showTop();
    this.toBottom();
  }

  /** @returns {import("./message.js").Entry[]} what is on the page, oldest first */
  get entries() {
    return this._views.map((view) => view.entry);
  }

  get atBottom() {
    return this._following;
  }

  /** Whether the answer of a response is stored and shown. */
  hasAnswer(responseId) {
    return this._views.some((view) => view.entry.response_id === responseId);
  }

  /** Add a stored message in its place; one that is here already stays. */
  add(entry, { counts = false } = {}) {
    let at = this._views.length;
    while (at > 0 && this._views[at - 1].entry.seq > entry.seq) at -= 1;
    if (this._views[at - 1]?.entry.seq === entry.seq) return;
    const error = this._failures.get(entry.response_id);
    const view = document.createElement("chat-message").show({ ...entry, error });
    this._messages.insertBefore(view, this._views[at] || null);
    this._views.splice(at, 0, view);
    for (const ended of [...this._live.children]) if (ended.seq < entry.seq) view.before(ended);
    this._arrange(at);
    this._arrange(at + 1);
    this._offerAgainAround(at);
    if (counts && !this._following && !isMine(entry)) this._count(1);
    this._placeReaders();
    if (this._views.length === 1) this._showTop();
    if (this._following) this._prune();
  }

  /** Whether a running answer of a response is shown. */
  hasLive(responseId) {
    return this._liveViews.has(responseId);
  }

  /** Show or update a running answer. */
  showLive(response) {
    let view = this._liveViews.get(response.id);
    if (!view) {
      view = document.createElement("live-response");
      this._liveViews.set(response.id, view);
      this._live.append(view);
    }
    view.show(response);
    if (response.status !== "running") this._settle(view, response);
  }

  /**
   * Give each running answer that is not among a person's own a button of its own: it ends only by a choice.
   * @param {Set<string>} own response ids
   */
  offerStops(own) {
    for (const [id, view] of this._liveViews) view.offerStop(!own.has(id));
  }

  /** Put an answer that ended without a message where it ended: what came later stands below it. */
  _settle(view, { seq, status, messageId }) {
    if (view.parentElement !== this._live || view.seq !== undefined) return;
    view.seq = seq || this._views.at(-1)?.entry.seq || 0;
    if (status === "failed") {
      view.questionId = messageId;
      this._offerAgain(view, this.entries.find((entry) => entry.id === messageId));
    }
    const at = this._views.findIndex(({ entry }) => entry.seq > view.seq);
    if (at === -1) return;
    startOf(this._views[at]).before(view);
    this._arrange(at);
  }

  /** Take a running answer away, because its message is here or it said nothing. */
  dropLive(responseId) {
    const view = this._liveViews.get(responseId);
    view?.offerStop(false);
    view?.remove();
    this._liveViews.delete(responseId);
  }

  /**
   * Show the tool calls that a person has to allow; a card that is here keeps what was typed in it.
   * @param {import("../uamp/approvals.js").Approval[]} approvals
   * @param {(approval: object) => boolean} mayDecide
   */
  showAsks(approvals, mayDecide) {
    const keys = new Set(approvals.map((approval) => approval.key));
    for (const [key, view] of this._askViews) {
      if (!keys.has(key)) {
        view.remove();
        this._askViews.delete(key);
      }
    }
    for (const approval of approvals) {
      let view = this._askViews.get(approval.key);
      if (!view) {
        view = document.createElement("approval-card");
        this._askViews.set(approval.key, view);
        this._asks.append(view);
      }
      view.show(approval, mayDecide(approval), (id) => this._itemOf(id));
    }
  }

  /** What a member sent or a tool made under a content id, as far as it is on the page. */
  _itemOf(contentId) {
    const items = this.entries.flatMap((entry) => entry.content_items || []);
    const all = items.flatMap((item) => [item, ...(item.tool_result?.content_items || [])]);
    return all.find((item) => item.content_id === contentId);
  }

  /** @param {import("../uamp/outbox.js").Turn[]} turns that wait to be acknowledged */
  showTurns(turns, session) {
    const views = turns.map((turn) => {
      const view = document.createElement("pending-turn");
      view.show(turn, { retry: () => session.retry(turn), discard: () => session.discard(turn) });
      return view;
    });
    this._turns.replaceChildren(...views);
    this._top.hidden = this._views.length === 0 && turns.length > 0;
  }

  /** Mark where the unread messages begin: behind a place in the log. */
  showUnreadFrom(seq) {
    const first = this._views.find((view) => view.entry.seq > seq && !isMine(view.entry));
    if (first && first !== this._views[0]) {
      first.before(h("div", { class: "separator is-unread", role: "separator" }, h("span", {}, "New")));
    }
  }

  /** @param {Map<string, {user_id: string, username: string, seq: number}>} readers */
  showReaders(readers) {
    this._readers = readers;
    this._placeReaders();
  }

  /** Follow the newest message. @param {boolean} [smooth] because the reader asked for it */
  toBottom(smooth = false) {
    const { scrollTop, scrollHeight, clientHeight } = this._log;
    const isFar = scrollHeight - scrollTop > 3 * clientHeight;
    this._following = true;
    this._log.scrollTo({ top: scrollHeight, behavior: smooth && !isFar ? "smooth" : "instant" });
    // Where the page went by itself must not look like a reader who scrolled up.
    this._scrollTop = this._log.scrollTop;
    this._count(-this._unseen);
    if (smooth) this.dispatchEvent(new Event("bottom"));
  }

  /**
   * Offer to ask again where the message at an index is a failed answer, or the question of one: events
   * of the socket and pages of the history add the two in either order.
   */
  _offerAgainAround(at) {
    const { entry } = this._views[at];
    if (entry.sender_kind !== "user") {
      if (entry.status === "failed") this._offerAgain(this._views[at], this.entries.slice(0, at).findLast((e) => e.sender_kind === "user"));
      return;
    }
    for (const view of this._views.slice(at + 1)) {
      if (view.entry.sender_kind === "user") break;
      if (view.entry.status === "failed") this._offerAgain(view, entry);
    }
    for (const view of this._liveViews.values()) if (view.questionId === entry.id) this._offerAgain(view, entry);
  }

  /** @param {HTMLElement} view an answer that failed @param {object} [question] only its sender may ask again */
  _offerAgain(view, question) {
    if (question?.content && isMine(question)) offerAgain(view, question.content);
  }

  /** The button that was pressed goes away: the focus stays in the chat. */
  _jumped() {
    this.toBottom(true);
    this._log.focus({ preventScroll: true });
  }

  _reset() {
    this._views = [];
    this._liveViews = new Map();
    this._askViews = new Map();
    this._readers = new Map();
    this._failures = new Map();
    this._following = true;
    this._scrollTop = 0;
    this._hasOlder = false;
    this._loadingOlder = false;
    this._unseen = 0;
    for (const part of [this._top, this._messages, this._live, this._asks, this._turns]) part.replaceChildren();
    this._jump.hidden = true;
  }

  _page(query) {
    const path = `/chats/${encodeURIComponent(this.chatId)}/messages`;
    return api.get(`${path}?limit=${PAGE}&order=desc&render=html${query}`);
  }

  async _loadOlder() {
    if (!this._hasOlder || this._loadingOlder) return;
    this._loadingOlder = true;
    this._showTop();
    const { chatId } = this;
    try {
      const page = await this._page(`&before=${this._views[0].entry.seq}`);
      if (this.chatId !== chatId) return;
      this._hasOlder = page.has_more;
      // What one reads stays where it is, however tall the older messages are.
      const below = this._log.scrollHeight - this._log.scrollTop;
      for (const message of page.data) this.add(entryOf(message));
      this._loadingOlder = false;
      this._showTop();
      this._log.scrollTop = this._log.scrollHeight - below;
    } catch (error) {
      this._loadingOlder = false;
      if (error.name !== "ApiError") throw error;
      this._top.replaceChildren(
        h("button", { type: "button", class: "button", onclick: () => this._loadOlder() }, "Load older messages"),
      );
    }
  }

  _showTop() {
    const spinner = () => h("div", { class: "spinner", role: "img", "aria-label": "Loading older messages" });
    const start = this._views.length
      ? h("p", { class: "log-start" }, "This is where the chat begins.")
      : this._empty();
    this._top.replaceChildren(...(this._loadingOlder ? [spinner()] : this._hasOlder ? [] : [start]));
  }

  _empty() {
    return h(
      "div", { class: "empty" }, icon("message"),
      h("h2", {}, "Nothing said yet"),
      h("p", {}, "Write the first message. Type @ to ask one of the agents."),
    );
  }

  _scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this._log;
    const wasFollowing = this._following;
    const isNear = scrollHeight - scrollTop - clientHeight < NEAR_BOTTOM_PX;
    // What grows below (a picture that arrives) is not the reader who scrolls up.
    if (isNear || scrollTop < this._scrollTop) this._following = isNear;
    this._scrollTop = scrollTop;
    if (this._following) {
      this._count(-this._unseen);
      if (!wasFollowing) this.dispatchEvent(new Event("bottom"));
    }
    this._jump.hidden = this._following;
    if (scrollTop < 400) this._loadOlder();
  }

  _count(more) {
    this._unseen = Math.max(0, this._unseen + more);
    this._jump.hidden = this._following;
    const label = this._unseen === 1 ? "1 new message" : `${this._unseen} new messages`;
    this._jumpLabel.textContent = this._unseen ? label : "Latest";
  }

  /** Give one message its day line, or let it follow the one before. */
  _arrange(at) {
    const view = this._views[at];
    if (!view) return;
    const entry = view.entry;
    const before = this._views[at - 1]?.entry;
    const sameDay = before && daysAgo(before.at, entry.at) === 0;
    view.follow(
      Boolean(sameDay) && view.previousElementSibling?.localName !== "live-response" && before.sender_id === entry.sender_id &&
        before.sender_kind === entry.sender_kind && before.transport === entry.transport &&
        entry.at - before.at < FOLLOWS_WITHIN_MS,
    );
    const line = view.previousElementSibling;
    if (line?.classList.contains("is-day")) line.remove();
    if (!sameDay) {
      view.before(h("div", { class: "separator is-day", role: "separator" }, h("span", {}, dayName(entry.at))));
    }
  }

  _placeReaders() {
    const places = new Map();
    for (const reader of this._readers.values()) {
      const view = this._views.findLast(({ entry }) => entry.seq <= reader.seq);
      if (view) places.set(view, [...(places.get(view) || []), reader]);
    }
    for (const view of this._views) view.showReaders(places.get(view) || []);
  }

  _prune() {
    while (this._views.length > KEPT) {
      const [oldest] = this._views.splice(0, 1);
      while (this._messages.firstElementChild !== oldest) this._messages.firstElementChild.remove();
      oldest.remove();
      this._hasOlder = true;
    }
    this._arrange(0);
  }
}
customElements.define("message-list", MessageList);
