/** The settings of the signed-in person: profile, appearance, writing, privacy, notifications, account. */

import { me, settings } from "../context.js";
import { announce } from "../dom.js";
import { askPermission, permission } from "../notifications/notifier.js";
import { View, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import "./profile-form.js";
import { gettext, interpolate } from "../words.js";

const SECTIONS = { profile: gettext("Profile"), appearance: gettext("Appearance"), writing: gettext("Writing"), privacy: gettext("Privacy"), notifications: gettext("Notifications"), account: gettext("Account") };
const THEMES = { system: gettext("As the system"), light: gettext("Light"), dark: gettext("Dark") };
const DENSITIES = { comfortable: gettext("Comfortable"), compact: gettext("Compact") };
const SEND_KEYS = { enter: gettext("Enter sends, Shift+Enter begins a line"), ctrl_enter: gettext("Ctrl+Enter sends, Enter begins a line") };
const LEVELS = { all: gettext("All messages"), mentions: gettext("Mentions and direct messages"), none: gettext("Nothing") };
const PERMISSIONS = {
  unsupported: gettext("This browser cannot show notifications here. They need an address with https."),
  default: gettext("This browser has not been allowed to notify yet."),
  denied: gettext("This browser blocks notifications of this page. Allow them in the browser's settings for this site."),
  granted: gettext("This browser notifies you while a tab of the chats is open."),
};
const QUIET = { quiet_from: "22:00", quiet_until: "07:00" };
const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

class SettingsDialog extends View {
  static properties = { _section: { state: true }, _error: { state: true }, _isOpen: { state: true }, _opened: { state: true } };

  constructor() {
    super();
    this._section = "profile";
    this._error = "";
    this._isOpen = false;
  }

  connectedCallback() {
    super.connectedCallback();
    settings.addEventListener("change", () => this.requestUpdate());
    addEventListener("notification-permission", () => this.requestUpdate());
    addEventListener("open-settings", (event) => this.open(event.detail || "profile"));
  }

  /** @param {string} section of SECTIONS */
  async open(section) {
    this._section = section in SECTIONS ? section : "profile";
    this._error = "";
    this._isOpen = true;
    await this.updateComplete;
    const dialog = this.querySelector("dialog");
    if (!dialog.open) dialog.showModal();
    this.querySelector("[role=tab][aria-selected=true]").focus();
  }

  render() {
    return html`<dialog class="dialog is-wide settings" aria-labelledby="person-settings-title" data-testid="settings-dialog" @close=${() => { this._isOpen = false; }}>
      ${this._isOpen ? html`<div class="dialog-form">
        <header><h2 id="person-settings-title">${gettext("Settings")}</h2>
          <button type="button" class="icon-button" aria-label=${gettext("Close")} title=${gettext("Close")} @click=${() => this.querySelector("dialog").close()}>${glyph("close")}</button></header>
        <div class="settings-body">
          <div class="settings-tabs" role="tablist" aria-label=${gettext("Sections")} aria-orientation="vertical" @keydown=${(event) => this._key(event)}>${
            Object.entries(SECTIONS).map(([section, label]) => html`<button type="button" class="settings-tab" role="tab" id="settings-tab-${section}" aria-controls="settings-panel"
              aria-selected=${String(section === this._section)} tabindex=${section === this._section ? 0 : -1} @click=${() => this._show(section)}>${label}</button>`)}</div>
          <div class="settings-panel" role="tabpanel" id="settings-panel" tabindex="0" aria-labelledby="settings-tab-${this._section}">
            ${this._error ? html`<p class="dialog-error" role="alert">${this._error}</p>` : nothing}${this[`_${this._section}`]()}</div>
        </div></div>` : nothing}
    </dialog>`;
  }

  _profile() {
    return html`<profile-form></profile-form>`;
  }

  _appearance() {
    return html`${this._choice("theme", gettext("Theme"), THEMES)}${this._choice("density", gettext("Density"), DENSITIES)}`;
  }

  _writing() {
    return this._choice("send_key", gettext("Send key"), SEND_KEYS);
  }

  _privacy() {
    return html`
      ${this._switch("read_receipts", gettext("Others see how far I have read"), gettext("When this is off, you read in private. You still see how far others have read."))}
      ${this._switch("typing_notices", gettext("Others see that I am typing"), "")}`;
  }

  _notifications() {
    const { values } = settings;
    const state = permission();
    const isQuiet = values.quiet_from !== "";
    return html`
      <div class="setting-note" data-testid="notification-state"><p>${PERMISSIONS[state]}</p>${
        state === "default" ? html`<button type="button" class="button button-primary" @click=${() => askPermission()}>${gettext("Allow notifications")}</button>` : nothing}</div>
      ${this._choice("notifications", gettext("Notify me of"), LEVELS, gettext("A chat may have a level of its own, in its settings."))}
      ${this._switch("notification_text", gettext("Show who wrote and what"), gettext("When this is off, a notification says only that there is a message."))}
      ${this._switch("notification_sound", gettext("Sound"), "")}
      <label class="setting"><span class="picker-text"><b>${gettext("Quiet hours")}</b><small>${gettext("No notifications between these times")}</small></span>
        <input type="checkbox" role="switch" name="quiet" .checked=${isQuiet} @change=${(event) => this._quiet(event.target.checked)}></label>
      ${isQuiet ? html`<div class="quiet-hours">
        ${this._time("quiet_from", gettext("From"))}${this._time("quiet_until", gettext("Until"))}
        <p class="quiet">${interpolate(gettext("By the clock of %(zone)s."), { zone: values.time_zone.replace("_", " ") })}
          ${values.time_zone === zone() ? nothing : html`<button type="button" class="link" @click=${() => this._change({ time_zone: zone() })}>${interpolate(gettext("Use %(zone)s"), { zone: zone().replace("_", " ") })}</button>`}</p>
      </div>` : nothing}`;
  }

  _account() {
    return html`<p>${interpolate(gettext("You are signed in as %(name)s."), { name: me.username })}</p>
      <ul class="setting-links">
        <li><a class="button" href="/account/password">${gettext("Change password")}</a></li>
        <li><a class="button" href="/account#devices-title">${gettext("Sign out everywhere else")}</a></li>
        <li><a class="button" href="/account#keys-title">${gettext("API keys")}</a></li>
        <li><a class="button" href="/money">${gettext("Money")}</a></li>
      </ul>`;
  }

  _choice(name, label, choices, note = "") {
    const id = `setting-${name}`;
    return html`<fieldset class="setting-choice" aria-describedby=${note ? `${id}-note` : nothing}><legend>${label}</legend>${note ? html`<p class="quiet" id="${id}-note">${note}</p>` : nothing}
      ${Object.entries(choices).map(([value, text]) => html`<label class="setting-option"><input type="radio" name=${id} value=${value} .checked=${settings.values[name] === value}
        @change=${() => this._change({ [name]: value })}><span>${text}</span></label>`)}</fieldset>`;
  }

  _switch(name, label, note) {
    return html`<label class="setting"><span class="picker-text"><b>${label}</b>${note ? html`<small>${note}</small>` : nothing}</span>
      <input type="checkbox" role="switch" name=${name} .checked=${settings.values[name]} @change=${(event) => this._change({ [name]: event.target.checked })}></label>`;
  }

  _time(name, label) {
    return html`<label>${label}<input type="time" class="field" name=${name} required .value=${settings.values[name]}
      @change=${(event) => event.target.value && this._change({ [name]: event.target.value })}></label>`;
  }

  _quiet(isOn) {
    return this._change(isOn ? { ...QUIET, time_zone: settings.values.time_zone || zone() } : { quiet_from: "", quiet_until: "" });
  }

  async _change(part) {
    this._error = "";
    try {
      await settings.change(part);
      announce(gettext("Saved."));
    } catch (problem) {
      if (problem.name !== "ApiError") throw problem;
      this._error = problem.message;
    }
    // A control that was refused shows what holds.
    this.requestUpdate();
  }

  _show(section) {
    this._section = section;
    this._error = "";
  }

  _key(event) {
    const names = Object.keys(SECTIONS);
    const at = names.indexOf(this._section);
    const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this._show(names[(to + names.length) % names.length]);
    this.updateComplete.then(() => this.querySelector("[role=tab][aria-selected=true]").focus());
  }
}
customElements.define("settings-dialog", SettingsDialog);
