/** A payment that an answer waits for: the agent, how much, why, what is left, and the ways to decide. */

import { decimal, padded, shown, units } from "./amounts.js";
import { h, icon } from "./dom.js";
import { clockTime } from "./time.js";
import { wallet } from "./wallet.js";

const NEXT = {
  token_expired: "Pay from your balance instead.",
  token_invalid: "Pay from your balance instead.",
  rate_limited: "Raise it, or wait until it begins anew.",
  mandate_revoked: "Pay from your balance instead.",
};

/** Why an amount is asked for. */
function why({ reason, isTopUp, agent }) {
  if (reason === "tool_usage") return `${agent} is about to use a tool that has a price.`;
  if (isTopUp) return `The answer is longer than what was reserved for it. It pauses here and goes on when this is paid.`;
  return "At most this much is reserved for the answer; what it does not use comes back to you.";
}

/**
 * What an agent would have to be allowed so that it need not ask like this again: what it asks for,
 * and for an answer that is under way also what is reserved for it already.
 */
function enough({ amount, currency, isTopUp }, balance) {
  const held = isTopUp && balance?.currency === currency ? units(balance.held) : 0n;
  return padded(decimal(units(amount) + held));
}

/** Fires (bubbling) `pay` (`{payment}`), `pay-always` (`{payment, upTo}`), `pay-cancel` (`{payment}`). */
class PaymentCard extends HTMLElement {
  connectedCallback() {
    this._listener ||= () => this._showLeft();
    wallet.addEventListener("change", this._listener);
  }

  disconnectedCallback() {
    wallet.removeEventListener("change", this._listener);
  }

  /** @param {import("../uamp/payments.js").Payment} payment */
  show(payment) {
    if (!this._form) this._build(payment);
    this._payment = payment;
    const isBusy = payment.state === "sent";
    this.dataset.state = payment.state;
    this.setAttribute("aria-busy", String(isBusy));
    const hadFocus = this.contains(document.activeElement);
    for (const part of this._parts) part.disabled = isBusy;
    // A disabled button loses the focus: it must not fall back to the top of the page.
    if (isBusy && hadFocus) this.focus({ preventScroll: true });
    if (isBusy || payment.error !== this._shownError) {
      this._shownError = payment.error;
      this._refusedAt = performance.now();
      this._showError(payment.error);
    }
    this._showLeft();
  }

  _build(payment) {
    const { agent, amount, currency, expiresAt, key } = payment;
    const titleId = `payment-${key.replaceAll(/\W/g, "-")}`;
    this.className = "approval payment";
    this.tabIndex = -1;
    this.dataset.testid = "payment";
    this.setAttribute("role", "group");
    this.setAttribute("aria-labelledby", titleId);
    const fire = (type, detail = {}) =>
      this.dispatchEvent(new CustomEvent(type, { bubbles: true, detail: { payment: this._payment, ...detail } }));
    this._topUp = h("a", { class: "button button-primary", href: "/money#top-up", "data-testid": "top-up-link", hidden: true }, "Top up");
    const once = h("button", { type: "button", class: "button button-primary", "data-testid": "pay", onclick: () => fire("pay") }, `Pay ${shown(amount, currency)}`);
    const cancel = h("button", { type: "button", class: "button", "aria-label": "Cancel the answer", "data-testid": "pay-cancel", onclick: () => fire("pay-cancel") }, "Cancel");
    const upTo = h("input", {
      class: "field", type: "text", inputmode: "decimal", autocomplete: "off", value: enough(payment, wallet.balance), maxlength: 20,
      "aria-label": `Most that ${agent} may take for an answer, in ${currency}`, "data-testid": "pay-up-to",
    });
    const always = h("button", { type: "submit", class: "button", "data-testid": "pay-always" }, "Always allow");
    this._form = h(
      "form",
      {
        class: "payment-always",
        onsubmit: (event) => {
          event.preventDefault();
          fire("pay-always", { upTo: upTo.value.trim() });
        },
      },
      h("span", { class: "payment-up-to", "aria-hidden": "true" }, "Up to"), upTo, h("span", { "aria-hidden": "true" }, `${currency} an answer`), always,
    );
    this._parts = [once, cancel, upTo, always];
    this._once = once;
    this._upTo = upTo;
    upTo.addEventListener("input", () => { this._isWritten = true; });
    this._left = h("p", { class: "approval-note" });
    this._error = h("p", { class: "payment-error", role: "alert", hidden: true, "data-testid": "payment-error" });
    const noBalance = h("p", { class: "approval-note" }, "Sign in, or pay with a payment token over UAMP.");
    const until = expiresAt ? ` The answer waits until ${clockTime(1000 * expiresAt)}.` : "";
    this.replaceChildren(
      h("p", { class: "approval-title", id: titleId }, icon("wallet"), h("span", {}, h("strong", {}, agent), " asks for ", h("strong", {}, shown(amount, currency)))),
      h("p", { class: "approval-note" }, why(payment) + until),
      this._left, this._error,
      ...(payment.byBalance ? [h("div", { class: "payment-actions" }, this._topUp, once, cancel), this._form] : [noBalance, cancel]),
    );
  }

  /** Say why this cannot be done now; null takes it back. */
  say(text) {
    this._showError(text ? { code: "", message: text } : null);
  }

  _showError(error) {
    this._error.hidden = !error;
    if (!error) return;
    const link = error.code === "rate_limited" && h("a", { href: "/money#limits", "data-testid": "limits-link" }, "Your limits");
    this._error.replaceChildren(...[icon("alert"), h("span", {}, [this._reason(error), NEXT[error.code]].filter(Boolean).join(" "), " ", link)]);
  }

  /** Why it was refused: in the page's own words where it has them, else in the server's. */
  _reason({ code, message, required, current }) {
    if (code !== "insufficient_balance" || !required || !current) return message;
    const { currency } = this._payment;
    return `${shown(required, currency)} are needed, and you have ${shown(current, currency)}.`;
  }

  _showLeft() {
    const { balance } = wallet;
    if (!this._left || !this._payment) return;
    if (!balance || balance.currency !== this._payment.currency) {
      this._left.textContent = "";
      this._left.hidden = true;
      return;
    }
    const after = units(balance.available) - units(this._payment.amount);
    const has = shown(balance.available, balance.currency);
    const isShort = after < 0n;
    // The next possible step is the primary button: a person cannot pay more than they have.
    this._topUp.hidden = !isShort;
    this._once.classList.toggle("button-primary", !isShort);
    if (!this._isWritten) this._upTo.value = enough(this._payment, balance);
    // It was topped up since, maybe in another tab.
    if (!isShort && this._payment.error?.code === "insufficient_balance" && wallet.asOf > this._refusedAt) this._showError(null);
    if (this._payment.state === "sent") this._left.textContent = "Paying…";
    else if (isShort) this._left.textContent = this._error.hidden ? `You have ${has}: ${shown(decimal(-after), balance.currency)} too little.` : "";
    else this._left.textContent = `You have ${has}; ${shown(decimal(after), balance.currency)} are left after it.`;
    this._left.hidden = !this._left.textContent;
  }
}
customElements.define("payment-card", PaymentCard);
