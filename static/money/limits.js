/** How much one lets oneself spend in a day, a week and a month; and what agents take unasked. */

import { shown } from "../chat/amounts.js";
import { announce, h } from "../chat/dom.js";
import { MoneyPart, api, labelled, named, table } from "./part.js";
import { gettext, interpolate, locale } from "../chat/words.js";

const PERIODS = { day: gettext("A day"), week: gettext("A week"), month: gettext("A month") };
const when = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });

class MoneyLimits extends MoneyPart {
  connectedCallback() {
    this.build(gettext("Limits"));
  }

  async read() {
    const { limits } = await api.get("/api/payments/limits");
    this._others = limits.filter(({ agent_id: agentId, token }) => agentId || token);
    const fields = Object.keys(PERIODS).map((period) => this._field(period, limits.find((l) => l.period === period && !l.agent_id && !l.token)));
    const others = this._others.map((l) => [l.token ? [gettext("Token"), named(l.token_name, l.token)] : named(l.agent || l.agent_id), PERIODS[l.period], shown(l.amount, l.currency), shown(l.left, l.currency)]);
    this.show(
      h("p", { class: "quiet" }, gettext("You never spend more than this. An empty field sets no limit. Days end at midnight UTC.")),
      h("form", { class: "row-form", onsubmit: (event) => this._save(event) }, fields, h("button", { type: "submit", class: "button button-primary" }, gettext("Save limits"))),
      ...(others.length ? [table(gettext("Limits on single agents and tokens"), [gettext("Of"), gettext("In"), gettext("At most"), gettext("Left")], others)] : []),
    );
  }

  _field(period, limit) {
    const field = h("input", { class: "field", name: period, inputmode: "decimal", autocomplete: "off", maxlength: 20, placeholder: gettext("No limit"), value: limit?.amount ?? "", "data-testid": `limit-${period}` });
    const used = limit && h("small", {}, interpolate(gettext("%(amount)s left until %(time)s"), { amount: shown(limit.left, limit.currency), time: when.format(new Date(limit.resets_at)) }));
    return h("div", { class: "limit" }, labelled(`${PERIODS[period]} (USD)`, field), used);
  }

  async _save(event) {
    event.preventDefault();
    const given = new FormData(event.target);
    const limits = Object.keys(PERIODS).filter((period) => given.get(period).trim()).map((period) => ({ period, amount: given.get(period).trim(), currency: "USD" }));
    const kept = this._others.filter(({ agent, token }) => agent || token).map(({ period, agent, token, amount, currency }) => ({ period, agent, token, amount, currency }));
    if (await this.attempt(() => api.send("PUT", "/api/payments/limits", { limits: [...limits, ...kept] }))) {
      announce(gettext("The limits are saved."));
      event.target.reset();
      await this.load();
    }
  }
}
customElements.define("money-limits", MoneyLimits);

class MoneyApprovals extends MoneyPart {
  connectedCallback() {
    this.build(gettext("Agents that need not ask"));
  }

  async read() {
    const { approvals } = await api.get("/api/payments/approvals");
    const rows = approvals.map(({ agent, agent_id: id, up_to: upTo, currency }) => [
      agent || id, interpolate(gettext("%(price)s an answer"), { price: shown(upTo, currency) }),
      h("button", { type: "button", class: "button", "aria-label": interpolate(gettext("Ask me again for %(name)s"), { name: agent || id }), "data-testid": "withdraw", onclick: () => this._withdraw(agent || id, id) }, gettext("Ask me again")),
    ]);
    this.show(
      rows.length ? table(gettext("Agents that take money without asking"), [gettext("Agent"), gettext("At most"), ""], rows) : h("p", { class: "quiet" }, gettext("Every agent that has a price asks you before each answer. “Always allow” on a payment card changes that.")),
    );
  }

  async _withdraw(name, id) {
    if (await this.attempt(() => api.send("DELETE", `/api/payments/approvals/${encodeURIComponent(id)}`))) {
      announce(interpolate(gettext("%(name)s asks you again from now on."), { name }));
      await this.load();
    }
  }
}
customElements.define("money-approvals", MoneyApprovals);

