/** The user's account statement, newest first, a page at a time. */

import { formatExact } from "../chat/money/amounts.js";
import { MoneyPart, api, table } from "./part.js";
import { gettext, interpolate, locale } from "../chat/words.js";
import { html, nothing } from "../vendor/lit/lit.js";

/**
 * @typedef {{at: string, amount: string, kind: string, memo: string, agent_id: string, chat_id:
 *   string}} Move one line of the statement
 */

const PAGE = 25;
const when = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
/** @type {Record<string, string>} */
const KINDS = {
  answer: gettext("Answer"),
  refund: gettext("Refund"),
  top_up: gettext("Top-up"),
  pool: gettext("Pool of a chat"),
  adjust: gettext("Adjusted by an operator"),
  transfer: gettext("Transfer"),
  token: gettext("Payment token"),
  token_return: gettext("Returned from a payment token"),
  void: gettext("Unused, returned"),
};

class MoneyStatement extends MoneyPart {
  static properties = { _rows: { state: true }, _cursor: { state: true } };

  constructor() {
    super();
    /** @type {Move[]|null} null until loaded */
    this._rows = null;
    /** The cursor of the next page; "" for none. */
    this._cursor = "";
    this._currency = "USD";
    /**
     * Names by id; deleted or unavailable agents have none.
     * @type {Map<string, string>|null}
     */
    this._agents = null;
  }

  get heading() {
    return gettext("Statement");
  }

  async read() {
    /** @type {{data: {id: string, name: string}[]}} */
    const { data } = this._agents ? { data: [] } : await api.get("/agents");
    this._agents ??= new Map(data.map(({ id, name }) => [id, name]));
    await this._page([], "");
  }

  /** @param {Move[]} before @param {string} cursor */
  async _page(before, cursor) {
    const page = await api.get(
      `/api/payments/statement?limit=${PAGE}${cursor ? `&cursor=${cursor}` : ""}`,
    );
    this._currency = page.currency;
    this._cursor = page.has_more ? String(page.next_cursor) : "";
    this._rows = [...before, ...page.data];
  }

  body() {
    return html`<div data-testid="statement">${this._rows ? this._list(this._rows) : nothing}</div>
      <button
        type="button"
        class="button"
        ?hidden=${!this._cursor}
        data-testid="statement-more"
        @click=${() => this.attempt(() => this._page(this._rows ?? [], this._cursor))}
      >
        ${gettext("Older")}</button
      >${this.problem()}`;
  }

  /** @param {Move[]} moves */
  _list(moves) {
    if (!moves.length) return html`<p class="quiet">${gettext("No transactions yet.")}</p>`;
    const rows = moves.map(
      (move) =>
        html`<tr>
          <td><time datetime=${move.at}>${when.format(new Date(move.at))}</time></td>
          <td>
            ${this._what(move)}${
              move.memo && move.memo !== move.kind ? html`<small>${move.memo}</small>` : nothing
            }${
              move.chat_id
                ? html` <a href="/chats/${encodeURIComponent(move.chat_id)}"
                    >${gettext("in a chat")}</a
                  >`
                : nothing
            }
          </td>
          <td class="amount ${move.amount.startsWith("-") ? "" : "is-in"}">
            ${formatExact(move.amount, this._currency)}
          </td>
        </tr>`,
    );
    return table(
      gettext("Statement"),
      [gettext("Date"), gettext("Description"), gettext("Amount")],
      rows,
    );
  }

  /** @param {Move} move */
  _what({ kind, agent_id: agentId }) {
    const what = KINDS[kind] || kind.replaceAll("_", " ");
    const agent = this._agents?.get(agentId);
    return agent ? interpolate(gettext("%(what)s of %(agent)s"), { what, agent }) : what;
  }
}
customElements.define("money-statement", MoneyStatement);
