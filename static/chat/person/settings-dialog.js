/**
 * The settings of the signed-in person: profile, appearance, writing, privacy, notifications,
 * account.
 */

import { isApiError } from "../api.js";
import { settings } from "../context.js";
import { announce } from "../dom.js";
import { askPermission, permission } from "../notifications/notifier.js";
import { View, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import "../notifications/push-devices.js";
import { accountLinks } from "./account-links.js";
import { languages } from "./languages.js";
import "./profile-form.js";
import { gettext, interpolate } from "../words.js";

const SECTIONS = {
  profile: gettext("Profile"),
  appearance: gettext("Appearance"),
  writing: gettext("Writing"),
  privacy: gettext("Privacy"),
  notifications: gettext("Notifications"),
  account: gettext("Account"),
};
const THEMES = { system: gettext("System"), light: gettext("Light"), dark: gettext("Dark") };
const DENSITIES = { comfortable: gettext("Comfortable"), compact: gettext("Compact") };
const SEND_KEYS = {
  enter: gettext("Enter sends, Shift+Enter starts a new line"),
  ctrl_enter: gettext("Ctrl+Enter sends, Enter starts a new line"),
};
const LEVELS = {
  all: gettext("All messages"),
  mentions: gettext("Mentions and direct messages"),
  none: gettext("Nothing"),
};
const PERMISSIONS = {
  unsupported: gettext("This browser can't show notifications here. They need an https address."),
  default: gettext("Notifications aren't enabled in this browser."),
  denied: gettext(
    "Notifications are blocked. Allow them in your browser's settings for this site.",
  ),
  granted: gettext("Notifications are on in this browser."),
};
const QUIET = { quiet_from: "22:00", quiet_until: "07:00" };
const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** @typedef {import("./settings.js").Values} Values */
/** @typedef {keyof typeof SECTIONS} Section */
/** The settings that are switches, and those that have a textual value. */
/**
 * @typedef {"read_receipts"|"follow_answers"|"typing_notices"|"notification_text"|
 *   "notification_sound"|"mail_unread"} Switch
 */
/** @typedef {Exclude<keyof Values, Switch>} Worded */

/** @param {string} name @returns {name is Section} */
const isSection = (name) => name in SECTIONS;

class SettingsDialog extends View {
  static properties = {
    _section: { state: true },
    _error: { state: true },
    _isOpen: { state: true },
    _opened: { state: true },
  };

  constructor() {
    super();
    /** @type {Section} */
    this._section = "profile";
    this._error = "";
    this._isOpen = false;
  }

  connectedCallback() {
    super.connectedCallback();
    settings.addEventListener("change", () => this.requestUpdate());
    addEventListener("notification-permission", () => this.requestUpdate());
    addEventListener("open-settings", (event) =>
      this.open(/** @type {CustomEvent<string|null>} */ (event).detail || "profile"),
    );
  }

  /** @param {string} section of SECTIONS */
  async open(section) {
    this._section = isSection(section) ? section : "profile";
    this._error = "";
    this._isOpen = true;
    await this.updateComplete;
    if (!this._dialog.open) this._dialog.showModal();
    this._focusTab();
  }

  render() {
    return html`<dialog
      class="dialog is-wide settings"
      aria-labelledby="person-settings-title"
      data-testid="settings-dialog"
      @close=${() => {
        this._isOpen = false;
      }}
    >
      ${
        this._isOpen
          ? html`<div class="dialog-form">
              <header>
                <h2 id="person-settings-title">${gettext("Settings")}</h2>
                <button
                  type="button"
                  class="icon-button"
                  aria-label=${gettext("Close")}
                  title=${gettext("Close")}
                  @click=${() => this._dialog.close()}
                >
                  ${glyph("close")}
                </button>
              </header>
              <div class="settings-body">
                <div
                  class="settings-tabs"
                  role="tablist"
                  aria-label=${gettext("Sections")}
                  aria-orientation="vertical"
                  @keydown=${(/** @type {KeyboardEvent} */ event) => this._key(event)}
                >
                  ${Object.entries(SECTIONS).map(
                    ([section, label]) =>
                      html`<button
                        type="button"
                        class="settings-tab"
                        role="tab"
                        id="settings-tab-${section}"
                        aria-controls="settings-panel"
                        aria-selected=${String(section === this._section)}
                        tabindex=${section === this._section ? 0 : -1}
                        @click=${() => this._show(section)}
                      >
                        ${label}
                      </button>`,
                  )}
                </div>
                <div
                  class="settings-panel"
                  role="tabpanel"
                  id="settings-panel"
                  tabindex="0"
                  aria-labelledby="settings-tab-${this._section}"
                >
                  ${
                    this._error
                      ? html`<p class="dialog-error" role="alert">${this._error}</p>`
                      : nothing
                  }${this._panel(this._section)}
                </div>
              </div>
            </div>`
          : nothing
      }
    </dialog>`;
  }

  /** @returns {HTMLDialogElement} */
  get _dialog() {
    return /** @type {HTMLDialogElement} */ (this.querySelector("dialog"));
  }

  _focusTab() {
    /** @type {HTMLElement|null} */ (this.querySelector("[role=tab][aria-selected=true]"))?.focus();
  }

  /** @param {Section} section */
  _panel(section) {
    const panels = {
      profile: () => this._profile(),
      appearance: () => this._appearance(),
      writing: () => this._writing(),
      privacy: () => this._privacy(),
      notifications: () => this._notifications(),
      account: accountLinks,
    };
    return panels[section]();
  }

  _profile() {
    return html`<profile-form></profile-form>`;
  }

  _appearance() {
    return html`${this._choice("theme", gettext("Theme"), THEMES)}${this._choice(
      "density",
      gettext("Density"),
      DENSITIES,
    )}
    ${this._switch(
      "follow_answers",
      gettext("Follow an answer as it's written"),
      gettext("When off, the page stops with your question at the top."),
    )}${languages()}`;
  }

  _writing() {
    return this._choice("send_key", gettext("Send key"), SEND_KEYS);
  }

  _privacy() {
    return html` ${this._switch(
      "read_receipts",
      gettext("Show others what I've read"),
      gettext("When off, others can't see what you've read. You still see what they have read."),
    )}
    ${this._switch("typing_notices", gettext("Show when I'm typing"), "")}`;
  }

  _notifications() {
    const { values } = settings;
    const state = permission();
    const isQuiet = values.quiet_from !== "";
    return html` <div class="setting-note" data-testid="notification-state">
        <p>${PERMISSIONS[state]}</p>
        ${
          state === "default"
            ? html`<button
                type="button"
                class="button button-primary"
                @click=${() => askPermission()}
              >
                ${gettext("Allow notifications")}
              </button>`
            : nothing
        }
      </div>
      <push-devices></push-devices>
      ${this._choice(
        "notifications",
        gettext("Notify me about"),
        LEVELS,
        gettext("You can override this in each chat's settings."),
      )}
      ${this._switch(
        "notification_text",
        gettext("Show who wrote and what"),
        gettext("When off, a notification only says that there is a message."),
      )}
      ${this._switch("notification_sound", gettext("Sound"), "")}
      ${this._switch(
        "mail_unread",
        gettext("Email me unread messages"),
        gettext(
          "Mentions and direct messages that stay unread for 15 minutes, at most once an hour. Needs a confirmed email address.",
        ),
      )}
      <label class="setting"
        ><span class="picker-text"
          ><b>${gettext("Quiet hours")}</b
          ><small>${gettext("No notifications between these times")}</small></span
        >
        <input
          type="checkbox"
          role="switch"
          name="quiet"
          .checked=${isQuiet}
          @change=${(/** @type {Event} */ event) =>
            this._quiet(/** @type {HTMLInputElement} */ (event.target).checked)}
      /></label>
      ${
        isQuiet
          ? html`<div class="quiet-hours">
              ${this._time("quiet_from", gettext("From"))}${this._time(
                "quiet_until",
                gettext("Until"),
              )}
              <p class="quiet">
                ${interpolate(gettext("Times are in %(zone)s."), {
                  zone: values.time_zone.replace("_", " "),
                })}
                ${
                  values.time_zone === zone()
                    ? nothing
                    : html`<button
                        type="button"
                        class="link"
                        @click=${() => this._change({ time_zone: zone() })}
                      >
                        ${interpolate(gettext("Use %(zone)s"), { zone: zone().replace("_", " ") })}
                      </button>`
                }
              </p>
            </div>`
          : nothing
      }`;
  }

  /**
   * @param {Worded} name
   * @param {string} label
   * @param {Record<string, string>} choices by value
   * @param {string} [note]
   */
  _choice(name, label, choices, note = "") {
    const id = `setting-${name}`;
    return html`<fieldset class="setting-choice" aria-describedby=${note ? `${id}-note` : nothing}>
      <legend>${label}</legend>
      ${note ? html`<p class="quiet" id="${id}-note">${note}</p>` : nothing}
      ${Object.entries(choices).map(
        ([value, text]) =>
          html`<label class="setting-option"
            ><input
              type="radio"
              name=${id}
              value=${value}
              .checked=${settings.values[name] === value}
              @change=${() => this._change({ [name]: value })}
            /><span>${text}</span></label
          >`,
      )}
    </fieldset>`;
  }

  /** @param {Switch} name @param {string} label @param {string} note */
  _switch(name, label, note) {
    return html`<label class="setting"
      ><span class="picker-text"
        ><b>${label}</b>${note ? html`<small>${note}</small>` : nothing}</span
      >
      <input
        type="checkbox"
        role="switch"
        name=${name}
        .checked=${settings.values[name]}
        @change=${(/** @type {Event} */ event) =>
          this._change({ [name]: /** @type {HTMLInputElement} */ (event.target).checked })}
    /></label>`;
  }

  /** @param {Worded} name @param {string} label */
  _time(name, label) {
    return html`<label
      >${label}<input
        type="time"
        class="field"
        name=${name}
        required
        .value=${settings.values[name]}
        @change=${(/** @type {Event} */ event) =>
          /** @type {HTMLInputElement} */ (event.target).value &&
          this._change({ [name]: /** @type {HTMLInputElement} */ (event.target).value })}
    /></label>`;
  }

  /** @param {boolean} isOn */
  _quiet(isOn) {
    return this._change(
      isOn
        ? { ...QUIET, time_zone: settings.values.time_zone || zone() }
        : { quiet_from: "", quiet_until: "" },
    );
  }

  /** @param {Partial<Values>} part */
  async _change(part) {
    this._error = "";
    try {
      await settings.change(part);
      announce(gettext("Saved."));
    } catch (problem) {
      if (!isApiError(problem)) throw problem;
      this._error = problem.message;
    }
    // After a refusal, the control returns to the current value.
    this.requestUpdate();
  }

  /** @param {string} section */
  _show(section) {
    if (isSection(section)) this._section = section;
    this._error = "";
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const names = Object.keys(SECTIONS);
    const at = names.indexOf(this._section);
    const to = {
      ArrowDown: at + 1,
      ArrowRight: at + 1,
      ArrowUp: at - 1,
      ArrowLeft: at - 1,
      Home: 0,
      End: names.length - 1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this._show(names[(to + names.length) % names.length]);
    this.updateComplete.then(() => this._focusTab());
  }
}
customElements.define("settings-dialog", SettingsDialog);
