/** The receipt chips of a chat's messages: what an answer cost, with the details behind it. */

import { decimal, fromFloat, shown, units } from "./amounts.js";
import { api } from "./context.js";
import { h, icon } from "./dom.js";
import { fullTime } from "./time.js";

const TOGETHER_MS = 60;
const AT_ONCE = 100;

/**
 * @typedef {object} Receipt
 * @property {string} response_id
 * @property {string} amount
 * @property {string} refunded
 * @property {string} fee
 * @property {string} currency
 * @property {number|null} input_tokens
 * @property {number|null} output_tokens
 * @property {number} tools
 * @property {"you"|"somebody"|"pool"} paid_by
 * @property {string} paid_at ISO 8601
 * @property {string[]} transfers
 * @property {Receipt[]} [delegated] what other agents answered for it
 */

const PAID_BY = { you: "You", somebody: "Another person", pool: "The chat’s pool" };

const UNFINISHED = {
  whole: "the whole price of an answer",
  share: "a share of the price of an answer",
  none: "without the price of an answer",
};

function detailRows(receipt) {
  const { currency } = receipt;
  const rows = [
    ["Paid by", PAID_BY[receipt.paid_by] || receipt.paid_by],
    ["Tokens read", receipt.input_tokens],
    ["Tokens written", receipt.output_tokens],
    ["Tools called", receipt.tools || null],
    ["Stopped or failed", UNFINISHED[receipt.unfinished] || null],
    ["Of it to this server", units(receipt.fee) ? shown(receipt.fee, currency) : null],
    ["Given back", units(receipt.refunded) ? shown(receipt.refunded, currency) : null],
    ["When", fullTime(Date.parse(receipt.paid_at))],
    ["Transfer", receipt.transfers.join(", ") || null],
  ];
  return rows.filter(([, value]) => value !== null && value !== undefined).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value))]);
}

/** What an answer cost with the work that it passed on, as far as that is in the same currency. */
function total(receipt, member) {
  const parts = [receipt, ...(receipt.delegated || []).filter(({ currency }) => currency === receipt.currency)];
  return decimal(parts.reduce((sum, part) => sum + units(part[member]), 0n));
}

/** The receipts of other agents' work, each behind its name. */
function workRows({ delegated = [] }) {
  return delegated.map((work) => h("div", { class: "receipt-work" }, h("p", {}, `Passed on to ${work.agent}: `, shown(work.amount, work.currency)), h("dl", {}, detailRows(work))));
}

function details(receipt) {
  const own = units(receipt.amount) > 0n || !receipt.delegated?.length;
  return [own ? h("dl", {}, detailRows(receipt)) : null, ...workRows(receipt)].filter(Boolean);
}

function chip(receipt) {
  const amount = total(receipt, "amount");
  const givenBack = total(receipt, "refunded");
  const refunded = units(givenBack);
  const isAll = refunded > 0n && refunded >= units(amount);
  const state = isAll ? " · refunded" : refunded ? ` · ${shown(givenBack, receipt.currency)} refunded` : "";
  return h(
    "details", { class: `receipt ${refunded ? "is-refunded" : ""}`, "data-testid": "receipt" },
    h("summary", {}, icon("wallet"), h("span", { class: "visually-hidden" }, "Receipt: "), h("span", {}, h("span", { class: "receipt-amount" }, shown(amount, receipt.currency)), state)),
    ...(receipt.paid_at ? details(receipt) : [h("p", { class: "receipt-wait" }, "The receipt is on its way.")]),
  );
}

export class Receipts {
  /** @param {HTMLElement} list a message-list */
  constructor(list) {
    this._list = list;
    /** @type {Map<string, Receipt>} */
    this._known = new Map();
    this._asked = new Set();
    this._observer = new MutationObserver(() => this._look());
    this._observer.observe(list.querySelector(".log-messages"), { childList: true });
  }

  /** @param {string} chatId @param {(entry: object) => boolean} mayCost whether to ask for a message */
  open(chatId, mayCost) {
    this._chatId = chatId;
    this._mayCost = mayCost;
    this._look();
  }

  close() {
    this._observer.disconnect();
    clearTimeout(this._timer);
    this._chatId = "";
  }

  /** An answer ended: show what it says that it cost, and ask for the receipt. */
  ended({ id, usage, parts }) {
    const cost = usage?.cost;
    // What other agents did for it may have cost something when it did not.
    const passedOn = parts.some(({ kind, name }) => kind === "tool" && name === "delegate");
    if (!cost?.total_cost && !passedOn) return;
    if (cost?.total_cost && !this._known.has(id)) {
      this._known.set(id, { response_id: id, amount: fromFloat(cost.total_cost), currency: cost.currency || "USD", refunded: "0" });
    }
    this._ask(id);
  }

  /** Ask again for what is on the page: something may have been given back. */
  refresh() {
    for (const id of this._known.keys()) this._ask(id);
  }

  _look() {
    if (!this._chatId) return;
    for (const view of this._views()) {
      const id = view.entry.response_id;
      if (this._known.has(id)) this._put(view);
      else if (!this._asked.has(id) && this._mayCost(view.entry)) this._ask(id);
    }
  }

  _views() {
    return Array.from(this._list.querySelectorAll("chat-message")).filter((view) => view.entry?.response_id);
  }

  _put(view) {
    const receipt = this._known.get(view.entry.response_id);
    const place = view.querySelector(".message-foot");
    const key = JSON.stringify(receipt);
    if (!place || place.dataset.key === key) return;
    const wasOpen = place.querySelector("details")?.open;
    const fresh = chip(receipt);
    fresh.open = Boolean(wasOpen);
    place.dataset.key = key;
    place.replaceChildren(fresh);
  }

  _ask(id) {
    this._asked.add(id);
    this._wanted ||= new Set();
    this._wanted.add(id);
    clearTimeout(this._timer);
    this._timer = setTimeout(() => this._fetch(), TOGETHER_MS);
  }

  async _fetch() {
    const { _chatId: chatId } = this;
    const ids = Array.from(this._wanted).slice(0, AT_ONCE);
    for (const id of ids) this._wanted.delete(id);
    if (this._wanted.size) this._timer = setTimeout(() => this._fetch(), TOGETHER_MS);
    try {
      const page = await api.get(`/chats/${encodeURIComponent(chatId)}/payments?responses=${ids.join(",")}`);
      if (chatId !== this._chatId) return;
      for (const receipt of page.data) this._known.set(receipt.response_id, receipt);
    } catch (error) {
      if (error.name !== "ApiError") throw error;
      // Asked for again with the next look at the page.
      for (const id of ids) this._asked.delete(id);
      return;
    }
    for (const view of this._views()) if (this._known.has(view.entry.response_id)) this._put(view);
  }
}
