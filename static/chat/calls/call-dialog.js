/** Asks before a call rings for several people at once. */

import { calls, store } from "../context.js";
import { DialogView } from "../dialogs/dialog-view.js";
import { people } from "../person/looks.js";
import { glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

/** @typedef {import("../store/chat.js").Chat} Chat */

export class CallDialog extends DialogView {
  static properties = { _chat: { state: true } };

  constructor() {
    super();
    /** @type {Chat|null} */
    this._chat = null;
  }

  /** @param {Chat} chat */
  async open(chat) {
    this._chat = chat;
    await this._show();
  }

  render() {
    const chat = this._chat;
    if (!chat) return html`<dialog class="dialog"></dialog>`;
    const others = store.others(chat).filter(({ kind }) => kind === "user");
    const named = (/** @type {boolean} */ rings) =>
      new Intl.ListFormat(document.documentElement.lang).format(
        others
          .filter(({ takes_calls: takes }) => (takes ?? true) === rings)
          .map(({ name }) => people.nameOf(name)),
      );
    const [names, away] = [named(true), named(false)];
    return html`<dialog class="dialog" aria-labelledby="call-title" data-testid="call-dialog">
      <div class="dialog-form">
        ${this._head("call-title", gettext("Call everyone?"))}
        <div class="dialog-body">
          <p>${interpolate(gettext("This will ring %(names)s."), { names })}</p>
          ${
            away
              ? html`<p class="quiet" data-testid="not-called">
                  ${interpolate(
                    gettext("It won't ring for %(names)s: calls don't reach other servers."),
                    { names: away },
                  )}
                </p>`
              : nothing
          }
        </div>
        <footer>
          <button type="button" class="button" @click=${() => this._close()}>
            ${gettext("Cancel")}
          </button>
          <button
            type="button"
            class="button button-primary"
            data-testid="call-everyone"
            @click=${() => this._call(chat)}
          >
            ${glyph("phone")}${gettext("Call")}
          </button>
        </footer>
      </div>
    </dialog>`;
  }

  /** @param {Chat} chat */
  _call(chat) {
    this._close();
    calls.start(chat.id);
  }
}
customElements.define("call-dialog", CallDialog);
