/** Ways to put money in: each provider's own, and what became of what was asked for. */

import { shown } from "../chat/amounts.js";
import { announce, h, whileBusy } from "../chat/dom.js";
import { newId } from "../uamp/ids.js";
import { MoneyPart, api, labelled, table } from "./part.js";
import { gettext, interpolate, locale } from "../chat/words.js";

const when = new Intl.DateTimeFormat(locale, { dateStyle: "medium" });
const STATES = { open: gettext("Asked for"), credited: gettext("Credited"), refused: gettext("Refused") };

class MoneyTopUp extends MoneyPart {
  connectedCallback() {
    this._forms = h("div", {});
    this._rows = h("div", { "data-testid": "topups" });
    this.build(gettext("Top up"), this._forms, this._rows);
    this._forms.after(this.error);
  }

  async read() {
    const [{ providers }, { items }] = await Promise.all([api.get("/api/payments/topups/providers"), api.get("/api/payments/topups")]);
    if (!this._forms.hasChildNodes()) this._show(providers);
    const rows = items.map(({ created_at: at, amount, currency, state, reason, url }) => [
      when.format(new Date(at)), shown(amount, currency),
      h("span", {}, STATES[state] || state, reason && h("small", {}, reason), state === "open" && url && h("a", { href: url }, gettext("Pay"))),
    ]);
    this._rows.replaceChildren(rows.length ? table(gettext("Top-ups"), [gettext("Asked on"), gettext("Amount"), gettext("State")], rows) : "");
  }

  _show(providers) {
    if (!providers.length) this._forms.append(h("p", { class: "quiet" }, gettext("This server takes no money yet. Ask its operator.")));
    for (const { name, label } of providers) {
      this._forms.append(
        h(
          "form", { class: "row-form", "data-provider": name, onsubmit: (event) => this._ask(event, name) },
          labelled(gettext("Amount (USD)"), h("input", { class: "field", name: "amount", inputmode: "decimal", autocomplete: "off", maxlength: 20, required: true, placeholder: "10.00", "data-testid": "topup-amount" })),
          h("button", { type: "submit", class: "button button-primary", "data-testid": "topup-ask" }, label),
        ),
      );
    }
  }

  async _ask(event, provider) {
    event.preventDefault();
    const form = event.target;
    const amount = new FormData(form).get("amount").trim();
    if (this._asking?.of !== `${provider} ${amount}`) this._asking = { of: `${provider} ${amount}`, key: newId() };
    await whileBusy(form.querySelector("button"), () => this.attempt(async () => {
      const made = await api.post("/api/payments/topups", { provider, amount, currency: "USD" }, { "Idempotency-Key": this._asking.key });
      this._asking = null;
      if (made.url && made.state === "open") {
        location.assign(made.url);
        return;
      }
      form.reset();
      announce(interpolate(gettext("%(amount)s are asked for."), { amount: shown(amount) }));
      await this.read();
    }));
  }
}
customElements.define("money-topup", MoneyTopUp);
