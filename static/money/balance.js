/** The user's balance, and the part of it reserved for running answers. */

import { formatAmount, formatExact, units } from "../chat/money/amounts.js";
import { MoneyPart, api } from "./part.js";
import { gettext } from "../chat/words.js";
import { html, nothing } from "../vendor/lit/lit.js";

/**
 * @typedef {{available: string, held: string, posted: string, currency: string}} Balance decimal
 *   strings
 */

class MoneyBalance extends MoneyPart {
  static properties = { _balance: { state: true } };

  constructor() {
    super();
    /** @type {Balance|null} */
    this._balance = null;
    this._onSeen = () => document.hidden || this.changed();
  }

  connectedCallback() {
    super.connectedCallback();
    document.addEventListener("visibilitychange", this._onSeen);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    document.removeEventListener("visibilitychange", this._onSeen);
  }

  get heading() {
    return gettext("Balance");
  }

  async read() {
    this._balance = await api.get("/api/payments/balance");
  }

  body() {
    return html`${this._balance ? this._figures(this._balance) : nothing}${this.problem()}`;
  }

  /** @param {Balance} balance */
  _figures({ available, held, posted, currency }) {
    const figure = (
      /** @type {string} */ name,
      /** @type {string} */ amount,
      /** @type {string} */ id,
    ) =>
      html`<div class="figure">
        <dt>${name}</dt>
        <dd data-testid=${id} title=${formatExact(amount, currency)}>
          ${formatAmount(amount, currency)}
        </dd>
      </div>`;
    return html`<dl class="figures">
      ${figure(gettext("Available balance"), available, "available")}${
        units(held) > 0n
          ? html`${figure(
              gettext("On hold for answers"),
              held,
              "held",
            )}${figure(gettext("Total"), posted, "posted")}`
          : nothing
      }
    </dl>`;
  }
}
customElements.define("money-balance", MoneyBalance);
