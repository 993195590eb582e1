/** Payment tokens: budgets for programs. The secret is shown once, right after it is made. */

import { shown } from "../chat/amounts.js";
import { announce, h, iconButton, whileBusy } from "../chat/dom.js";
import { newId } from "../uamp/ids.js";
import { MoneyPart, api, labelled, named, table } from "./part.js";
import { gettext, interpolate, locale } from "../chat/words.js";

const DAY_SECONDS = 86_400;
const when = new Intl.DateTimeFormat(locale, { dateStyle: "medium" });

class MoneyTokens extends MoneyPart {
  connectedCallback() {
    this._secret = h("div", { class: "secret", hidden: true, role: "status" });
    this._rows = h("div", {});
    this._form = h(
      "form", { class: "row-form", onsubmit: (event) => this._make(event) },
      labelled(gettext("Amount (USD)"), h("input", { class: "field", name: "amount", inputmode: "decimal", autocomplete: "off", maxlength: 20, required: true, "data-testid": "token-amount" })),
      labelled(gettext("Name"), h("input", { class: "field", name: "name", autocomplete: "off", maxlength: 100, placeholder: gettext("What it is for") })),
      labelled(gettext("At most a day (USD)"), h("input", { class: "field", name: "day", inputmode: "decimal", autocomplete: "off", maxlength: 20, placeholder: gettext("No limit"), "data-testid": "token-day" })),
      labelled(gettext("Good for"), h("select", { class: "field", name: "days" }, [["1", gettext("A day")], ["30", gettext("30 days")], ["365", gettext("A year")]].map(([value, text]) => h("option", { value, selected: value === "30" }, text)))),
      h("button", { type: "submit", class: "button button-primary", "data-testid": "token-make" }, gettext("Make a token")),
    );
    this.build(
      gettext("Payment tokens"),
      h("p", { class: "quiet" }, gettext("A program pays with a token until it is used up. The amount leaves your balance now; what is left comes back when the token ends.")),
      this._form, this._secret, this._rows,
    );
    // What is wrong with what was asked for is said where it was.
    this._form.after(this.error);
  }

  async read() {
    const { items } = await api.get("/api/payments/tokens");
    const rows = items.map((token) => [
      [named(token.name, token.id), token.parentId && h("small", {}, " passed on")],
      shown(token.balance, token.currency),
      token.status === "active" && token.expiresAt ? interpolate(gettext("until %(time)s"), { time: when.format(new Date(token.expiresAt)) }) : token.status,
      token.status === "active" ? h("button", { type: "button", class: "button", "data-testid": "token-revoke", "aria-label": interpolate(gettext("End %(name)s"), { name: token.name || token.id }), onclick: () => this._end(token) }, "End") : "",
    ]);
    this._rows.replaceChildren(rows.length ? table(gettext("Payment tokens"), [gettext("Token"), gettext("Left"), gettext("State"), ""], rows) : "");
  }

  async _make(event) {
    event.preventDefault();
    const given = new FormData(this._form);
    const body = { amount: given.get("amount").trim(), currency: "USD", name: given.get("name").trim(), expiresIn: Number(given.get("days")) * DAY_SECONDS };
    const day = given.get("day").trim();
    if (day) body.limits = [{ period: "day", amount: day }];
    // The same try again makes the same token, whatever became of the answer.
    const asked = JSON.stringify(body);
    if (this._making?.asked !== asked) this._making = { asked, key: newId() };
    const isMade = await whileBusy(this._form.querySelector("button"), () => this.attempt(async () => {
      const made = await api.post("/api/payments/tokens", body, { "Idempotency-Key": this._making.key });
      this._making = null;
      this._form.reset();
      this._show(made.token);
    }));
    if (isMade) this.changed();
  }

  _show(secret) {
    const field = h("input", { class: "field", readonly: true, value: secret, "aria-label": gettext("The new token"), "data-testid": "token-secret" });
    const copy = iconButton("copy", gettext("Copy the token"), {
      onclick: async () => {
        field.select();
        await navigator.clipboard?.writeText(secret);
        announce(gettext("Copied."));
      },
    });
    this._secret.replaceChildren(h("p", {}, gettext("Copy it now: it is not shown again.")), h("div", { class: "secret-row" }, field, copy, h("button", { type: "button", class: "button", onclick: () => this._hide() }, gettext("Done"))));
    this._secret.hidden = false;
    field.focus();
    field.select();
  }

  _hide() {
    this._secret.replaceChildren();
    this._secret.hidden = true;
  }

  async _end(token) {
    const isEnded = await this.attempt(async () => {
      const { returned } = await api.send("DELETE", `/api/payments/tokens/${encodeURIComponent(token.id)}`);
      this._hide();
      announce(interpolate(gettext("The token ended; %(amount)s came back."), { amount: shown(returned, token.currency) }));
    });
    if (isEnded) this.changed();
  }
}
customElements.define("money-tokens", MoneyTokens);
