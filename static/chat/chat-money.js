/** Money in the open chat: the cards of payments that are asked for, and the receipts of answers. */

import { shown, units } from "./amounts.js";
import { api } from "./context.js";
import { announce, h } from "./dom.js";
import { Receipts } from "./receipts.js";
import "./payment-card.js";

export class ChatMoney {
  /**
   * @param {import("./message-list.js").MessageList} list
   * @param {(text: string) => void} say shows the writer a text for a moment
   */
  constructor(list, say) {
    this._list = list;
    this._say = say;
    this._cards = new Map();
    this._place = h("div", { class: "log-payments" });
    list.querySelector(".log-turns").before(this._place);
    this._place.addEventListener("pay", (e) => this._pay(e.detail.payment));
    this._place.addEventListener("pay-always", (e) => this._always(e.target, e.detail));
    this._place.addEventListener("pay-cancel", (e) => this._session.cancel(e.detail.payment.responseId));
    this._receipts = new Receipts(list);
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
    on(session, "payments", (asked) => this._show(asked));
    on(session, "response-end", (response) => this._receipts.ended(response));
    on(document, "visibilitychange", () => document.hidden || this._receipts.refresh());
    on(window, "focus", () => this._receipts.refresh());
    signal.addEventListener("abort", () => this._receipts.close());
    const priced = ({ sender_id: id }) => chat().participants.some((p) => p.kind === "agent" && p.id === id && p.pricing);
    // Answers of before may be of an agent that was dearer then; new ones have their cost.
    this._receipts.open(session.chatId, (entry) => entry.at < since || priced(entry));
    this._show(null);
  }

  /** @param {import("../uamp/payments.js").Payment|null} asked one that is asked for now */
  _show(asked) {
    const payments = this._session.payments.list;
    const keys = new Set(payments.map((payment) => payment.key));
    for (const [key, card] of this._cards) {
      if (keys.has(key)) continue;
      // After a button press here, the focus must not fall back to the top of the page.
      if (card.contains(document.activeElement)) this._list.querySelector(".log").focus({ preventScroll: true });
      card.remove();
      this._cards.delete(key);
    }
    for (const payment of payments) {
      let card = this._cards.get(payment.key);
      if (!card) {
        card = document.createElement("payment-card");
        this._cards.set(payment.key, card);
        this._place.append(card);
      }
      card.show(payment);
    }
    if (asked) {
      const what = asked.isTopUp ? "to go on" : "for an answer";
      announce(`${asked.agent} asks for ${shown(asked.amount, asked.currency)} ${what}. Pay or cancel at the end of the chat.`);
    }
    if (this._list.atBottom) this._list.toBottom();
  }

  _pay(payment) {
    if (payment.state === "sent") return;
    this._session.pay(payment);
    if (!this._session.ready) this._say("There is no connection. The payment is sent once when it is back.");
  }

  async _always(card, { payment, upTo }) {
    if (payment.state === "sent") return;
    if (/^\d+(\.\d+)?$/.test(upTo) && units(upTo) < units(payment.amount)) {
      card.say(`${payment.agent} asks for ${shown(payment.amount, payment.currency)} now: allow at least that, or pay once.`);
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
