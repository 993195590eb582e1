/**
 * Asks for permission to notify, once the user has sent a message. The banner floats, so that
 * nothing moves.
 */

import { announce } from "../dom.js";
import { View } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { askPermission, forgetQuestion, mayAsk } from "./notifier.js";
import { gettext } from "../words.js";

class NotificationBanner extends View {
  constructor() {
    super();
    this._hasSent = false;
    this._onAnswer = () => this.requestUpdate();
    this._onSent = () => {
      this._hasSent = true;
      this.requestUpdate();
    };
  }

  connectedCallback() {
    super.connectedCallback();
    addEventListener("notification-permission", this._onAnswer);
    addEventListener("message-sent", this._onSent);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    removeEventListener("notification-permission", this._onAnswer);
    removeEventListener("message-sent", this._onSent);
  }

  render() {
    if (!this._hasSent || !mayAsk()) return nothing;
    return html`<div
      class="notice-card"
      role="group"
      aria-label=${gettext("Notifications")}
      data-testid="notification-banner"
    >
      <p>${gettext("Get notified about mentions and direct messages?")}</p>
      <div>
        <button type="button" class="button button-primary" @click=${() => this._ask()}>
          ${gettext("Turn on")}
        </button>
        <button type="button" class="button button-quiet" @click=${() => this._close()}>
          ${gettext("Not now")}
        </button>
      </div>
    </div>`;
  }

  async _ask() {
    const answer = await askPermission();
    announce(
      answer === "granted"
        ? gettext("Notifications are on.")
        : gettext("Notifications stay off. You can change this in Settings."),
    );
  }

  _close() {
    forgetQuestion();
    this.requestUpdate();
    announce(gettext("Notifications stay off. You can change this in Settings."));
  }
}
customElements.define("notification-banner", NotificationBanner);
