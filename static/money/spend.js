/** The user's spending, as a plot of thirty days and as bars by agent, both also as tables. */

import { formatAmount, units } from "../chat/money/amounts.js";
import { glyph } from "../chat/view.js";
import { MoneyPart, api, table } from "./part.js";
import { gettext, interpolate, locale, ngettext } from "../chat/words.js";
import { html, nothing, svg } from "../vendor/lit/lit.js";

/**
 * @typedef {{day: string, amount: string}} Day
 * @typedef {{agent: string, amount: string, charges: number}} AgentSum
 * @typedef {{days: Day[], agents: AgentSum[], currency: string, total: string}} Spend amounts are
 *   decimal strings
 */

const DAYS = 30;
const [WIDTH, FLOOR] = [600, 120];
const dayName = new Intl.DateTimeFormat(locale, {
  day: "numeric",
  month: "short",
  timeZone: "UTC",
});

/**
 * An amount as a fraction of the largest: the only place where an amount becomes a float, for
 * drawing.
 * @param {string} amount
 * @param {bigint} largest
 */
const share = (amount, largest) =>
  largest === 0n ? 0 : Number((units(amount) * 10_000n) / largest) / 10_000;
/** @param {{amount: string}[]} rows */
const largestOf = (rows) =>
  rows.reduce((most, { amount }) => (units(amount) > most ? units(amount) : most), 0n);
/** @param {string} day */
const named = (day) => dayName.format(new Date(`${day}T00:00:00Z`));

/** A bar for each day. @param {Day[]} days @param {string} currency */
function dayPlot(days, currency) {
  const largest = largestOf(days);
  const step = WIDTH / days.length;
  const bars = days.map(({ day, amount }, i) => {
    const height = Math.max(share(amount, largest) * FLOOR, units(amount) > 0n ? 2 : 0);
    return svg`<rect
      class="bar"
      x=${(i * step + step * 0.15).toFixed(1)}
      y=${(FLOOR - height).toFixed(1)}
      width=${(step * 0.7).toFixed(1)}
      height=${height.toFixed(1)}
      rx="2"
    ><title>${`${named(day)}: ${formatAmount(amount, currency)}`}</title></rect>`;
  });
  const total = days.reduce((sum, { amount }) => sum + units(amount), 0n);
  const label = interpolate(
    total
      ? gettext("Spent per day in the last %(n)s days. The same figures are in the table below.")
      : gettext(
          "Spent per day in the last %(n)s days: nothing. The same figures are in the table below.",
        ),
    { n: days.length },
  );
  const most = days.find(({ amount }) => largest && units(amount) === largest);
  const marks = [days[0], days[Math.floor(days.length / 2)], days[days.length - 1]];
  return html`<div class="plot-frame">
    <p class="plot-most">
      ${
        most
          ? interpolate(gettext("Most spent in a day: %(amount)s"), {
              amount: formatAmount(most.amount, currency),
            })
          : gettext("Nothing yet")
      }
    </p>
    <svg
      viewBox="0 0 ${WIDTH} ${FLOOR}"
      class="plot"
      role="img"
      aria-label=${label}
      preserveAspectRatio="none"
    >
      ${bars}
      <line class="axis" x1="0" y1=${FLOOR} x2=${WIDTH} y2=${FLOOR}></line>
    </svg>
    <div class="plot-marks" aria-hidden="true">
      ${marks.map(({ day }) => html`<span>${named(day)}</span>`)}
    </div>
  </div>`;
}

/**
 * One row for each agent: its name, a bar, the amount.
 * @param {AgentSum[]} agents
 * @param {string} currency
 */
function agentBars(agents, currency) {
  const largest = largestOf(agents);
  return html`<ul class="agent-bars" aria-label=${gettext("Spent per agent")}>
    ${agents.map(
      ({ agent, amount, charges }) =>
        html`<li>
          <span class="agent-name">${agent || gettext("A deleted agent")}</span>
          <svg viewBox="0 0 100 8" preserveAspectRatio="none" class="agent-bar" aria-hidden="true">
            <rect
              class="bar"
              width=${Math.max(share(amount, largest) * 100, 1).toFixed(1)}
              height="8"
            ></rect>
          </svg>
          <span class="amount"
            >${formatAmount(amount, currency)}<small>
              ${interpolate(ngettext("%(n)s charge", "%(n)s charges", charges), {
                n: charges,
              })}</small
            ></span
          >
        </li>`,
    )}
  </ul>`;
}

class MoneySpend extends MoneyPart {
  static properties = { _spend: { state: true } };

  constructor() {
    super();
    /** @type {Spend|null} null until loaded */
    this._spend = null;
  }

  get heading() {
    return gettext("Spent in the last 30 days");
  }

  async read() {
    this._spend = await api.get(`/api/payments/spend?days=${DAYS}`);
  }

  body() {
    return html`${this._spend ? this._plots(this._spend) : nothing}${this.problem()}`;
  }

  /** @param {Spend} spend */
  _plots({ days, agents, currency, total }) {
    const spent = days
      .filter(({ amount }) => units(amount) !== 0n)
      .map(
        ({ day, amount }) =>
          html`<tr>
            <td>${named(day)}</td>
            <td>${formatAmount(amount, currency)}</td>
          </tr>`,
      );
    return html`<p class="total" data-testid="spent">${formatAmount(total, currency)}</p>
      ${dayPlot(days, currency)}
      <details>
        <summary>${glyph("chevron")}${gettext("As a table")}</summary>
        ${
          spent.length
            ? table(gettext("Spent per day"), [gettext("Day (UTC)"), gettext("Amount")], spent)
            : html`<p class="quiet">${gettext("Nothing spent.")}</p>`
        }
      </details>
      ${
        agents.length
          ? agentBars(agents, currency)
          : html`<p class="quiet">${gettext("No spending on agents yet.")}</p>`
      }`;
  }
}
customElements.define("money-spend", MoneySpend);
