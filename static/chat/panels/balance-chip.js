/** The balance in the head of a page: a link to where it is explained and topped up. */

import { brief, shown } from "../amounts.js";
import { announce, h, icon } from "../dom.js";
import { wallet } from "../wallet.js";

let isWarned = false;

class BalanceChip extends HTMLElement {
  connectedCallback() {
    this._listener ||= () => this._show();
    wallet.addEventListener("change", this._listener);
    this._link ||= h("a", { href: "/money", class: "balance", "data-testid": "balance" });
    this.replaceChildren(this._link);
    this._show();
  }

  disconnectedCallback() {
    wallet.removeEventListener("change", this._listener);
  }

  _show() {
    const { balance, isLow } = wallet;
    this.hidden = !balance;
    if (!balance) return;
    const amount = shown(balance.available, balance.currency);
    this._link.classList.toggle("is-low", isLow);
    this._link.setAttribute("aria-label", isLow ? `Balance ${amount}, low. Top up` : `Balance ${amount}`);
    this._link.title = isLow ? "Your balance is low: top it up" : "Your balance and what you spent";
    this._link.replaceChildren(icon(isLow ? "alert" : "wallet"), h("span", {}, brief(balance.available, balance.currency)));
    if (isLow && !isWarned) announce(`Your balance is low: ${amount} are left.`);
    isWarned = isLow;
  }
}
customElements.define("balance-chip", BalanceChip);
