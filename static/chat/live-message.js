/** An answer while it is being given, and a turn while it is being sent. */

import { avatar, h, icon } from "./dom.js";
import { endingLine, messageHead } from "./message.js";
import { PartList } from "./parts.js";

/** Fires (bubbling) `stop-answer` with the response. */
class LiveResponseView extends HTMLElement {
  /** @param {import("../uamp/live-response.js").LiveResponse} response */
  show(response) {
    this._response = response;
    const name = response.agent || "Agent";
    const known = [name, response.transport].join();
    if (this._known !== known) this._build(known, name, response.transport);
    const running = response.status === "running";
    this._parts.update(response.parts, running);
    this._dots.hidden = !running || response.parts.length > 0;
    this.dataset.status = response.status;
    if (!running) this.offerStop(false);
    if (!running && !this._ending) {
      this._ending = endingLine(response.status, response.error?.message);
      if (this._ending) this._bubble.append(this._ending);
    }
  }

  /** Show or hide the button that stops this answer alone. */
  offerStop(isOffered) {
    const hide = !isOffered || this._response.status !== "running";
    if (hide && document.activeElement === this._stop) this._leaveStop();
    this._stop.hidden = hide;
  }

  /** The button goes away: the focus stays in the chat. */
  _leaveStop() {
    this.closest("[role=log]")?.focus({ preventScroll: true });
  }

  _stopped() {
    this._leaveStop();
    this._stop.disabled = true;
    this.dispatchEvent(new CustomEvent("stop-answer", { bubbles: true, detail: this._response }));
  }

  _build(known, name, transport) {
    this._known = known;
    this._stop = h(
      "button",
      {
        type: "button", class: "link stop-answer", "data-testid": "stop-answer", hidden: true,
        "aria-label": `Stop ${name}'s answer`, onclick: () => this._stopped(),
      },
      "Stop",
    );
    this.className = "message from-agent is-live";
    this.dataset.testid = "live-response";
    this.setAttribute("role", "article");
    this.setAttribute("aria-label", `${name} is answering`);
    this._parts ||= new PartList(true);
    this._dots ||= h("div", { class: "dots" }, h("i"), h("i"), h("i"));
    this._bubble = h("div", { class: "bubble" }, this._parts.element, this._dots);
    this.replaceChildren(
      h("div", { class: "message-side" }, avatar(name, "agent")),
      h("div", { class: "message-main" }, h("div", { class: "live-head" }, messageHead(name, "agent", null, transport), this._stop), this._bubble),
    );
  }
}
customElements.define("live-response", LiveResponseView);

const TURN_STATES = {
  waiting: "Waiting to be sent",
  sent: "Sending…",
  held: "The server does not take messages right now. This one is sent again by itself",
  failed: "Not sent",
};

class PendingTurn extends HTMLElement {
  /**
   * @param {import("../uamp/outbox.js").Turn} turn
   * @param {{retry: () => void, discard: () => void}} actions
   */
  show(turn, { retry, discard }) {
    this.className = "message is-mine is-pending from-user";
    this.dataset.testid = "pending";
    this.dataset.status = turn.state;
    const state = TURN_STATES[turn.state] + (turn.error ? `: ${turn.error}` : "");
    this.replaceChildren(
      h(
        "div", { class: "message-main" },
        h(
          "div", { class: "bubble" },
          turn.text && h("div", { class: "markdown is-plain", dir: "auto" }, turn.text),
          turn.attachments.map((a) => h("span", { class: "file-chip" }, icon("file"), a.filename)),
        ),
        h(
          "div", { class: "turn-state" }, turn.state === "failed" && icon("alert"), state,
          turn.state === "failed" && h("button", { type: "button", class: "link", onclick: retry }, "Try again"),
          turn.state === "failed" && h("button", { type: "button", class: "link", onclick: discard }, "Discard"),
        ),
      ),
    );
  }
}
customElements.define("pending-turn", PendingTurn);
