/**
 * The payments requested in a chat, folded from `payment.required`, `.accepted` and `.error` (UAMP
 * §7.2). A payment keeps one event id until the server has reported its outcome, so that a second
 * click or a repeat after a lost connection is the same payment.
 */

import { newId } from "./ids.js";
import { RepeatedRequests } from "./timers.js";

/**
 * @typedef {object} Payment
 * @property {string} key
 * @property {string} responseId
 * @property {string} agent that asks
 * @property {string} amount a decimal string
 * @property {string} currency
 * @property {string} reason llm_usage or tool_usage
 * @property {boolean} isTopUp whether the answer is under way and pauses
 * @property {boolean} byBalance whether it can be paid from the balance
 * @property {number} expiresAt Unix seconds, 0 for never
 * @property {string} [thread] in which it is asked; "" for the chat
 * @property {"asked"|"sent"|"refused"} state
 * @property {string} eventId of the submission that is under way
 * @property {{code: string, message: string, required: string, current: string,
 *   canRetry: boolean}|null} error why the last submission was refused
 */

export class Payments {
  /** @param {() => void} changed called after each change */
  constructor(changed) {
    this._changed = changed;
    /** @type {Map<string, Payment>} */
    this._all = new Map();
    /** @type {Set<string>} */
    this._settled = new Set();
    this._repeats = new RepeatedRequests((keys) => this._drop(({ key }) => keys.has(key)));
  }

  /** @returns {Payment[]} the open payments, in the order of asking */
  get list() {
    return Array.from(this._all.values());
  }

  /**
   * Take `payment.required`.
   * @param {import("./types.js").Frame} event
   * @returns {Payment|null} the payment when it is requested for the first time
   */
  asked({ response_id: responseId, requirements, extra }) {
    const { amount, currency, schemes = [], expires_at: expiresAt = 0, reason = "" } = requirements;
    const key = `${responseId} ${expiresAt} ${amount}`;
    this._repeats.repeated(key);
    if (this._all.has(key) || this._settled.has(key)) return null;
    this._drop((payment) => payment.responseId === responseId);
    /** @type {Payment} */
    const payment = {
      key,
      responseId,
      amount,
      currency,
      reason,
      expiresAt,
      agent: requirements.extra?.agent || "An agent",
      isTopUp: (extra?.action || requirements.extra?.action) === "topup",
      byBalance: schemes.some((/** @type {{scheme: string}} */ { scheme }) => scheme === "balance"),
      state: "asked",
      eventId: "",
      error: null,
    };
    this._all.set(key, payment);
    this._changed();
    return payment;
  }

  /**
   * Take `payment.accepted`, for a payment here or on another page of the user.
   * @param {import("./types.js").Frame} event
   */
  accepted({ response_id: responseId }) {
    this._settle((payment) => payment.responseId === responseId);
  }

  /**
   * Take `payment.error`; nothing was paid, and the next attempt is a new payment.
   * @param {import("./types.js").Frame} event
   */
  refused({
    response_id: responseId,
    code,
    message,
    balance_required,
    balance_current,
    can_retry,
  }) {
    // The payer did not pay, and nothing is due any longer.
    if (!can_retry)
      this._settle((payment) => payment.responseId === responseId && payment.state === "asked");
    for (const payment of this.list) {
      if (payment.responseId === responseId && payment.state === "sent") {
        Object.assign(payment, {
          state: "refused",
          eventId: "",
          error: {
            code,
            message,
            required: balance_required || "",
            current: balance_current || "",
            canRetry: Boolean(can_retry),
          },
        });
        this._changed();
      }
    }
  }

  /**
   * The server reports that nothing is due for a submission.
   * @param {string} eventId
   * @returns {boolean} whether it was one of these
   */
  notDue(eventId) {
    return Boolean(eventId) && this._settle((payment) => payment.eventId === eventId);
  }

  /** The answer to be paid for ended. @param {string} responseId */
  responseEnded(responseId) {
    this._settle((payment) => payment.responseId === responseId);
  }

  /**
   * Return the frame that pays from the balance; the same one until the server answered.
   * @param {Payment} payment
   */
  submission(payment) {
    payment.eventId ||= newId();
    payment.state = "sent";
    payment.error = null;
    this._changed();
    return {
      type: "payment.submit",
      event_id: payment.eventId,
      response_id: payment.responseId,
      payment: { scheme: "balance", network: "uamp", amount: payment.amount },
    };
  }

  /** The connection is gone. */
  lost() {
    this._repeats.stop();
  }

  /** The connection is back. Returns the unconfirmed payments, to be resent. */
  reconnected() {
    this._repeats.expect(Array.from(this._all.keys()));
    return this.list.filter((payment) => payment.state === "sent");
  }

  /** Drop all payments: the log is another one, and the server asks again for what is due. */
  forget() {
    this._repeats.stop();
    this._settled.clear();
    this._drop(() => true);
  }

  /** @param {(payment: Payment) => boolean} which */
  _settle(which) {
    const payments = this.list.filter(which);
    for (const { key } of payments) this._settled.add(key);
    return this._drop(which);
  }

  /** @param {(payment: Payment) => boolean} which */
  _drop(which) {
    const payments = this.list.filter(which);
    for (const { key } of payments) this._all.delete(key);
    if (payments.length) this._changed();
    return payments.length > 0;
  }
}
