/** Shows when the connection is lost and when it is tried again; a button tries at once. */

import { client } from "./context.js";
import { announce, h } from "./dom.js";

/** A connection that comes back this fast is not worth a line that moves the page. */
const QUIET_MS = 700;

class ConnectionBanner extends HTMLElement {
  connectedCallback() {
    this.dataset.testid = "banner";
    this.hidden = true;
    this.setAttribute("role", "region");
    this.setAttribute("aria-label", "Connection");
    this._text = h("span", {});
    this._button = h("button", { type: "button", class: "button" }, "Try now");
    this._button.addEventListener("click", () => {
      if (client.state.phase === "refused") location.reload(); // Leads to the login page.
      else client.retryNow();
    });
    this.append(this._text, this._button);
    client.addEventListener("state", () => this._changed());
  }

  _changed() {
    const { phase } = client.state;
    this.dataset.phase = phase;
    clearTimeout(this._timer);
    clearInterval(this._ticks);
    if (phase === "open") {
      if (!this.hidden) announce("Connected again.");
      this.hidden = true;
    } else if (phase === "refused") this._appear();
    else if (this.hidden) this._timer = setTimeout(() => this._appear(), QUIET_MS);
    else this._tick();
  }

  _appear() {
    this.hidden = false;
    this._tick();
    announce(this._text.textContent);
  }

  _tick() {
    clearInterval(this._ticks);
    this._show();
    this._ticks = setInterval(() => this._show(), 1000);
  }

  _show() {
    const { phase, attempt, retryAt } = client.state;
    const seconds = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
    const tries = attempt > 1 ? ` (attempt ${attempt})` : "";
    this._text.textContent = {
      connecting: `Connecting…${tries}`,
      waiting: `Connection lost. Next try in ${seconds} s${tries}. What you write is kept.`,
      offline: "You are offline. What you write is kept and sent when you are back.",
      refused: "You are signed out. What you wrote is kept.",
      closed: "Not connected.",
    }[phase];
    this._button.textContent = phase === "refused" ? "Sign in" : "Try now";
    this._button.hidden = phase === "connecting";
  }
}
customElements.define("connection-banner", ConnectionBanner);
