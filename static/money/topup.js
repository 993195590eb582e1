/** Ways to put money in: each provider's own, and what became of what was asked for. */

import { shown } from "../chat/amounts.js";
import { announce, h, whileBusy } from "../chat/dom.js";
import { newId } from "../uamp/ids.js";
import { MoneyPart, api, labelled, table } from "./part.js";

const when = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const STATES = { open: "Asked for", credited: "Credited", refused: "Refused" };

class MoneyTopUp extends MoneyPart {
  connectedCallback() {
    this._forms = h("div", {});
    this._rows = h("div", { "data-testid": "topups" });
    this.build("Top up", this._forms, this._rows);
    this._forms.after(this.error);
  }

  async read() {
    const [{ providers }, { items }] = await Promise.all([api.get("/api/payments/topups/providers"), api.get("/api/payments/topups")]);
    if (!this._forms.hasChildNodes()) this._show(providers);
    const rows = items.map(({ created_at: at, amount, currency, state, reason, url }) => [
      when.format(new Date(at)), shown(amount, currency),
      h("span", {}, STATES[state] || state, reason && h("small", {}, reason), state === "open" && url && h("a", { href: url }, "Pay")),
    ]);
    this._rows.replaceChildren(rows.length ? table("Top-ups", ["Asked on", "Amount", "State"], rows) : "");
  }

  _show(providers) {
    if (!providers.length) this._forms.append(h("p", { class: "quiet" }, "This server takes no money yet. Ask its operator."));
    for (const { name, label } of providers) {
      this._forms.append(
        h(
          "form", { class: "row-form", "data-provider": name, onsubmit: (event) => this._ask(event, name) },
          labelled("Amount (USD)", h("input", { class: "field", name: "amount", inputmode: "decimal", autocomplete: "off", maxlength: 20, required: true, placeholder: "10.00", "data-testid": "topup-amount" })),
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
      announce(`${shown(amount)} are asked for.`);
      await this.read();
    }));
  }
}
customElements.define("money-topup", MoneyTopUp);
