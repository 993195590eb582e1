/** The ways to top up, one for each provider, and the states of past requests. */

import { amountFromInput, formatAmount, padded } from "../chat/money/amounts.js";
import { announce } from "../chat/dom.js";
import { newId } from "../uamp/ids.js";
import { MoneyPart, api, labelled, table, written } from "./part.js";
import { gettext, interpolate, locale } from "../chat/words.js";
import { html, nothing } from "../vendor/lit/lit.js";

/**
 * @typedef {{name: string, label: string}} Provider
 * @typedef {{created_at: string, amount: string, currency: string, state: string, reason: string,
 *   url: string}} TopUp
 */

const when = new Intl.DateTimeFormat(locale, { dateStyle: "medium" });
/** @type {Record<string, string>} */
const LABELS = { manual: gettext("Request top-up"), stripe: gettext("Pay by card") };
/** @type {Record<string, string>} */
const STATES = {
  open: gettext("Requested"),
  credited: gettext("Credited"),
  refused: gettext("Declined"),
};

class MoneyTopUp extends MoneyPart {
  static properties = { _providers: { state: true }, _topUps: { state: true } };

  constructor() {
    super();
    /** @type {Provider[]|null} null until loaded */
    this._providers = null;
    /** @type {TopUp[]} */
    this._topUps = [];
    /** @type {{of: string, key: string}|null} the unconfirmed request */
    this._asking = null;
  }

  get heading() {
    return gettext("Top up");
  }

  async read() {
    const [{ providers }, { items }] = await Promise.all([
      api.get("/api/payments/topups/providers"),
      api.get("/api/payments/topups"),
    ]);
    this._providers = providers;
    this._topUps = items;
  }

  body() {
    const rows = this._topUps.map(
      ({ created_at: at, amount, currency, state, reason, url }) =>
        html`<tr>
          <td>${when.format(new Date(at))}</td>
          <td>${formatAmount(amount, currency)}</td>
          <td>
            <span
              >${STATES[state] || state}${reason ? html`<small>${reason}</small>` : nothing}${
                state === "open" && url ? html` <a href=${url}>${gettext("Pay")}</a>` : nothing
              }</span
            >
          </td>
        </tr>`,
    );
    return html`<div>${this._providers ? this._forms(this._providers) : nothing}</div>
      ${this.problem()}
      <div data-testid="topups">
        ${
          rows.length
            ? table(
                gettext("Top-ups"),
                [gettext("Requested on"), gettext("Amount"), gettext("Status")],
                rows,
              )
            : nothing
        }
      </div>`;
  }

  /** @param {Provider[]} providers */
  _forms(providers) {
    if (!providers.length)
      return html`<p class="quiet">
        ${gettext("This server doesn't accept payments yet. Ask its operator.")}
      </p>`;
    return providers.map(
      ({ name, label }) =>
        html`<form
          class="row-form"
          data-provider=${name}
          @submit=${(/** @type {SubmitEvent} */ event) => this._ask(event, name)}
        >
          ${labelled(
            gettext("Amount (USD)"),
            html`<input
              class="field"
              name="amount"
              inputmode="decimal"
              autocomplete="off"
              maxlength="20"
              required
              placeholder=${padded("10")}
              data-testid="topup-amount"
            />`,
          )}
          <button
            type="submit"
            class="button button-primary"
            data-testid="topup-ask"
            ?disabled=${this._isBusy}
          >
            ${LABELS[name] ?? label}
          </button>
        </form>`,
    );
  }

  /** @param {SubmitEvent} event @param {string} provider */
  async _ask(event, provider) {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const amount = amountFromInput(written(new FormData(form), "amount"));
    const of = `${provider} ${amount}`;
    const asking = this._asking?.of === of ? this._asking : { of, key: newId() };
    this._asking = asking;
    await this.once(async () => {
      const made = await api.post(
        "/api/payments/topups",
        { provider, amount, currency: "USD" },
        { "Idempotency-Key": asking.key },
      );
      this._asking = null;
      if (made.url && made.state === "open") {
        location.assign(made.url);
        return;
      }
      form.reset();
      announce(interpolate(gettext("Amount due: %(amount)s"), { amount: formatAmount(amount) }));
      await this.read();
    });
  }
}
customElements.define("money-topup", MoneyTopUp);
