/** The form of the user's profile: name, status, picture, emoji and colour. */

import { isApiError } from "../api.js";
import { api, me, store } from "../context.js";
import { announce } from "../dom.js";
import { View, faceOf } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { colourChoice } from "./avatar-picker.js";
import { people } from "./looks.js";
import { squareOf } from "./square.js";
import { gettext, interpolate } from "../words.js";

/** @typedef {import("./looks.js").Profile} Profile */

class ProfileForm extends View {
  static properties = {
    _profile: { state: true },
    _error: { state: true },
    _busy: { state: true },
  };

  constructor() {
    super();
    this._profile = { ...people.profile(me.username) };
    this._error = "";
    this._busy = false;
  }

  render() {
    const { _profile: profile } = this;
    return html`<form
      class="profile-form"
      @submit=${(/** @type {SubmitEvent} */ event) => this._save(event)}
    >
      <div class="profile-head">
        <span class="profile-face">${faceOf(me.username, profile)}</span>
        <div class="profile-picture">
          <button
            type="button"
            class="button"
            ?disabled=${this._busy}
            @click=${() =>
              /** @type {HTMLInputElement} */ (this.querySelector("input[type=file]")).click()}
          >
            ${profile.avatar_url ? gettext("Change picture") : gettext("Upload a picture")}
          </button>
          <input
            type="file"
            accept="image/png,image/jpeg,image/webp,image/gif"
            hidden
            tabindex="-1"
            data-testid="picture-input"
            @change=${(/** @type {Event} */ event) => this._upload(event)}
          />
          ${
            profile.avatar_url
              ? html`<button
                  type="button"
                  class="button button-quiet"
                  ?disabled=${this._busy}
                  @click=${() => this._removePicture()}
                >
                  ${gettext("Remove picture")}
                </button>`
              : nothing
          }
          <p class="quiet">
            ${gettext("Cropped to a square. Visible to everyone on this server.")}
          </p>
        </div>
      </div>
      <label for="profile-name">${gettext("Display name")}</label>
      <input
        class="field"
        id="profile-name"
        name="display_name"
        maxlength="160"
        autocomplete="nickname"
        dir="auto"
        placeholder=${me.username}
        .value=${profile.display_name ?? ""}
        aria-describedby="profile-name-note"
        aria-invalid=${this._error ? "true" : nothing}
        @input=${(/** @type {Event} */ event) =>
          this._edit("display_name", /** @type {HTMLInputElement} */ (event.target).value)}
      />
      <p class="quiet" id="profile-name-note">
        ${interpolate(gettext("Others mention you as @%(name)s."), { name: me.username })}
      </p>
      <label for="profile-status">${gettext("Status")}</label>
      <input
        class="field"
        id="profile-status"
        name="status_text"
        maxlength="400"
        autocomplete="off"
        dir="auto"
        placeholder=${gettext("On holiday until Monday")}
        .value=${profile.status_text ?? ""}
        @input=${(/** @type {Event} */ event) =>
          this._edit("status_text", /** @type {HTMLInputElement} */ (event.target).value)}
      />
      <label for="profile-emoji">${gettext("Emoji instead of initials")}</label>
      <input
        class="field"
        id="profile-emoji"
        name="avatar_emoji"
        maxlength="32"
        autocomplete="off"
        .value=${profile.avatar_emoji ?? ""}
        @input=${(/** @type {Event} */ event) =>
          this._edit("avatar_emoji", /** @type {HTMLInputElement} */ (event.target).value.trim())}
      />
      ${colourChoice("avatar_colour", profile.avatar_colour ?? "", (/** @type {string} */ colour) =>
        this._edit("avatar_colour", colour),
      )}
      ${this._error ? html`<p class="dialog-error" role="alert">${this._error}</p>` : nothing}
      <div>
        <button
          type="submit"
          class="button button-primary"
          data-testid="save-profile"
          ?disabled=${this._busy}
        >
          ${gettext("Save profile")}
        </button>
      </div>
    </form>`;
  }

  /** @param {keyof Profile} field @param {string} value */
  _edit(field, value) {
    this._profile = { ...this._profile, [field]: value };
  }

  /** @param {SubmitEvent} event */
  _save(event) {
    event.preventDefault();
    const { display_name, status_text, avatar_emoji, avatar_colour } = this._profile;
    const body = { display_name, status_text, avatar_emoji, avatar_colour };
    return this._do(() => api.send("PATCH", "/me", body), gettext("Profile saved."), true);
  }

  /** @param {Event} event */
  _upload(event) {
    const field = /** @type {HTMLInputElement} */ (event.target);
    const [file] = field.files ?? [];
    field.value = "";
    if (!file) return undefined;
    return this._do(async () => {
      const form = new FormData();
      form.append("file", await squareOf(file), "picture");
      return api.sendForm("PUT", "/me/picture", form);
    }, gettext("Picture saved."));
  }

  _removePicture() {
    return this._do(() => api.send("DELETE", "/me/picture"), gettext("Picture removed."));
  }

  /**
   * @param {() => Promise<Profile & {name: string, username: string}>} work resolves to the
   *   current profile
   * @param {string} said
   * @param {boolean} [isWhole] whether all fields were saved
   */
  async _do(work, said, isWhole = false) {
    this._error = "";
    this._busy = true;
    try {
      const saved = await work();
      people.learn([saved]);
      // Keep unsaved input.
      this._profile = isWhole ? { ...saved } : { ...this._profile, avatar_url: saved.avatar_url };
      announce(said);
      store.refresh();
    } catch (problem) {
      if (!isApiError(problem)) throw problem;
      this._error = problem.message;
    } finally {
      this._busy = false;
    }
  }
}
customElements.define("profile-form", ProfileForm);
