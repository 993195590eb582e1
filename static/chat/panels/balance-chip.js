/** The balance in a page's header, which links to the page that explains it and tops it up. */

import { formatAmount } from "../money/amounts.js";
import { announce } from "../dom.js";
import { View, glyph } from "../view.js";
import { wallet } from "../money/wallet.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

let isWarned = false;

class BalanceChip extends View {
  constructor() {
    super();
    this._onChange = () => this.requestUpdate();
  }

  connectedCallback() {
    super.connectedCallback();
    wallet.addEventListener("change", this._onChange);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    wallet.removeEventListener("change", this._onChange);
  }

  render() {
    const { balance, isLow } = wallet;
    if (!balance) return nothing;
    const amount = formatAmount(balance.available, balance.currency);
    return html`<a
      href="/money"
      class="balance ${isLow ? "is-low" : ""}"
      data-testid="balance"
      aria-label=${interpolate(
        isLow ? gettext("Balance %(amount)s, low. Top up") : gettext("Balance %(amount)s"),
        { amount },
      )}
      title=${
        isLow ? gettext("Your balance is low: top it up") : gettext("Your balance and spending")
      }
      >${glyph(isLow ? "alert" : "wallet")}<span>${amount}</span></a
    >`;
  }

  updated() {
    const { balance, isLow } = wallet;
    if (balance && isLow && !isWarned)
      announce(
        interpolate(gettext("Your balance is low: %(amount)s left."), {
          amount: formatAmount(balance.available, balance.currency),
        }),
      );
    isWarned = Boolean(balance && isLow);
  }
}
customElements.define("balance-chip", BalanceChip);
