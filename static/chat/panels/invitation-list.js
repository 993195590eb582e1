/** Invitations to chats on other servers: accept, decline, block. */

import { isApiError } from "../api.js";
import { api, client } from "../context.js";
import { View } from "../view.js";
import { html, nothing, repeat } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

/**
 * @typedef {object} Invitation
 * @property {string} id
 * @property {"received"|"sent"} direction
 * @property {string} person as `name@host`
 * @property {string} title
 */

export class InvitationList extends View {
  static properties = { _open: { state: true }, _error: { state: true } };

  constructor() {
    super();
    /** @type {Invitation[]} */
    this._open = [];
    this._error = "";
  }

  connectedCallback() {
    super.connectedCallback();
    this._read();
    client.addEventListener("person", (event) => {
      if (/** @type {CustomEvent<{subject: string}>} */ (event).detail.subject === "invitations")
        this._read();
    });
  }

  render() {
    if (!this._open.length) return nothing;
    return html`<section class="invitations" aria-label=${gettext("Invitations")}>
      <h3 class="chat-section">${gettext("Invitations")}</h3>
      <ul>
        ${repeat(
          this._open,
          ({ id }) => id,
          (one) => this._item(one),
        )}
      </ul>
      ${this._error ? html`<p role="alert">${this._error}</p>` : nothing}
    </section>`;
  }

  /** @param {Invitation} one */
  _item(one) {
    const values = { person: one.person, title: one.title || gettext("a chat") };
    if (one.direction === "sent")
      return html`<li data-testid="invitation">
        <p>${interpolate(gettext("You invited %(person)s to %(title)s."), values)}</p>
        <div>${this._button(one, "withdraw", gettext("Withdraw"))}</div>
      </li>`;
    return html`<li data-testid="invitation">
      <p>${interpolate(gettext("%(person)s invites you to %(title)s."), values)}</p>
      <div>
        ${this._button(one, "accept", gettext("Accept"))}${this._button(
          one,
          "decline",
          gettext("Decline"),
        )}${this._button(one, "block", gettext("Block"))}
      </div>
    </li>`;
  }

  /** @param {Invitation} one @param {string} answer @param {string} label */
  _button(one, answer, label) {
    return html`<button
      type="button"
      class="button ${answer === "accept" ? "button-primary" : "button-quiet"}"
      @click=${() => this._answer(one, answer)}
    >
      ${label}
    </button>`;
  }

  /** @param {Invitation} one @param {string} answer */
  async _answer(one, answer) {
    try {
      await api.post(`/invitations/${one.id}`, { answer });
      this._error = "";
    } catch (error) {
      if (!isApiError(error)) throw error;
      this._error = error.message;
    }
    await this._read();
  }

  async _read() {
    try {
      this._open = (await api.get("/invitations")).data;
    } catch (error) {
      // They are reloaded with the next change.
      if (!isApiError(error)) throw error;
    }
  }
}
customElements.define("invitation-list", InvitationList);
