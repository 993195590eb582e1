/** A dialog for a chat's owner: its payer, and the money in its pool. */

import { amountFromInput, formatAmount, padded } from "../money/amounts.js";
import { api, store } from "../context.js";
import { announce } from "../dom.js";
import { newId } from "../../uamp/ids.js";
import { PAYERS } from "../money/price.js";
import { wallet } from "../money/wallet.js";
import { html } from "../../vendor/lit/lit.js";
import { DialogView } from "./dialog-view.js";
import { gettext, interpolate } from "../words.js";

/** @type {Record<string, string>} */
const EXPLAINED = {
  asker: gettext("Each person pays for their own questions, and is asked first."),
  owner: gettext("You pay for all answers, without being asked, as long as you own the chat."),
  pool: gettext("The pool pays for all answers while it lasts."),
  sponsor: gettext(
    "An agent's owner pays for its answers if they sponsor it, within their budget. You pay for other agents.",
  ),
};

/** @typedef {{available: string, held: string, currency: string}} Pool decimal strings */

export class PayerDialog extends DialogView {
  static properties = { _chat: { state: true }, _pool: { state: true } };

  constructor() {
    super();
    /** @type {import("../store/chat.js").Chat|null} */
    this._chat = null;
    /** @type {Pool|null} null until loaded */
    this._pool = null;
    /**
     * @type {{amount: string, key: string}|null} the unconfirmed transfer into the pool
     */
    this._filling = null;
  }

  /** @param {import("../store/chat.js").Chat} chat */
  async open(chat) {
    this._chat = chat;
    this._pool = null;
    await this._show();
    /** @type {HTMLFormElement} */ (this.querySelector("form")).reset();
    /** @type {HTMLElement|null} */ (this.querySelector("input:checked"))?.focus();
    await this._attempt(async () => {
      this._pool = await api.get(this._path);
    });
  }

  get _path() {
    return `/chats/${encodeURIComponent(this._chat?.id ?? "")}/pool`;
  }

  render() {
    const chat = this._chat;
    if (!chat) return html`<dialog class="dialog"></dialog>`;
    return html`<dialog class="dialog" aria-labelledby="payer-title" data-testid="payer-dialog">
      <form class="dialog-form" @submit=${(/** @type {SubmitEvent} */ event) => this._save(event)}>
        ${this._head("payer-title", gettext("Who pays"))}
        <div class="dialog-body">
          <fieldset class="payers">
            <legend class="visually-hidden">${gettext("Who pays for answers in this chat")}</legend>
            ${Object.keys(PAYERS).map((payer) => this._choice(payer, chat))}
          </fieldset>
          <h3>${gettext("The pool")}</h3>
          <p class="pool-has" aria-live="polite" data-testid="pool">
            ${this._pool ? poolText(this._pool) : "…"}
          </p>
          <label for="pool-amount">${gettext("Add from your balance (USD)")}</label>
          <div class="pool-fill">
            <input
              class="field"
              id="pool-amount"
              inputmode="decimal"
              autocomplete="off"
              maxlength="20"
              placeholder=${padded("5")}
              data-testid="pool-amount"
            />
            <button
              type="button"
              class="button"
              data-testid="pool-fill"
              ?disabled=${this._isBusy}
              @click=${() => this._fill()}
            >
              ${gettext("Add")}
            </button>
          </div>
        </div>
        <footer>
          ${this._problem()}<button type="button" class="button" @click=${() => this._close()}>
            ${gettext("Close")}
          </button>
          <button type="submit" class="button button-primary">${gettext("Save")}</button>
        </footer>
      </form>
    </dialog>`;
  }

  /** @param {string} payer @param {import("../store/chat.js").Chat} chat */
  _choice(payer, chat) {
    return html`<label class="picker-option"
      ><span class="picker-text"><b>${PAYERS[payer]}</b><small>${EXPLAINED[payer]}</small></span>
      <input type="radio" name="payer" value=${payer} ?checked=${payer === chat.payer}
    /></label>`;
  }

  _fill() {
    if (this._isBusy) return;
    const field = /** @type {HTMLInputElement} */ (this.querySelector("#pool-amount"));
    const amount = amountFromInput(field.value);
    // A retry is the same transfer, whatever became of the first answer.
    const filling = this._filling?.amount === amount ? this._filling : { amount, key: newId() };
    this._filling = filling;
    this._attempt(async () => {
      /** @type {Pool} */
      const pool = await api.post(this._path, { amount }, { "Idempotency-Key": filling.key });
      this._filling = null;
      field.value = "";
      this._pool = pool;
      announce(
        interpolate(gettext("The pool now has %(amount)s."), {
          amount: formatAmount(pool.available, pool.currency),
        }),
      );
      wallet.refresh();
    });
  }

  /** @param {SubmitEvent} event */
  _save(event) {
    event.preventDefault();
    const chat = this._chat;
    if (!chat) return;
    const payer = new FormData(/** @type {HTMLFormElement} */ (event.target)).get("payer");
    this._attempt(async () => {
      await api.send("PATCH", `/chats/${encodeURIComponent(chat.id)}`, { payer });
      await store.reload(chat.id);
      this._close();
    });
  }
}
customElements.define("payer-dialog", PayerDialog);

/** @param {Pool} pool */
function poolText({ available, held, currency }) {
  const amount = formatAmount(available, currency);
  if (held === "0") return interpolate(gettext("Pool: %(amount)s"), { amount });
  return interpolate(gettext("Pool: %(amount)s, of which %(held)s is on hold"), {
    amount,
    held: formatAmount(held, currency),
  });
}
