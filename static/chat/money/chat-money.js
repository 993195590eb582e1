/** Payments and receipts in the open chat. */

import { formatDue } from "./amounts.js";
import { calls, page } from "../context.js";
import { announce } from "../dom.js";
import { decidePayments } from "../cards/payment-decisions.js";
import { Receipts } from "../cards/receipts.js";
import { gettext, interpolate } from "../words.js";

/** @typedef {import("../../uamp/payments.js").Payment} Payment */
/** @typedef {import("../../uamp/live-response.js").LiveResponse} LiveResponse */

export class ChatMoney {
  /**
   * @param {HTMLElement} list the container of the payment cards
   * @param {(text: string) => void} say shows the writer a text for a moment
   * @param {import("../store/history.js").PageStore} [state] of the chat, or of a thread
   */
  constructor(list, say, state = page) {
    this._page = state;
    /** @type {import("../../uamp/chat-session.js").ChatSession|null} */
    this._session = null;
    decidePayments(list, { session: () => this._session, say });
  }

  /**
   * @param {import("../../uamp/chat-session.js").ChatSession} session
   * @param {() => import("../store/chat.js").Chat|null|undefined} chat as it is now
   * @param {AbortSignal} signal aborted when the chat is left
   */
  listen(session, chat, signal) {
    this._session = session;
    const since = Date.now();
    const priced = (/** @type {import("../store/entry.js").Entry} */ { sender_id: id }) =>
      chat()?.participants.some((p) => p.kind === "agent" && p.id === id && p.pricing) ?? false;
    // Earlier answers may come from an agent that charged more then; new ones state their cost.
    const receipts = new Receipts((entry) => entry.at < since || priced(entry), this._page);
    session.addEventListener(
      "payments",
      (event) => this._changed(/** @type {CustomEvent<Payment|null>} */ (event).detail),
      { signal },
    );
    session.addEventListener(
      "response-end",
      (event) => {
        const response = /** @type {CustomEvent<LiveResponse>} */ (event).detail;
        if (response.thread === this._page.state.thread) receipts.ended(response);
      },
      { signal },
    );
    document.addEventListener("visibilitychange", () => document.hidden || receipts.refresh(), {
      signal,
    });
    addEventListener("focus", () => receipts.refresh(), { signal });
    signal.addEventListener("abort", () => receipts.close());
    this._changed(null);
  }

  /** @param {import("../../uamp/payments.js").Payment|null} asked the new one, if any */
  _changed(asked) {
    const session = this._session;
    if (!session) return;
    const threadOf = (/** @type {Payment} */ { responseId }) =>
      session.responses.get(responseId)?.thread || "";
    // The call panel shows the payments for answers in a call.
    const isInCall = (/** @type {Payment} */ { responseId }) =>
      calls.active?.agents.isAnswer(responseId);
    this._page.dispatch({
      type: "payments",
      list: session.payments.list
        .filter((one) => !isInCall(one))
        .map((one) => ({ ...one, thread: threadOf(one) })),
    });
    if (!asked || isInCall(asked) || threadOf(asked) !== this._page.state.thread) return;
    announce(
      interpolate(
        asked.isTopUp
          ? gettext(
              "%(agent)s asks for %(amount)s to continue. Pay or cancel at the end of the chat.",
            )
          : gettext(
              "%(agent)s asks for %(amount)s for an answer. Pay or cancel at the end of the chat.",
            ),
        { agent: asked.agent, amount: formatDue(asked.amount, asked.currency) },
      ),
    );
  }
}
