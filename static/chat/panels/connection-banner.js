/** Shows when the connection was lost and when it is retried; a button retries at once. */

import { client, store } from "../context.js";
import { announce } from "../dom.js";
import { clockTime, daysAgo, fullTime } from "../text/time.js";
import { View } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

/** A connection restored within this time is not worth a banner that moves the page. */
const QUIET_MS = 700;

/**
 * The text that says when the connection was lost.
 * @param {import("../../uamp/client.js").ConnectionState} state
 */
function sinceOf({ phase, lostAt = 0 }) {
  if (!lostAt || !["connecting", "waiting", "offline"].includes(phase)) return "";
  return ` ${interpolate(gettext("Disconnected since %(time)s."), {
    time: daysAgo(lostAt) === 0 ? clockTime(lostAt) : fullTime(lostAt),
  })}`;
}

/** @param {import("../../uamp/client.js").ConnectionState} state */
function textOf({ phase, attempt, retryAt, isRestart }) {
  const seconds = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
  const tries = attempt > 1 ? ` ${interpolate(gettext("(attempt %(attempt)s)"), { attempt })}` : "";
  return {
    open: "",
    connecting: gettext("Connecting…") + tries,
    waiting: isRestart
      ? interpolate(
          gettext(
            "The server is restarting. Reconnecting in %(seconds)s s%(tries)s. Your messages will be sent automatically.",
          ),
          { seconds, tries },
        )
      : interpolate(
          gettext(
            "Connection lost. Reconnecting in %(seconds)s s%(tries)s. Your messages are kept.",
          ),
          { seconds, tries },
        ),
    offline: gettext("You're offline. Your messages will be sent when you're back online."),
    refused: gettext("You're signed out."),
    closed: gettext("Not connected."),
  }[phase];
}

/**
 * The note that the page shows this device's copy of the chats.
 * @param {import("../../uamp/client.js").ConnectionState} state
 */
const keptOf = ({ phase }) =>
  store.hasList && !store.loaded && ["connecting", "waiting", "offline"].includes(phase)
    ? ` ${gettext("This is the chat as you last saw it.")}`
    : "";

class ConnectionBanner extends View {
  static properties = { state: { attribute: false } };

  constructor() {
    super();
    /**
     * The state to show instead of the connection's.
     * @type {import("../../uamp/client.js").ConnectionState|null}
     */
    this.state = null;
    this._timer = 0;
    this._ticks = 0;
  }

  connectedCallback() {
    super.connectedCallback();
    this.dataset.testid = "banner";
    this.hidden = !this.state;
    this.setAttribute("role", "region");
    this.setAttribute("aria-label", gettext("Connection"));
    if (this.state) return;
    client.addEventListener("state", () => this._changed());
    store.addEventListener("load-error", () => this.requestUpdate());
  }

  render() {
    const state = this.state ?? client.state;
    const isRefused = state.phase === "refused";
    return html`<span>${textOf(state)}${sinceOf(state)}${keptOf(state)}</span
      ><button
        type="button"
        class="button"
        ?hidden=${state.phase === "connecting"}
        @click=${() => this._try()}
      >
        ${isRefused ? gettext("Sign in") : gettext("Try now")}
      </button>`;
  }

  _try() {
    if (client.state.phase === "refused")
      location.reload(); // Leads to the login page.
    else client.retryNow();
  }

  _changed() {
    const { phase, transport } = client.state;
    this.dataset.phase = phase;
    this.dataset.transport = transport;
    this.requestUpdate();
    clearTimeout(this._timer);
    clearInterval(this._ticks);
    if (phase === "open") {
      if (transport === "sse")
        announce(
          gettext(
            "Your network blocks WebSockets. Connected without one; the chat list may lag by a few seconds.",
          ),
        );
      else if (!this.hidden) announce(gettext("Connected again."));
      this.hidden = true;
    } else if (phase === "refused") this._appear();
    else if (this.hidden) this._timer = window.setTimeout(() => this._appear(), QUIET_MS);
    else this._tick();
  }

  _appear() {
    this.hidden = false;
    this._tick();
    announce(textOf(client.state));
  }

  _tick() {
    clearInterval(this._ticks);
    this.requestUpdate();
    this._ticks = window.setInterval(() => this.requestUpdate(), 1000);
  }
}
customElements.define("connection-banner", ConnectionBanner);
