/** Payment tokens: budgets for programs. The secret is shown only once, right after creation. */

import { amountFromInput, formatAmount } from "../chat/money/amounts.js";
import { copyText } from "../chat/controls/clipboard.js";
import { announce } from "../chat/dom.js";
import { glyph } from "../chat/view.js";
import { newId } from "../uamp/ids.js";
import { MoneyPart, api, labelled, named, table, written } from "./part.js";
import { gettext, interpolate, locale } from "../chat/words.js";
import { html, nothing, repeat } from "../vendor/lit/lit.js";

/**
 * @typedef {{id: string, name: string, balance: string, currency: string, status: string,
 *   expiresAt?: string, parentId?: string}} Token
 */

const DAY_SECONDS = 86_400;
const when = new Intl.DateTimeFormat(locale, { dateStyle: "medium" });
const LIVES = { 1: gettext("One day"), 30: gettext("30 days"), 365: gettext("One year") };
const USUAL = "30";

class MoneyTokens extends MoneyPart {
  static properties = { _tokens: { state: true }, _secret: { state: true } };

  constructor() {
    super();
    /** @type {Token[]} */
    this._tokens = [];
    /** The new token; "" for none. */
    this._secret = "";
    /** @type {{asked: string, key: string}|null} the unconfirmed request */
    this._making = null;
  }

  get heading() {
    return gettext("Payment tokens");
  }

  async read() {
    const { items } = await api.get("/api/payments/tokens");
    this._tokens = items;
  }

  body() {
    const field = (
      /** @type {string} */ name,
      /** @type {string} */ hint,
      /** @type {string} */ id,
    ) =>
      html`<input
        class="field"
        name=${name}
        inputmode="decimal"
        autocomplete="off"
        maxlength="20"
        placeholder=${hint || nothing}
        ?required=${!hint}
        data-testid=${id}
      />`;
    return html`<p class="quiet">
        ${gettext(
          "Programs pay with a token until it is used up. The amount leaves your balance now; whatever is left returns when the token ends.",
        )}
      </p>
      <form class="row-form" @submit=${(/** @type {SubmitEvent} */ event) => this._make(event)}>
        ${labelled(gettext("Amount (USD)"), field("amount", "", "token-amount"))}
        ${labelled(
          gettext("Name"),
          html`<input
            class="field"
            name="name"
            autocomplete="off"
            maxlength="100"
            placeholder=${gettext("Purpose")}
          />`,
        )}
        ${labelled(gettext("Daily limit (USD)"), field("day", gettext("No limit"), "token-day"))}
        ${labelled(
          gettext("Valid for"),
          html`<select class="field" name="days">
            ${Object.entries(LIVES).map(
              ([days, text]) =>
                html`<option value=${days} ?selected=${days === USUAL}>${text}</option>`,
            )}
          </select>`,
        )}
        <button
          type="submit"
          class="button button-primary"
          data-testid="token-make"
          ?disabled=${this._isBusy}
        >
          ${gettext("Create a token")}
        </button>
      </form>
      ${this.problem()}
      <div class="secret" role="status" ?hidden=${!this._secret}>
        ${this._secret ? this._newToken(this._secret) : nothing}
      </div>
      <div>
        ${
          this._tokens.length
            ? table(
                gettext("Payment tokens"),
                [gettext("Token"), gettext("Left"), gettext("Status"), ""],
                repeat(
                  this._tokens,
                  ({ id }) => id,
                  (token) => this._row(token),
                ),
              )
            : nothing
        }
      </div>`;
  }

  /** @param {Token} token */
  _row(token) {
    const { id, name, balance, currency, status, expiresAt, parentId } = token;
    const isActive = status === "active";
    return html`<tr>
      <td>
        ${named(name, id)}${parentId ? html`<small>${gettext("passed on")}</small>` : nothing}
      </td>
      <td>${formatAmount(balance, currency)}</td>
      <td>
        ${
          isActive && expiresAt
            ? interpolate(gettext("until %(time)s"), { time: when.format(new Date(expiresAt)) })
            : status
        }
      </td>
      <td>
        ${
          isActive
            ? html`<button
                type="button"
                class="button"
                data-testid="token-revoke"
                aria-label=${interpolate(gettext("End %(name)s"), { name: name || id })}
                @click=${() => this._end(token)}
              >
                ${gettext("End")}
              </button>`
            : nothing
        }
      </td>
    </tr>`;
  }

  /** @param {string} secret */
  _newToken(secret) {
    return html`<p>${gettext("Copy it now. You won't be able to see it again.")}</p>
      <div class="secret-row">
        <input
          class="field"
          readonly
          value=${secret}
          aria-label=${gettext("The new token")}
          data-testid="token-secret"
        />
        <button
          type="button"
          class="icon-button"
          aria-label=${gettext("Copy the token")}
          title=${gettext("Copy the token")}
          @click=${() => this._copy(secret)}
        >
          ${glyph("copy")}
        </button>
        <button
          type="button"
          class="button"
          @click=${() => {
            this._secret = "";
          }}
        >
          ${gettext("Done")}
        </button>
      </div>`;
  }

  /** @returns {HTMLInputElement|null} */
  get _secretField() {
    return this.querySelector(".secret input");
  }

  /** @param {string} secret */
  async _copy(secret) {
    this._secretField?.select();
    if (await copyText(secret)) announce(gettext("Copied."));
  }

  /** @param {SubmitEvent} event */
  async _make(event) {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const fields = new FormData(form);
    const day = amountFromInput(written(fields, "day"));
    const body = {
      amount: amountFromInput(written(fields, "amount")),
      currency: "USD",
      name: written(fields, "name"),
      expiresIn: Number(fields.get("days")) * DAY_SECONDS,
      ...(day ? { limits: [{ period: "day", amount: day }] } : {}),
    };
    // A retry makes the same token, whatever became of the first answer.
    const asked = JSON.stringify(body);
    const making = this._making?.asked === asked ? this._making : { asked, key: newId() };
    this._making = making;
    const isMade = await this.once(async () => {
      /** @type {{token: string}} */
      const token = await api.post("/api/payments/tokens", body, { "Idempotency-Key": making.key });
      this._making = null;
      form.reset();
      this._secret = token.token;
    });
    if (!isMade) return;
    this._secretField?.focus();
    this._secretField?.select();
    this.changed();
  }

  /** @param {Token} token */
  async _end(token) {
    const isEnded = await this.attempt(async () => {
      const { returned } = await api.send(
        "DELETE",
        `/api/payments/tokens/${encodeURIComponent(token.id)}`,
      );
      this._secret = "";
      announce(
        interpolate(gettext("Token closed; %(amount)s returned to your balance."), {
          amount: formatAmount(returned, token.currency),
        }),
      );
    });
    if (isEnded) this.changed();
  }
}
customElements.define("money-tokens", MoneyTokens);
