/** One of the user's turns while it is being sent. */

import { View, glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import "../parts/text.js";
import { gettext } from "../words.js";

const STATES = {
  waiting: gettext("Not sent yet, will retry"),
  sent: gettext("Sending…"),
  held: gettext("The server isn't accepting messages right now. This one will be retried."),
  failed: gettext("Not sent"),
  unknown: gettext("This may or may not have been sent. Check the chat before you send it again."),
};

/** @typedef {import("../../uamp/outbox.js").Turn} Turn */

/** Fires (bubbling) `retry-turn` and `discard-turn` with the turn. */
class PendingTurn extends View {
  static properties = {
    turn: { attribute: false },
    state: { attribute: false },
  };

  constructor() {
    super();
    /** Set before it is rendered. @type {Turn} */
    this.turn = /** @type {Turn} */ (/** @type {unknown} */ (undefined));
    /** @type {Turn["state"]} */
    this.state = "waiting";
  }

  willUpdate() {
    this.className = "message is-mine is-pending from-user";
    Object.assign(this.dataset, { testid: "pending", status: this.state });
  }

  render() {
    const { turn, state } = this;
    const isFailed = state === "failed" || state === "unknown";
    return html` <div class="message-main">
      <div class="bubble">
        ${
          turn.text ? html`<stored-text .text=${turn.text} .most=${4_000}></stored-text>` : ""
        }${turn.attachments.map(
          (a) => html`<span class="file-chip">${glyph("file")}${a.filename}</span>`,
        )}
      </div>
      <div class="turn-state">
        ${isFailed ? glyph("alert") : ""}${STATES[state]}${
          turn.error ? `: ${turn.error}` : ""
        }${isFailed ? this._choices() : ""}
      </div>
    </div>`;
  }

  _choices() {
    return html`<button type="button" class="link" @click=${() => this._fire("retry-turn")}>
        ${gettext("Try again")}</button
      ><button type="button" class="link" @click=${() => this._fire("discard-turn")}>
        ${gettext("Discard")}
      </button>`;
  }

  /** @param {string} type */
  _fire(type) {
    this.dispatchEvent(new CustomEvent(type, { bubbles: true, detail: this.turn }));
  }
}
customElements.define("pending-turn", PendingTurn);
