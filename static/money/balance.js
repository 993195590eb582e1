/** What one has, and what of it is reserved for answers that run. */

import { shown, units } from "../chat/amounts.js";
import { h } from "../chat/dom.js";
import { MoneyPart, api } from "./part.js";
import { gettext } from "../chat/words.js";

class MoneyBalance extends MoneyPart {
  connectedCallback() {
    this.build(gettext("Balance"));
    document.addEventListener("visibilitychange", () => document.hidden || this.changed());
  }

  async read() {
    const { available, held, posted, currency } = await api.get("/api/payments/balance");
    const figure = (name, amount, id) =>
      h("div", { class: "figure" }, h("dt", {}, name), h("dd", { "data-testid": id }, shown(amount, currency)));
    this.show(
      h(
        "dl", { class: "figures" }, figure(gettext("You can spend"), available, "available"),
        units(held) > 0n && figure(gettext("Reserved for answers"), held, "held"), units(held) > 0n && figure(gettext("In all"), posted, "posted"),
      ),
    );
  }
}
customElements.define("money-balance", MoneyBalance);
