/** The browsers that receive the user's notifications while no page is open, in the settings. */

import { isApiError } from "../api.js";
import { api } from "../context.js";
import { announce } from "../dom.js";
import { View } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { canPush, devices, isOff, ownId, remove, turnOn } from "./push.js";
import { gettext, interpolate } from "../words.js";

/** @typedef {import("./push.js").Device} Device */

class PushDevices extends View {
  static properties = { _devices: { state: true }, _error: { state: true } };

  constructor() {
    super();
    /** @type {Device[]} */
    this._devices = [];
    this._error = "";
    this._onAnswer = () => this._do(async () => {});
  }

  connectedCallback() {
    super.connectedCallback();
    addEventListener("push-devices", this._onAnswer);
    this._do(async () => {});
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    removeEventListener("push-devices", this._onAnswer);
  }

  render() {
    const mayTurnOn = canPush() && (isOff() || !this._devices.some(({ id }) => id === ownId()));
    if (this._devices.length === 0 && !mayTurnOn && !this._error) return nothing;
    return html`<section
      class="setting-choice"
      aria-labelledby="push-devices-title"
      data-testid="push-devices"
    >
      <h3 id="push-devices-title">${gettext("When no chat is open")}</h3>
      <p class="quiet">${gettext("These browsers get notifications until you sign out there.")}</p>
      ${this._error ? html`<p class="dialog-error" role="alert">${this._error}</p>` : nothing}
      <ul class="setting-links">
        ${this._devices.map(
          (device) =>
            html`<li>
              <span>${this._name(device)}</span>
              <button
                type="button"
                class="button button-quiet"
                aria-label=${interpolate(gettext("Remove %(device)s"), {
                  device: this._name(device),
                })}
                @click=${() => this._remove(device)}
              >
                ${gettext("Remove")}
              </button>
            </li>`,
        )}
      </ul>
      ${
        mayTurnOn
          ? html`<button type="button" class="button" @click=${() => this._do(() => turnOn(api))}>
              ${gettext("Turn on for this browser")}
            </button>`
          : nothing
      }
    </section>`;
  }

  /** @param {Device} device */
  _name({ id, device }) {
    return id === ownId() ? interpolate(gettext("%(device)s (this browser)"), { device }) : device;
  }

  /** @param {Device} device */
  async _remove(device) {
    await this._do(() => remove(api, device.id));
    announce(
      interpolate(gettext("%(device)s gets no more notifications."), { device: device.device }),
    );
  }

  /** Do something, then reload the list. @param {() => Promise<unknown>} act */
  async _do(act) {
    this._error = "";
    try {
      await act();
      this._devices = await devices(api);
    } catch (problem) {
      if (!isApiError(problem)) throw problem;
      this._error = problem.message;
    }
  }
}
customElements.define("push-devices", PushDevices);
