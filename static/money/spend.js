/** What one spent, as a plot of thirty days and as bars by agent; both are tables too. */

import { shown, units } from "../chat/amounts.js";
import { h, icon } from "../chat/dom.js";
import { MoneyPart, api, table } from "./part.js";
import { gettext, interpolate, locale, ngettext } from "../chat/words.js";

const DAYS = 30;
const [WIDTH, FLOOR] = [600, 120];
const SVG = "http://www.w3.org/2000/svg";
const dayName = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", timeZone: "UTC" });

function s(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** A share of the largest as a number: the one place where an amount becomes one, to be drawn. */
const share = (amount, largest) => (largest === 0n ? 0 : Number((units(amount) * 10_000n) / largest) / 10_000);
const largestOf = (rows) => rows.reduce((most, { amount }) => (units(amount) > most ? units(amount) : most), 0n);
const named = (day) => dayName.format(new Date(`${day}T00:00:00Z`));

/** Bars of the days, from a common floor. @param {{day: string, amount: string}[]} days */
function dayPlot(days, currency) {
  const largest = largestOf(days);
  const step = WIDTH / days.length;
  const bars = days.map(({ day, amount }, i) => {
    const height = Math.max(share(amount, largest) * FLOOR, units(amount) > 0n ? 2 : 0);
    const bar = s("rect", { class: "bar", x: (i * step + step * 0.15).toFixed(1), y: (FLOOR - height).toFixed(1), width: (step * 0.7).toFixed(1), height: height.toFixed(1), rx: 2 });
    bar.append(s("title", {}, `${named(day)}: ${shown(amount, currency)}`));
    return bar;
  });
  const total = days.reduce((sum, { amount }) => sum + units(amount), 0n);
  const label = interpolate(
      total
        ? gettext("Spent per day in the last %(n)s days. The same figures are in the table below.")
        : gettext("Spent per day in the last %(n)s days: nothing. The same figures are in the table below."),
      { n: days.length },
    );
  const most = largest && days.find(({ amount }) => units(amount) === largest);
  const marks = [days[0], days[Math.floor(days.length / 2)], days.at(-1)];
  return h(
    "div", { class: "plot-frame" },
    h("p", { class: "plot-most" }, most ? interpolate(gettext("Most in a day: %(amount)s"), { amount: shown(most.amount, currency) }) : gettext("Nothing yet")),
    s(
      "svg", { viewBox: `0 0 ${WIDTH} ${FLOOR}`, class: "plot", role: "img", "aria-label": label, preserveAspectRatio: "none" },
      ...bars, s("line", { class: "axis", x1: 0, y1: FLOOR, x2: WIDTH, y2: FLOOR }),
    ),
    h("div", { class: "plot-marks", "aria-hidden": "true" }, marks.map(({ day }) => h("span", {}, named(day)))),
  );
}

/** One line for each agent: its name, a bar, the amount. */
function agentBars(agents, currency) {
  const largest = largestOf(agents);
  return h(
    "ul", { class: "agent-bars", "aria-label": gettext("Spent per agent") },
    agents.map(({ agent, amount, charges }) => {
      const bar = s("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", class: "agent-bar", "aria-hidden": "true" }, s("rect", { class: "bar", width: Math.max(share(amount, largest) * 100, 1).toFixed(1), height: 8 }));
      return h("li", {}, h("span", { class: "agent-name" }, agent || gettext("An agent that is gone")), bar, h("span", { class: "amount" }, shown(amount, currency), h("small", {}, ` ${interpolate(ngettext("%(n)s charge", "%(n)s charges", charges), { n: charges })}`)));
    }),
  );
}

class MoneySpend extends MoneyPart {
  connectedCallback() {
    this.build(gettext("Spent in 30 days"));
  }

  async read() {
    const { days, agents, currency, total } = await api.get(`/api/payments/spend?days=${DAYS}`);
    const spent = days.filter(({ amount }) => units(amount) !== 0n).map(({ day, amount }) => [named(day), shown(amount, currency)]);
    this.show(
      h("p", { class: "total", "data-testid": "spent" }, shown(total, currency)),
      dayPlot(days, currency),
      h("details", {}, h("summary", {}, icon("chevron"), gettext("As a table")), spent.length ? table(gettext("Spent per day"), [gettext("Day (UTC)"), gettext("Amount")], spent) : h("p", { class: "quiet" }, gettext("Nothing was spent."))),
      agents.length ? agentBars(agents, currency) : h("p", { class: "quiet" }, gettext("No agent has cost you anything yet.")),
    );
  }
}
customElements.define("money-spend", MoneySpend);
