/** An answer while it is being given, and a turn while it is being sent. */

import { avatar, h, icon } from "./dom.js";
import { endingLine, messageHead } from "./message.js";
import { PartList } from "./parts.js";

class LiveResponseView extends HTMLElement {
  /** @param {import("../uamp/live-response.js").LiveResponse} response */
  show(response) {
    const name = response.agent || "Agent";
    if (this._name !== name) this._build(name);
    const running = response.status === "running";
    this._parts.update(response.parts, running);
    this._dots.hidden = !running || response.parts.length > 0;
    this.dataset.status = response.status;
    if (!running && !this._ending) {
      this._ending = endingLine(response.status, response.error?.message);
      if (this._ending) this._bubble.append(this._ending);
    }
  }

  _build(name) {
    this._name = name;
    this.className = "message from-agent is-live";
    this.dataset.testid = "live-response";
    this.setAttribute("role", "article");
    this.setAttribute("aria-label", `${name} is answering`);
    this._parts ||= new PartList(true);
    this._dots ||= h("div", { class: "dots" }, h("i"), h("i"), h("i"));
    this._bubble = h("div", { class: "bubble" }, this._parts.element, this._dots);
    this.replaceChildren(
      h("div", { class: "message-side" }, avatar(name, "agent")),
      h("div", { class: "message-main" }, messageHead(name, "agent"), this._bubble),
    );
  }
}
customElements.define("live-response", LiveResponseView);

const TURN_STATES = {
  waiting: "Waiting for the connection",
  sent: "Sending…",
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
