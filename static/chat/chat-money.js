/** Money in the open chat: the payments that are asked for, and the receipts of answers. */

import { isApiError } from "./api.js";
import { shown, units } from "./amounts.js";
import { api, page } from "./context.js";
import { announce } from "./dom.js";
import { Receipts } from "./cards/receipts.js";
import { gettext, interpolate } from "./words.js";

/** @typedef {import("../uamp/payments.js").Payment} Payment */
/** @typedef {import("../uamp/live-response.js").LiveResponse} LiveResponse */
/** @typedef {import("./cards/payment-card.js").PaymentCard} PaymentCard */
/** @typedef {CustomEvent<{payment: Payment, upTo: string}>} Decision what a card fires */

export class ChatMoney {
  /**
   * @param {HTMLElement} list in which the cards of payments are
   * @param {(text: string) => void} say shows the writer a text for a moment
   * @param {import("./store/history.js").PageStore} [state] of the chat, or of a thread
   */
  constructor(list, say, state = page) {
    this._say = say;
    this._page = state;
    /** @type {import("../uamp/chat-session.js").ChatSession|null} */
    this._session = null;
    list.addEventListener("pay", (event) => this._pay(/** @type {Decision} */ (event).detail.payment));
    list.addEventListener("pay-always", (event) => this._always(/** @type {PaymentCard} */ (event.target), /** @type {Decision} */ (event).detail));
    list.addEventListener("pay-cancel", (event) => this._session?.cancel(/** @type {Decision} */ (event).detail.payment.responseId));
  }

  /**
   * @param {import("../uamp/chat-session.js").ChatSession} session
   * @param {() => import("./chat-store.js").Chat|null|undefined} chat as it is now
   * @param {AbortSignal} signal that the chat is left
   */
  listen(session, chat, signal) {
    this._session = session;
    const since = Date.now();
    const priced = (/** @type {import("./store/entry.js").Entry} */ { sender_id: id }) => chat()?.participants.some((p) => p.kind === "agent" && p.id === id && p.pricing) ?? false;
    // Answers of before may be of an agent that was dearer then; new ones have their cost.
    const receipts = new Receipts((entry) => entry.at < since || priced(entry), this._page);
    session.addEventListener("payments", (event) => this._changed(/** @type {CustomEvent<Payment|null>} */ (event).detail), { signal });
    session.addEventListener("response-end", (event) => {
      const response = /** @type {CustomEvent<LiveResponse>} */ (event).detail;
      if (response.thread === this._page.state.thread) receipts.ended(response);
    }, { signal });
    document.addEventListener("visibilitychange", () => document.hidden || receipts.refresh(), { signal });
    addEventListener("focus", () => receipts.refresh(), { signal });
    signal.addEventListener("abort", () => receipts.close());
    this._changed(null);
  }

  /** @param {import("../uamp/payments.js").Payment|null} asked one that is asked for now */
  _changed(asked) {
    const session = this._session;
    if (!session) return;
    const threadOf = (/** @type {Payment} */ { responseId }) => session.responses.get(responseId)?.thread || "";
    this._page.dispatch({ type: "payments", list: session.payments.list.map((one) => ({ ...one, thread: threadOf(one) })) });
    if (!asked || threadOf(asked) !== this._page.state.thread) return;
    announce(interpolate(
      asked.isTopUp
        ? gettext("%(agent)s asks for %(amount)s to go on. Pay or cancel at the end of the chat.")
        : gettext("%(agent)s asks for %(amount)s for an answer. Pay or cancel at the end of the chat."),
      { agent: asked.agent, amount: shown(asked.amount, asked.currency) },
    ));
  }

  /** @param {Payment} shownPayment */
  _pay(shownPayment) {
    const session = this._session;
    if (!session) return;
    // The card has a copy: the client keeps the payment itself.
    const payment = session.payments.list.find(({ key }) => key === shownPayment.key);
    if (!payment || payment.state === "sent") return;
    session.pay(payment);
    if (!session.ready) this._say(gettext("There is no connection. The payment is sent once when it is back."));
  }

  /** @param {PaymentCard} card @param {{payment: Payment, upTo: string}} decision */
  async _always(card, { payment, upTo }) {
    if (payment.state === "sent") return;
    if (/^\d+(\.\d+)?$/.test(upTo) && units(upTo) < units(payment.amount)) {
      card.say(interpolate(gettext("%(agent)s asks for %(amount)s now: allow at least that, or pay once."), { agent: payment.agent, amount: shown(payment.amount, payment.currency) }));
      return;
    }
    try {
      const path = `/api/payments/approvals/${encodeURIComponent(payment.agent)}`;
      await api.send("PUT", path, { up_to: upTo, currency: payment.currency });
    } catch (error) {
      if (!isApiError(error)) throw error;
      card.say(error.message);
      return;
    }
    this._pay(payment);
  }
}
