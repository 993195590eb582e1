/**
 * The user's balance: loaded from the server, and again whenever a payment was requested, made or
 * refused.
 */

import { isApiError } from "../api.js";
import { units } from "./amounts.js";
import { api, client, me } from "../context.js";

const SOON_MS = 150;
const KEPT = `uamp.low-balance.${me.id}`;

/** Fires `change`. */
class Wallet extends EventTarget {
  constructor() {
    super();
    /** @type {{available: string, held: string, currency: string}|null} */
    this.balance = null;
    /** When it was requested, in milliseconds of `performance.now()`. */
    this.asOf = 0;
    client.addEventListener("payment", (/** @type {any} */ { detail }) => this._onPayment(detail));
    client.addEventListener("watched", () => this.refresh());
    client.addEventListener(
      "person",
      (/** @type {any} */ { detail }) => detail.subject === "balance" && this.refresh(),
    );
    this.refresh();
  }

  /** Whether the balance is lower than the cost of a few more answers. */
  get isLow() {
    const threshold = localStorage.getItem(KEPT);
    return (
      this.balance !== null &&
      Boolean(threshold) &&
      units(this.balance.available) < units(threshold ?? "")
    );
  }

  /** Reload the balance soon: several causes share one request. */
  refresh() {
    this._timer ||= setTimeout(async () => {
      this._timer = 0;
      const asOf = performance.now();
      try {
        this.balance = await api.get("/api/payments/balance");
        this.asOf = asOf;
      } catch (/** @type {any} */ error) {
        // The next payment reloads it; an amount that may be wrong is not shown.
        if (!isApiError(error)) throw error;
        this.balance = null;
      }
      this.dispatchEvent(new Event("change"));
    }, SOON_MS);
  }

  /** @param {import("../../uamp/types.js").Frame} event */
  _onPayment(event) {
    if (event.type === "payment.balance" && event.threshold)
      localStorage.setItem(KEPT, event.threshold);
    if (event.type === "payment.error" && event.balance_required)
      localStorage.setItem(KEPT, event.balance_required);
    this.refresh();
  }
}

export const wallet = new Wallet();
