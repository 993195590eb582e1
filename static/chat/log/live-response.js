/** A running answer, or one that ended without a message. */

import { memberName, pageAt } from "../context.js";
import { paymentText } from "../store/agent-work.js";
import { Selected } from "../store/store.js";
import { View, dots, face, glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { endingLine, messageHead } from "./message-head.js";
import { partsTemplate } from "../parts/parts.js";
import { gettext, interpolate } from "../words.js";

/** Fires (bubbling) `stop-answer` with the response. */
class LiveResponseView extends View {
  static properties = {
    responseId: { attribute: false },
    again: { attribute: false },
    _stopping: { state: true },
  };

  constructor() {
    super();
    this.responseId = "";
    /** The question, if it may be asked again. */
    this.again = "";
    this._stopping = false;
    this._hadFocus = false;
    this._name = "";
    /** Found before it is drawn. @type {import("../../uamp/live-response.js").LiveResponse} */
    this._response = /** @type {import("../../uamp/live-response.js").LiveResponse} */ (
      /** @type {unknown} */ (undefined)
    );
    this._live = new Selected(this, pageAt, (state) => state.live.get(this.responseId));
    this._own = new Selected(this, pageAt, (state) => state.own.has(this.responseId));
    this._isToPay = new Selected(this, pageAt, (state) =>
      state.payments.some(({ responseId }) => responseId === this.responseId),
    );
  }

  /** Many deltas may arrive within one animation frame: render once. */
  async scheduleUpdate() {
    if (this.hasUpdated && this._response?.status === "running")
      await new Promise(requestAnimationFrame);
    return super.scheduleUpdate();
  }

  willUpdate() {
    // The state may drop the answer before the page drops this view.
    this._response = pageAt(this).state.live.get(this.responseId)?.response || this._response;
    this._name = this._response.agent || gettext("Agent");
    this.className = "message from-agent is-live";
    this.setAttribute("role", "article");
    this.setAttribute(
      "aria-label",
      this._response.status === "running"
        ? interpolate(gettext("%(name)s is answering"), { name: this._name })
        : interpolate(gettext("%(name)s's answer"), { name: this._name }),
    );
    Object.assign(this.dataset, { testid: "live-response", status: this._response.status });
    this._hadFocus = this.contains(document.activeElement);
  }

  render() {
    const { _response: response, _name: name } = this;
    const isRunning = response.status === "running";
    const waitsFor =
      response.waitsFor || this._isToPay.value
        ? paymentText(
            response.waitsFor,
            memberName(pageAt(this).state.chatId, response.waitsForUser),
          )
        : "";
    return html` <div class="message-side">${face(name, "agent")}</div>
      <div class="message-main">
        <div class="live-head">
          ${messageHead(name, "agent", null, response.transport)}
          <button
            type="button"
            class="link stop-answer"
            data-testid="stop-answer"
            aria-label=${interpolate(gettext("Stop %(name)s's answer"), { name })}
            ?hidden=${!isRunning || pageAt(this).state.own.has(this.responseId)}
            ?disabled=${this._stopping}
            @click=${() => this._stop()}
          >
            ${gettext("Stop")}
          </button>
        </div>
        <div class="bubble">
          <div class="parts">
            ${partsTemplate(response.parts, { isLive: true, isRunning, agent: name })}
          </div>
          <div class="dots" ?hidden=${!isRunning || Boolean(waitsFor) || response.parts.length > 0}>
            ${dots}
          </div>
          ${
            isRunning && waitsFor
              ? html`<p class="message-waiting" data-testid="waits-for">
                  ${glyph("wallet")}<span>${waitsFor}</span>
                </p>`
              : ""
          }
          ${isRunning ? "" : endingLine(response.status, response.reason, this.again)}
        </div>
        <div class="message-foot is-reserved"></div>
      </div>`;
  }

  updated() {
    // When the button disappears, keep the focus in the chat.
    if (
      this._hadFocus &&
      document.activeElement instanceof HTMLElement &&
      document.activeElement.hidden
    )
      this._focusChat();
  }

  _focusChat() {
    /** @type {HTMLElement|null} */ (this.closest("[role=log]"))?.focus({ preventScroll: true });
  }

  _stop() {
    this._focusChat();
    this._stopping = true;
    this.dispatchEvent(new CustomEvent("stop-answer", { bubbles: true, detail: this._response }));
  }
}
customElements.define("live-response", LiveResponseView);
