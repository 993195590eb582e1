/** The receipt chips of messages: the price of an answer, with its details on demand. */

import "./receipt-badge.js";
import { isApiError } from "../api.js";
import { decimal, formatAmount, formatExact, fromFloat, units } from "../money/amounts.js";
import { api } from "../context.js";
import { fullTime } from "../text/time.js";
import { glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

const TOGETHER_MS = 60;
const AT_ONCE = 100;

/**
 * @typedef {import("../store/entry.js").Entry} Entry
 *
 * @typedef {object} Receipt
 * @property {string} response_id
 * @property {string} amount
 * @property {string} refunded
 * @property {string} fee
 * @property {string} currency
 * @property {number|null} input_tokens
 * @property {number|null} output_tokens
 * @property {number} tools
 * @property {"you"|"other"|"pool"} paid_by
 * @property {string|null} [paid_onward] by the agent's owner on another server
 * @property {string} paid_at ISO 8601
 * @property {string[]} transfers
 * @property {string} [agent] that answered, for delegated work
 * @property {string} [unfinished] how much of the price was due for an unfinished answer
 * @property {string} [document] the receipt as the server signed it
 * @property {Receipt[]} [delegated] receipts of work that other agents did for it
 */

/** @type {Record<string, string>} */
const PAID_BY = {
  you: gettext("You"),
  other: gettext("Another person"),
  pool: gettext("The chat's pool"),
};

/** @type {Record<string, string>} */
const UNFINISHED = {
  whole: gettext("the whole price of an answer"),
  share: gettext("a share of the price of an answer"),
  none: gettext("without the price of an answer"),
};

/** @param {Receipt} receipt */
function detailRows(receipt) {
  const { currency } = receipt;
  const rows = [
    [gettext("Paid"), formatExact(receipt.amount, currency)],
    [gettext("Paid by"), PAID_BY[receipt.paid_by] || receipt.paid_by],
    [gettext("Input tokens"), receipt.input_tokens],
    [gettext("Output tokens"), receipt.output_tokens],
    [gettext("Tools called"), receipt.tools || null],
    [gettext("Stopped or failed"), UNFINISHED[receipt.unfinished ?? ""] || null],
    [gettext("Server fee"), units(receipt.fee) ? formatExact(receipt.fee, currency) : null],
    [
      gettext("Paid on another server"),
      receipt.paid_onward ? formatExact(receipt.paid_onward, currency) : null,
    ],
    [gettext("Refunded"), units(receipt.refunded) ? formatExact(receipt.refunded, currency) : null],
    [gettext("When"), fullTime(Date.parse(receipt.paid_at))],
    [gettext("Transfer"), receipt.transfers.join(", ") || null],
  ];
  return rows
    .filter(([, value]) => value !== null && value !== undefined)
    .map(
      ([name, value]) =>
        html`<dt>${name}</dt>
          <dd>${value}</dd>`,
    );
}

/**
 * The cost of an answer including delegated work in the same currency.
 * @param {Receipt} receipt
 * @param {"amount"|"refunded"} member
 */
function total(receipt, member) {
  const parts = [
    receipt,
    ...(receipt.delegated || []).filter(({ currency }) => currency === receipt.currency),
  ];
  return decimal(parts.reduce((sum, part) => sum + units(part[member]), 0n));
}

/** The receipts of other agents' work, each with the agent's name. @param {Receipt} receipt */
const workRows = ({ delegated = [] }) =>
  delegated.map(
    (work) =>
      html` <div class="receipt-work">
        <p>
          ${interpolate(gettext("Passed on to %(agent)s: %(amount)s"), {
            agent: work.agent ?? "",
            amount: formatExact(work.amount, work.currency),
          })}
        </p>
        <dl>${detailRows(work)}</dl>
        <receipt-badge .receipt=${work}></receipt-badge>
      </div>`,
  );

/** @param {Receipt} receipt @param {Entry} [entry] */
function details(receipt, entry) {
  if (!receipt.paid_at)
    return html`<p class="receipt-wait">${gettext("The receipt is on its way.")}</p>`;
  const own = units(receipt.amount) > 0n || !receipt.delegated?.length;
  return html`${
    own
      ? html`<dl>${detailRows(receipt)}</dl>
          <receipt-badge .receipt=${receipt} .entry=${entry}></receipt-badge>`
      : ""
  }${workRows(receipt)}`;
}

/**
 * The chip below an answer; a click opens the details.
 * @param {Receipt} receipt
 * @param {Entry} [entry] the answer
 */
export function receiptTemplate(receipt, entry) {
  const amount = total(receipt, "amount");
  const givenBack = total(receipt, "refunded");
  const refunded = units(givenBack);
  const isAll = refunded > 0n && refunded >= units(amount);
  const state = isAll
    ? ` · ${gettext("refunded")}`
    : refunded
      ? ` · ${interpolate(gettext("%(amount)s refunded"), {
          amount: formatAmount(givenBack, receipt.currency),
        })}`
      : "";
  return html` <details class="receipt ${refunded ? "is-refunded" : ""}" data-testid="receipt">
    <summary>
      ${glyph("wallet")}<span class="visually-hidden">${gettext("Receipt:")} </span
      ><span
        ><span class="receipt-amount">${formatAmount(amount, receipt.currency)}</span>${state}</span
      >
    </summary>
    ${details(receipt, entry)}
  </details>`;
}

/** Requests the receipts of the messages on the page, several at once. */
export class Receipts {
  /**
   * @param {(entry: Entry) => boolean} mayCost whether to request a message's receipt
   * @param {import("../store/history.js").PageStore} state of the chat or a thread
   */
  constructor(mayCost, state) {
    this._mayCost = mayCost;
    this._page = state;
    /** @type {Set<string>} ids of responses */
    this._asked = new Set();
    /** @type {Set<string>} ids to request next */
    this._wanted = new Set();
    /** @type {Entry[]|null} the last checked messages */
    this._looked = null;
    this._timer = 0;
    this._chatId = this._page.state.chatId;
    this._end = this._page.subscribe(() => this._look());
    this._look();
  }

  close() {
    this._end();
    clearTimeout(this._timer);
    this._chatId = "";
  }

  /**
   * An answer ended: show the cost that it states, and request its receipt.
   * @param {import("../../uamp/live-response.js").LiveResponse} response
   */
  ended({ id, usage, parts }) {
    const cost = usage?.cost;
    // An answer that is free itself may have delegated work that was not.
    const passedOn = parts.some((part) => part.kind === "tool" && part.name === "delegate");
    if (!cost?.total_cost && !passedOn) return;
    if (cost?.total_cost && !this._page.state.receipts.has(id)) {
      const receipt = {
        response_id: id,
        amount: fromFloat(cost.total_cost),
        currency: cost.currency || "USD",
        refunded: "0",
      };
      this._page.dispatch({ type: "receipts", receipts: [receipt] });
    }
    this._ask(id);
  }

  /** Refetch the receipts on the page: some may have been refunded. */
  refresh() {
    for (const id of this._page.state.receipts.keys()) this._ask(id);
  }

  _look() {
    const { entries, receipts } = this._page.state;
    if (entries === this._looked) return;
    this._looked = entries;
    for (const entry of entries) {
      const id = entry.response_id;
      if (id && !receipts.has(id) && !this._asked.has(id) && this._mayCost(entry)) this._ask(id);
    }
  }

  /** @param {string} id of a response */
  _ask(id) {
    this._asked.add(id);
    this._wanted.add(id);
    clearTimeout(this._timer);
    this._timer = window.setTimeout(() => this._fetch(), TOGETHER_MS);
  }

  async _fetch() {
    const { _chatId: chatId } = this;
    const ids = Array.from(this._wanted).slice(0, AT_ONCE);
    for (const id of ids) this._wanted.delete(id);
    if (this._wanted.size) this._timer = window.setTimeout(() => this._fetch(), TOGETHER_MS);
    try {
      const answer = await api.get(
        `/chats/${encodeURIComponent(chatId)}/payments?responses=${ids.join(",")}`,
      );
      if (chatId === this._chatId) this._page.dispatch({ type: "receipts", receipts: answer.data });
    } catch (error) {
      if (!isApiError(error)) throw error;
      // The next check requests these again.
      for (const id of ids) this._asked.delete(id);
    }
  }
}
