/** The user's spending limits per day, week and month, and the standing approvals of agents. */

import { amountFromInput, formatAmount, formatExact, padded } from "../chat/money/amounts.js";
import { announce } from "../chat/dom.js";
import { MoneyPart, api, labelled, named, table, written } from "./part.js";
import { gettext, interpolate, locale } from "../chat/words.js";
import { html, nothing, repeat } from "../vendor/lit/lit.js";

/**
 * @typedef {object} Limit amounts are decimal strings
 * @property {string} period
 * @property {string} amount
 * @property {string} left
 * @property {string} currency
 * @property {string} resets_at ISO 8601
 * @property {string} [agent]
 * @property {string} [agent_id]
 * @property {string} [token]
 * @property {string} [token_name]
 *
 * @typedef {{agent: string, agent_id: string, up_to: string, currency: string}} Approval
 */

/** @type {Record<string, string>} */
const PERIODS = { day: gettext("One day"), week: gettext("One week"), month: gettext("One month") };
const when = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });

class MoneyLimits extends MoneyPart {
  static properties = { _limits: { state: true } };

  constructor() {
    super();
    /** @type {Limit[]|null} null until loaded */
    this._limits = null;
  }

  get heading() {
    return gettext("Limits");
  }

  async read() {
    const { limits } = await api.get("/api/payments/limits");
    this._limits = limits;
  }

  /** The limits of single agents and tokens. */
  get _others() {
    return (this._limits ?? []).filter(({ agent_id: agentId, token }) => agentId || token);
  }

  body() {
    return html`${this._limits ? this._form(this._limits) : nothing}${this.problem()}`;
  }

  /** @param {Limit[]} limits */
  _form(limits) {
    const others = this._others;
    const rows = others.map(
      (one) =>
        html`<tr>
          <td>
            ${
              one.token
                ? html`${gettext("Token")}${named(one.token_name ?? "", one.token)}`
                : named(one.agent || one.agent_id || "")
            }
          </td>
          <td>${PERIODS[one.period]}</td>
          <td>${formatExact(one.amount, one.currency)}</td>
          <td>${formatAmount(one.left, one.currency)}</td>
        </tr>`,
    );
    return html`<p class="quiet">
        ${gettext(
          "You never spend more than this. Leave a field empty for no limit. Days end at midnight UTC.",
        )}
      </p>
      <form class="row-form" @submit=${(/** @type {SubmitEvent} */ event) => this._save(event)}>
        ${Object.keys(PERIODS).map((period) =>
          this._field(
            period,
            limits.find((one) => one.period === period && !one.agent_id && !one.token),
          ),
        )} <button type="submit" class="button button-primary">${gettext("Save limits")}</button>
      </form>
      ${
        others.length
          ? table(
              gettext("Limits for individual agents and tokens"),
              [gettext("For"), gettext("Period"), gettext("Limit"), gettext("Left")],
              rows,
            )
          : nothing
      }`;
  }

  /** @param {string} period @param {Limit|undefined} limit */
  _field(period, limit) {
    const field = html`<input
      class="field"
      name=${period}
      inputmode="decimal"
      autocomplete="off"
      maxlength="20"
      placeholder=${gettext("No limit")}
      value=${limit ? padded(limit.amount) : ""}
      data-testid="limit-${period}"
    />`;
    return html`<div class="limit">
      ${labelled(`${PERIODS[period]} (USD)`, field)}${
        limit
          ? html`<small
              >${interpolate(gettext("%(amount)s left until %(time)s"), {
                amount: formatAmount(limit.left, limit.currency),
                time: when.format(new Date(limit.resets_at)),
              })}</small
            >`
          : nothing
      }
    </div>`;
  }

  /** @param {SubmitEvent} event */
  async _save(event) {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const fields = new FormData(form);
    const limits = Object.keys(PERIODS)
      .filter((period) => written(fields, period))
      .map((period) => ({
        period,
        amount: amountFromInput(written(fields, period)),
        currency: "USD",
      }));
    const others = this._others
      .filter(({ agent, token }) => agent || token)
      .map(({ period, agent, token, amount, currency }) => ({
        period,
        agent,
        token,
        amount,
        currency,
      }));
    if (
      await this.attempt(() =>
        api.send("PUT", "/api/payments/limits", { limits: [...limits, ...others] }),
      )
    ) {
      announce(gettext("Limits saved."));
      await this.load();
      form.reset();
    }
  }
}
customElements.define("money-limits", MoneyLimits);

class MoneyApprovals extends MoneyPart {
  static properties = { _approvals: { state: true } };

  constructor() {
    super();
    /** @type {Approval[]|null} null until loaded */
    this._approvals = null;
  }

  get heading() {
    return gettext("Pre-approved agents");
  }

  async read() {
    const { approvals } = await api.get("/api/payments/approvals");
    this._approvals = approvals;
  }

  body() {
    return html`${this._approvals ? this._list(this._approvals) : nothing}${this.problem()}`;
  }

  /** @param {Approval[]} approvals */
  _list(approvals) {
    if (!approvals.length)
      return html`<p class="quiet">
        ${gettext(
          "Paid agents ask you before each answer. “Always allow” on a payment card changes that.",
        )}
      </p>`;
    const rows = repeat(
      approvals,
      ({ agent_id: id }) => id,
      ({ agent, agent_id: id, up_to: upTo, currency }) =>
        html`<tr>
          <td>${agent || id}</td>
          <td>
            ${interpolate(gettext("%(price)s per answer"), { price: formatExact(upTo, currency) })}
          </td>
          <td>
            <button
              type="button"
              class="button"
              aria-label=${interpolate(gettext("Remove approval for %(name)s"), {
                name: agent || id,
              })}
              data-testid="withdraw"
              @click=${() => this._withdraw(agent || id, id)}
            >
              ${gettext("Remove approval")}
            </button>
          </td>
        </tr>`,
    );
    return table(gettext("Pre-approved agents"), [gettext("Agent"), gettext("Limit"), ""], rows);
  }

  /** @param {string} name @param {string} id */
  async _withdraw(name, id) {
    if (
      await this.attempt(() =>
        api.send("DELETE", `/api/payments/approvals/${encodeURIComponent(id)}`),
      )
    ) {
      announce(interpolate(gettext("%(name)s will ask you before each charge."), { name }));
      await this.load();
    }
  }
}
customElements.define("money-approvals", MoneyApprovals);
