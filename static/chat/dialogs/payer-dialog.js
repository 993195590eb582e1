/** A dialog for the owner of a chat: its payer, and the money in its pool. */

import { shown } from "../amounts.js";
import { api, store } from "../context.js";
import { announce, h, iconButton, whileBusy } from "../dom.js";
import { newId } from "../../uamp/ids.js";
import { PAYERS } from "../price.js";
import { wallet } from "../wallet.js";
import { gettext, interpolate } from "../words.js";

const EXPLAINED = {
  asker: gettext("Each person pays for what they ask, and is asked first."),
  owner: gettext("You pay for all answers, without being asked, as long as you own the chat."),
  pool: gettext("The pool pays for all answers, as far as it goes."),
  sponsor: gettext("The owner of an agent pays for its answers, where they sponsor it, as far as their budget goes. You pay for other agents."),
};

class PayerDialog extends HTMLElement {
  connectedCallback() {
    this._dialog = h("dialog", { class: "dialog", "aria-labelledby": "payer-title", "data-testid": "payer-dialog" });
    this.append(this._dialog);
  }

  /** @param {import("../chat-store.js").Chat} chat */
  open(chat) {
    this._chat = chat;
    const error = h("p", { class: "dialog-error", role: "alert", hidden: true });
    this._error = error;
    this._pool = h("p", { class: "pool-has", "aria-live": "polite", "data-testid": "pool" }, "…");
    const amount = h("input", { class: "field", id: "pool-amount", inputmode: "decimal", autocomplete: "off", maxlength: 20, placeholder: "5.00", "data-testid": "pool-amount" });
    const fill = h("button", { type: "button", class: "button", "data-testid": "pool-fill", onclick: () => this._fill(amount, fill) }, gettext("Put in"));
    this._dialog.replaceChildren(
      h(
        "form", { class: "dialog-form", onsubmit: (event) => this._save(event) },
        h("header", {}, h("h2", { id: "payer-title" }, gettext("Who pays")), iconButton("close", gettext("Close"), { onclick: () => this._dialog.close() })),
        h(
          "div", { class: "dialog-body" },
          h("fieldset", { class: "payers" }, h("legend", { class: "visually-hidden" }, gettext("Who pays for answers in this chat")), Object.keys(PAYERS).map((payer) => this._choice(payer))),
          h("h3", {}, gettext("The pool")), this._pool,
          h("label", { for: "pool-amount" }, gettext("Put in from your balance (USD)")),
          h("div", { class: "pool-fill" }, amount, fill),
        ),
        h("footer", {}, error, h("button", { type: "button", class: "button", onclick: () => this._dialog.close() }, gettext("Close")), h("button", { type: "submit", class: "button button-primary" }, gettext("Save"))),
      ),
    );
    this._dialog.showModal();
    this._dialog.querySelector("input:checked")?.focus();
    this._try(async () => this._showPool(await api.get(this._path)));
  }

  get _path() {
    return `/chats/${encodeURIComponent(this._chat.id)}/pool`;
  }

  _choice(payer) {
    const radio = h("input", { type: "radio", name: "payer", value: payer, checked: payer === this._chat.payer });
    return h("label", { class: "picker-option" }, h("span", { class: "picker-text" }, h("b", {}, PAYERS[payer]), h("small", {}, EXPLAINED[payer])), radio);
  }

  _showPool({ available, held, currency }) {
    const more = held === "0" ? "" : `, ${interpolate(gettext("and %(amount)s reserved"), { amount: shown(held, currency) })}`;
    this._pool.textContent = `${shown(available, currency)} in it${more}.`;
  }

  async _fill(field, button) {
    const amount = field.value.trim();
    // The same try again is the same transfer, whatever became of its answer.
    if (this._filling?.amount !== amount) this._filling = { amount, key: newId() };
    await whileBusy(button, () => this._try(async () => {
      const pool = await api.post(this._path, { amount }, { "Idempotency-Key": this._filling.key });
      this._filling = null;
      field.value = "";
      this._showPool(pool);
      announce(interpolate(gettext("The pool has %(amount)s now."), { amount: shown(pool.available, pool.currency) }));
      wallet.refresh();
    }));
  }

  async _save(event) {
    event.preventDefault();
    const payer = new FormData(event.target).get("payer");
    await this._try(async () => {
      await api.send("PATCH", `/chats/${encodeURIComponent(this._chat.id)}`, { payer });
      await store.reload(this._chat.id);
      this._dialog.close();
    });
  }

  async _try(work) {
    this._error.hidden = true;
    try {
      await work();
    } catch (problem) {
      if (problem.name !== "ApiError") throw problem;
      this._error.hidden = false;
      this._error.textContent = problem.message;
    }
  }
}
customElements.define("payer-dialog", PayerDialog);
