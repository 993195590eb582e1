/** Money in the open chat: the payments that are asked for, and the receipts of answers. */

import { shown, units } from "./amounts.js";
import { api, page } from "./context.js";
import { announce } from "./dom.js";
import { Receipts } from "./cards/receipts.js";
import { gettext, interpolate } from "./words.js";

export class ChatMoney {
  /**
   * @param {HTMLElement} list in which the cards of payments are
   * @param {(text: string) => void} say shows the writer a text for a moment
   * @param {import("./store/history.js").PageStore} [state] of the chat, or of a thread
   */
  constructor(list, say, state = page) {
    this._say = say;
    this._page = state;
    list.addEventListener("pay", (e) => this._pay(e.detail.payment));
    list.addEventListener("pay-always", (e) => this._always(e.target, e.detail));
    list.addEventListener("pay-cancel", (e) => this._session.cancel(e.detail.payment.responseId));
  }

  /**
   * @param {import("../uamp/chat-session.js").ChatSession} session
   * @param {() => import("./chat-store.js").Chat} chat as it is now
   * @param {AbortSignal} signal that the chat is left
   */
  listen(session, chat, signal) {
    this._session = session;
    const since = Date.now();
    const on = (target, type, listener) => target.addEventListener(type, (e) => listener(e.detail), { signal });
    const priced = ({ sender_id: id }) => chat().participants.some((p) => p.kind === "agent" && p.id === id && p.pricing);
    // Answers of before may be of an agent that was dearer then; new ones have their cost.
    const receipts = new Receipts((entry) => entry.at < since || priced(entry), this._page);
    on(session, "payments", (asked) => this._changed(asked));
    on(session, "response-end", (response) => response.thread === this._page.state.thread && receipts.ended(response));
    on(document, "visibilitychange", () => document.hidden || receipts.refresh());
    on(window, "focus", () => receipts.refresh());
    signal.addEventListener("abort", () => receipts.close());
    this._changed(null);
  }

  /** @param {import("../uamp/payments.js").Payment|null} asked one that is asked for now */
  _changed(asked) {
    const { responses } = this._session;
    const threadOf = ({ responseId }) => responses.get(responseId)?.thread || "";
    this._page.dispatch({ type: "payments", list: this._session.payments.list.map((one) => ({ ...one, thread: threadOf(one) })) });
    if (!asked || threadOf(asked) !== this._page.state.thread) return;
    announce(interpolate(
      asked.isTopUp
        ? gettext("%(agent)s asks for %(amount)s to go on. Pay or cancel at the end of the chat.")
        : gettext("%(agent)s asks for %(amount)s for an answer. Pay or cancel at the end of the chat."),
      { agent: asked.agent, amount: shown(asked.amount, asked.currency) },
    ));
  }

  _pay(shownPayment) {
    // The card has a copy: the client keeps the payment itself.
    const payment = this._session.payments.list.find(({ key }) => key === shownPayment.key);
    if (!payment || payment.state === "sent") return;
    this._session.pay(payment);
    if (!this._session.ready) this._say(gettext("There is no connection. The payment is sent once when it is back."));
  }

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
      if (error.name !== "ApiError") throw error;
      card.say(error.message);
      return;
    }
    this._pay(payment);
  }
}
