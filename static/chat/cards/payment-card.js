/**
 * A payment that an answer waits for: the agent, the amount, the reason, the remaining balance, and
 * the options.
 */

import {
  amountFromInput,
  atMost,
  decimal,
  formatAmount,
  formatDue,
  padded,
  units,
} from "../money/amounts.js";
import { beginningOf } from "../markdown/plain.js";
import { clockTime } from "../text/time.js";
import { View, glyph } from "../view.js";
import { wallet } from "../money/wallet.js";
import { html, live } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

/** @typedef {import("../../uamp/payments.js").Payment} Payment */
/** @typedef {{code: string, message: string, required?: string, current?: string}} Refusal */

const QUESTION_CHARS = 120;

/** The next step after a refusal, by its code. @type {Record<string, string>} */
const NEXT = {
  token_expired: gettext("Pay from your balance instead."),
  token_invalid: gettext("Pay from your balance instead."),
  rate_limited: gettext("Raise the limit, or wait until it resets."),
  mandate_revoked: gettext("Pay from your balance instead."),
};

/** The reason for a payment. @param {Payment} payment */
function why({ reason, isTopUp, agent }) {
  if (reason === "tool_usage")
    return interpolate(gettext("%(agent)s is about to use a tool that has a price."), { agent });
  if (isTopUp)
    return gettext(
      "The answer needs more than the amount on hold. It is paused here and continues when you pay.",
    );
  return gettext("We hold up to this amount; unused money is returned.");
}

/**
 * The standing approval that would cover such a request: its amount, and for a running answer also
 * what is already reserved for it.
 * @param {Payment} payment @param {{held: string, currency: string}|null} balance
 */
function enough({ amount, currency, isTopUp }, balance) {
  const held = isTopUp && balance?.currency === currency ? units(balance.held) : 0n;
  return padded(atMost(decimal(units(amount) + held)));
}

/**
 * Fires (bubbling) `pay` (`{payment}`), `pay-always` (`{payment, upTo}`), `pay-cancel`
 * (`{payment}`).
 */
export class PaymentCard extends View {
  static properties = {
    payment: { attribute: false },
    question: { attribute: false },
    _error: { state: true },
    _upTo: { state: true },
  };

  constructor() {
    super();
    /** Set before it is drawn. @type {Payment} */
    this.payment = /** @type {Payment} */ (/** @type {unknown} */ (undefined));
    /** The text of the message whose answer it pays; "" where the page does not have it. */
    this.question = "";
    /** @type {Refusal|null} */
    this._error = null;
    /** In milliseconds of `performance.now()`. */
    this._refusedAt = 0;
    /** @type {string|null} the user's input; null before they typed */
    this._upTo = null;
    this._onWallet = () => this._walletChanged();
  }

  connectedCallback() {
    super.connectedCallback();
    wallet.addEventListener("change", this._onWallet);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    wallet.removeEventListener("change", this._onWallet);
  }

  /** Show why this cannot be done now. @param {string} text */
  say(text) {
    this._error = { code: "", message: text };
  }

  /** @param {import("../../vendor/lit/lit.js").PropertyValues<PaymentCard>} changed */
  willUpdate(changed) {
    const { payment } = this;
    const isBusy = payment.state === "sent";
    if (changed.has("payment") && (isBusy || payment.error !== changed.get("payment")?.error)) {
      this._error = payment.error;
      this._refusedAt = performance.now();
    }
    this.className = "approval payment";
    this.tabIndex = -1;
    Object.assign(this.dataset, { testid: "payment", state: payment.state });
    this.setAttribute("role", "group");
    this.setAttribute("aria-labelledby", this._titleId);
    this.setAttribute("aria-busy", String(isBusy));
    // A disabled button loses the focus, which must not fall back to the top of the page.
    if (isBusy && this.contains(document.activeElement)) this.focus({ preventScroll: true });
  }

  get _titleId() {
    return `payment-${this.payment.key.replaceAll(/\W/g, "-")}`;
  }

  render() {
    const { payment } = this;
    const amount = formatDue(payment.amount, payment.currency);
    const until = payment.expiresAt
      ? ` ${interpolate(gettext("Offer expires at %(time)s."), {
          time: clockTime(1000 * payment.expiresAt),
        })}`
      : "";
    const left = this._left();
    return html` <p class="approval-title" id=${this._titleId}>
        ${glyph("wallet")}<span
          ><strong>${payment.agent}</strong> ${gettext("asks for")} <strong>${amount}</strong></span
        >
      </p>
      ${
        this.question
          ? html`<p class="payment-question" dir="auto" data-testid="payment-question">
              ${beginningOf(this.question, QUESTION_CHARS)}
            </p>`
          : ""
      }
      <p class="approval-note">${why(payment)}${until}</p>
      <p class="approval-note" ?hidden=${!left}>${left}</p>
      <p class="payment-error" role="alert" ?hidden=${!this._error} data-testid="payment-error">
        ${this._error ? this._errorTemplate(this._error) : ""}
      </p>
      ${
        payment.byBalance
          ? this._ways(amount)
          : html`<p class="approval-note">
                ${gettext("Sign in, or pay with a payment token over UAMP.")}
              </p>
              ${this._cancel()}`
      }`;
  }

  /** @param {string} amount with its currency */
  _ways(amount) {
    const { agent, currency, state } = this.payment;
    const isBusy = state === "sent";
    const after = this._after;
    const isShort = after !== null && after < 0n;
    // Users cannot pay more than they have: the next possible step is the primary button.
    return html` <div class="payment-actions">
        <a
          class="button button-primary"
          href="/money#top-up"
          data-testid="top-up-link"
          ?hidden=${!isShort}
          >${gettext("Top up")}</a
        >
        <button
          type="button"
          class="button ${isShort ? "" : "button-primary"}"
          data-testid="pay"
          ?disabled=${isBusy || isShort}
          @click=${() => this._fire("pay")}
        >
          ${interpolate(gettext("Pay %(amount)s"), { amount })}
        </button>
        ${this._cancel()}
      </div>
      <form
        class="payment-always"
        @submit=${(/** @type {SubmitEvent} */ event) => this._always(event)}
      >
        <span class="payment-up-to" aria-hidden="true">${gettext("Up to")}</span>
        <input
          class="field"
          type="text"
          inputmode="decimal"
          autocomplete="off"
          maxlength="20"
          data-testid="pay-up-to"
          ?disabled=${isBusy}
          aria-label=${interpolate(
            gettext("Maximum that %(agent)s may charge per answer, in %(currency)s"),
            { agent, currency },
          )}
          .value=${live(this._upTo ?? enough(this.payment, wallet.balance))}
          @input=${(/** @type {Event} */ event) => {
            this._upTo = /** @type {HTMLInputElement} */ (event.target).value;
          }}
        />
        <span aria-hidden="true"
          >${interpolate(gettext("%(currency)s per answer"), { currency })}</span
        >
        <button type="submit" class="button" data-testid="pay-always" ?disabled=${isBusy}>
          ${gettext("Always allow")}
        </button>
      </form>
      <p class="approval-note">
        ${gettext("Covers only the answers you ask for. If someone else set this agent to reply automatically, it still asks you each time.")}
      </p>`;
  }

  _cancel() {
    return html`<button
      type="button"
      class="button"
      aria-label=${gettext("Cancel the answer")}
      data-testid="pay-cancel"
      ?disabled=${this.payment.state === "sent"}
      @click=${() => this._fire("pay-cancel")}
    >
      ${gettext("Cancel")}
    </button>`;
  }

  /** @param {Refusal} error */
  _errorTemplate(error) {
    const link =
      error.code === "rate_limited"
        ? html`<a href="/money#limits" data-testid="limits-link">${gettext("Your limits")}</a>`
        : "";
    return html`${glyph("alert")}<span
        >${[this._reason(error), NEXT[error.code]].filter(Boolean).join(" ")} ${link}</span
      >`;
  }

  /**
   * The reason for a refusal: the page's own text for its code, else the server's.
   * @param {Refusal} error
   */
  _reason({ code, message, required, current }) {
    if (code !== "insufficient_balance" || !required || !current) return message;
    const { currency } = this.payment;
    return interpolate(gettext("This needs %(needed)s, and you have %(there)s."), {
      needed: formatDue(required, currency),
      there: formatAmount(current, currency),
    });
  }

  /** The balance after the payment, in smallest units; null when unknown. */
  get _after() {
    const { balance } = wallet;
    if (!balance || balance.currency !== this.payment.currency) return null;
    return units(balance.available) - units(this.payment.amount);
  }

  _left() {
    const after = this._after;
    if (after === null || !wallet.balance) return "";
    const { available, currency } = wallet.balance;
    if (this.payment.state === "sent") return gettext("Paying…");
    if (after >= 0n)
      return interpolate(gettext("Balance %(there)s → %(left)s after this answer"), {
        there: formatAmount(available, currency),
        left: formatAmount(decimal(after), currency),
      });
    return this._error
      ? ""
      : interpolate(gettext("Balance too low: you have %(there)s, %(missing)s short."), {
          there: formatAmount(available, currency),
          missing: formatDue(decimal(-after), currency),
        });
  }

  _walletChanged() {
    // The balance may have been topped up since, perhaps in another tab.
    const after = this._after;
    if (
      after !== null &&
      after >= 0n &&
      this._error?.code === "insufficient_balance" &&
      wallet.asOf > this._refusedAt
    )
      this._error = null;
    this.requestUpdate();
  }

  /** @param {SubmitEvent} event */
  _always(event) {
    event.preventDefault();
    this._fire("pay-always", {
      upTo: amountFromInput(/** @type {HTMLInputElement} */ (this.querySelector("input")).value),
    });
  }

  /** @param {string} type @param {{upTo?: string}} [detail] */
  _fire(type, detail = {}) {
    this.dispatchEvent(
      new CustomEvent(type, { bubbles: true, detail: { payment: this.payment, ...detail } }),
    );
  }
}
customElements.define("payment-card", PaymentCard);
