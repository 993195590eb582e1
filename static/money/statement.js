/** What moved on one's account, the newest first, a page at a time. */

import { shown } from "../chat/amounts.js";
import { h } from "../chat/dom.js";
import { MoneyPart, api, table } from "./part.js";
import { gettext, locale } from "../chat/words.js";

const PAGE = 25;
const when = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
const KINDS = { answer: gettext("Answer"), refund: gettext("Refund"), top_up: gettext("Top-up"), pool: gettext("Pool of a chat"), adjust: gettext("Adjusted by an operator"), transfer: gettext("Transfer"), token: gettext("Payment token"), token_return: gettext("Back from a payment token"), void: gettext("Given back unused") };

class MoneyStatement extends MoneyPart {
  connectedCallback() {
    this._more = h("button", { type: "button", class: "button", hidden: true, "data-testid": "statement-more", onclick: () => this._next() }, gettext("Older"));
    this._place = h("div", { "data-testid": "statement" });
    this.build(gettext("Statement"), this._place, this._more);
  }

  async read() {
    // Agents that are gone, or not for oneself, have no name to show.
    this._agents ||= new Map((await api.get("/agents")).data.map(({ id, name }) => [id, name]));
    this._rows = [];
    this._cursor = null;
    await this._page();
  }

  async _next() {
    await this.attempt(() => this._page());
  }

  async _page() {
    const query = this._cursor ? `&cursor=${this._cursor}` : "";
    const page = await api.get(`/api/payments/statement?limit=${PAGE}${query}`);
    this._rows.push(...page.data);
    this._cursor = page.next_cursor;
    this._more.hidden = !page.has_more;
    this._show(page.currency);
  }

  _what({ kind, agent_id: agentId }) {
    const what = KINDS[kind] || kind.replaceAll("_", " ");
    const agent = this._agents.get(agentId);
    return agent ? `${what} of ${agent}` : what;
  }

  _show(currency) {
    const rows = this._rows.map((row) => [
      h("td", {}, h("time", { datetime: row.at }, when.format(new Date(row.at)))),
      h("td", {}, this._what(row), row.memo && row.memo !== row.kind && h("small", {}, row.memo), row.chat_id && [" ", h("a", { href: `/chats/${encodeURIComponent(row.chat_id)}` }, gettext("in a chat"))]),
      h("td", { class: `amount ${row.amount.startsWith("-") ? "" : "is-in"}` }, shown(row.amount, currency)),
    ]);
    this._place.replaceChildren(rows.length ? table(gettext("Statement"), [gettext("When"), gettext("What"), gettext("Amount")], rows) : h("p", { class: "quiet" }, gettext("Nothing has moved yet.")));
  }
}
customElements.define("money-statement", MoneyStatement);
