/**
 * A dialog for the settings of a chat: its name, description and picture, how its agents work, and
 * its notifications.
 */

import { api, store } from "../context.js";
import { announce } from "../dom.js";
import { colourChoice } from "../person/avatar-picker.js";
import { profileOfChat } from "../person/looks.js";
import { squareOf } from "../person/square.js";
import { faceOf } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { DialogView } from "./dialog-view.js";
import { gettext, interpolate } from "../words.js";

const LEVELS = {
  "": gettext("Use my default"),
  all: gettext("All messages"),
  mentions: gettext("Mentions and direct messages"),
  none: gettext("Nothing"),
};

/** @typedef {import("../store/chat.js").Chat} Chat */

export class ChatSettingsDialog extends DialogView {
  static properties = {
    _chat: { state: true },
    _avatar: { state: true },
    _address: { state: true },
  };

  constructor() {
    super();
    /** @type {Chat|null} */
    this._chat = null;
    /** An emoji, a colour or a picture; "" for one derived from the name. */
    this._avatar = "";
    /** @type {string|null} of the uploaded picture */
    this._address = null;
  }

  /** @param {Chat} chat */
  async open(chat) {
    Object.assign(this, {
      _chat: chat,
      _avatar: chat.avatar || "",
      _address: chat.avatar_url ?? null,
    });
    await this._show();
  }

  render() {
    const chat = this._chat;
    if (!chat) return html`<dialog class="dialog"></dialog>`;
    const may = (/** @type {string} */ right) => chat.rights.includes(right);
    const fixed = !may("describe");
    return html`<dialog class="dialog" aria-labelledby="settings-title" data-testid="chat-settings">
      <form
        class="dialog-form"
        @submit=${(/** @type {SubmitEvent} */ event) => this._save(event, chat)}
      >
        ${this._head("settings-title", gettext("Chat settings"))}
        <div class="dialog-body">
          <label for="settings-name">${gettext("Name")}</label>
          <input
            class="field"
            id="settings-name"
            name="title"
            maxlength="200"
            autocomplete="off"
            dir="auto"
            .value=${chat.title}
            placeholder=${store.nameOf(chat)}
            ?disabled=${fixed}
          />
          <label for="settings-about">${gettext("Description")}</label>
          <textarea
            class="field"
            id="settings-about"
            name="description"
            maxlength="2000"
            rows="3"
            dir="auto"
            .value=${chat.description ?? ""}
            ?disabled=${fixed}
          ></textarea>
          ${
            fixed
              ? html`<p class="quiet">
                  ${
                    chat.home
                      ? interpolate(
                          gettext("The name, description and picture are changed on %(server)s."),
                          { server: chat.home },
                        )
                      : gettext(
                          "Only owners and admins can change the name, description and picture.",
                        )
                  }
                </p>`
              : this._picture(chat)
          }
          ${
            may("rule")
              ? html`<label for="settings-hops"
                    >${gettext("Max. agent-to-agent answers in a row (0 = off)")}</label
                  >
                  <input
                    class="field"
                    id="settings-hops"
                    name="agent_hops"
                    type="number"
                    min="0"
                    max="20"
                    required
                    .value=${String(chat.agent_hops ?? 0)}
                  />`
              : ""
          }
          ${
            chat.home
              ? ""
              : html`<label class="picker-option"
                  ><span class="picker-text"
                    ><b>${gettext("Paused agents")}</b
                    ><small>${gettext("No agent answers until a member resumes them")}</small></span
                  >
                  <input type="checkbox" name="agents_quiet" .checked=${chat.agents_quiet}
                /></label>`
          }
          <h3>${gettext("Only for me")}</h3>
          <label class="picker-option"
            ><span class="picker-text"
              ><b>${gettext("Mute for me")}</b
              ><small
                >${gettext(
                  "No notifications, and unread messages stay grey unless they mention you. Others can't see this.",
                )}</small
              ></span
            >
            <input type="checkbox" name="muted" .checked=${chat.muted}
          /></label>
          <label for="settings-level">${gettext("Notify me about")}</label>
          <select class="field" id="settings-level" name="notifications">
            ${Object.entries(LEVELS).map(
              ([value, label]) =>
                html`<option value=${value} ?selected=${value === chat.notifications}>
                  ${label}
                </option>`,
            )}
          </select>
        </div>
        <footer>
          ${this._problem()}
          <button type="button" class="button" @click=${() => this._close()}>
            ${gettext("Cancel")}
          </button>
          <button type="submit" class="button button-primary" ?disabled=${this._isBusy}>
            ${gettext("Save")}
          </button>
        </footer>
      </form>
    </dialog>`;
  }

  /** An emoji, else a colour, else a picture. @param {Chat} chat */
  _picture(chat) {
    const { _avatar: avatar } = this;
    const isColour = avatar.startsWith("#");
    const emoji = avatar && !isColour && !avatar.startsWith("content:") ? avatar : "";
    const shown = avatar ? profileOfChat({ avatar, avatar_url: this._address }) : {};
    return html`<div class="profile-head">
        <span class="profile-face">${faceOf(store.nameOf(chat), shown, "chat", chat.id)}</span>
        <div class="profile-picture">
          <button
            type="button"
            class="button"
            ?disabled=${this._isBusy}
            @click=${() =>
              /** @type {HTMLInputElement} */ (this.querySelector("input[type=file]")).click()}
          >
            ${gettext("Upload a picture")}
          </button>
          <input
            type="file"
            accept="image/png,image/jpeg,image/webp,image/gif"
            hidden
            tabindex="-1"
            data-testid="chat-picture-input"
            @change=${this._upload}
          />
          ${
            avatar
              ? html`<button
                  type="button"
                  class="button button-quiet"
                  @click=${() => {
                    this._avatar = "";
                  }}
                >
                  ${gettext("Use the automatic icon")}
                </button>`
              : ""
          }
        </div>
      </div>
      <label for="settings-avatar">${gettext("Use an emoji as the icon")}</label>
      <input
        class="field"
        id="settings-avatar"
        maxlength="32"
        autocomplete="off"
        .value=${emoji}
        placeholder=${gettext("Automatic")}
        @input=${(/** @type {Event} */ event) => {
          this._avatar = /** @type {HTMLInputElement} */ (event.target).value.trim();
        }}
      />
      ${colourChoice("chat_colour", isColour ? avatar : "", (/** @type {string} */ colour) => {
        this._avatar = colour;
      })}`;
  }

  /** @param {Event} event */
  async _upload(event) {
    const field = /** @type {HTMLInputElement} */ (event.target);
    const [file] = field.files ?? [];
    field.value = "";
    if (!file) return;
    await this._attempt(async () => {
      const square = await squareOf(file);
      const stored = await api.upload(
        new File([square], file.name, { type: square.type }),
        () => {},
      ).done;
      this._avatar = `content:${stored.content_id}`;
      this._address = stored.url;
    });
  }

  /** @param {SubmitEvent} event @param {Chat} chat */
  async _save(event, chat) {
    event.preventDefault();
    const path = `/chats/${encodeURIComponent(chat.id)}`;
    const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const text = (/** @type {string} */ name) =>
      form.has(name) ? String(form.get(name)).trim() : undefined;
    const hops = form.get("agent_hops");
    /** The settings to save; disabled fields are left out. @type {Partial<Chat>} */
    const values = {
      agents_quiet: chat.home ? undefined : form.has("agents_quiet"),
      avatar: this._avatar,
      title: text("title"),
      description: text("description"),
      agent_hops: hops === null ? undefined : Number(hops),
    };
    const before = /** @type {Record<string, unknown>} */ ({ ...chat });
    const changes = Object.fromEntries(
      Object.entries(values).filter(
        ([name, value]) => value !== undefined && value !== (before[name] ?? ""),
      ),
    );
    const own = { muted: form.has("muted"), notifications: form.get("notifications") };
    await this._attempt(async () => {
      if (Object.keys(changes).length) await api.send("PATCH", path, changes);
      if (own.muted !== chat.muted || own.notifications !== chat.notifications)
        await api.send("PUT", `${path}/mute`, own);
      await store.reload(chat.id);
      this._close();
      announce(gettext("Saved."));
    });
  }
}
customElements.define("chat-settings-dialog", ChatSettingsDialog);
