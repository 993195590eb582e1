/** A dialog that starts a chat, or adds people and agents to one. */

import { api, store } from "../context.js";
import { html, nothing, repeat } from "../../vendor/lit/lit.js";
import { DialogView } from "./dialog-view.js";
import "./people-picker.js";
import { gettext } from "../words.js";

/** @typedef {import("../store/chat.js").Chat} Chat */
/** @typedef {import("./people-picker.js").PeoplePicker} PeoplePicker */

/** Fires (bubbling) `open-chat` (detail: id of the new chat). */
export class NewChatDialog extends DialogView {
  static properties = { _chat: { state: true }, _opened: { state: true } };

  constructor() {
    super();
    /** @type {Chat|null} the chat to add members to; null for a new one */
    this._chat = null;
    /** Counts how often it was opened: each time it is empty. */
    this._opened = 0;
  }

  /** Start a chat. */
  startChat() {
    return this._open(null);
  }

  /** @param {Chat} chat to add members to */
  addTo(chat) {
    return this._open(chat);
  }

  /** @param {Chat|null} chat */
  async _open(chat) {
    this._chat = chat;
    this._opened += 1;
    await this._show();
    await this._picker.updateComplete;
    // On a phone the keyboard would cover the list.
    if (matchMedia("(pointer: fine)").matches)
      /** @type {HTMLInputElement} */ (this.querySelector(".dialog-body input")).focus();
  }

  /** @returns {PeoplePicker} */
  get _picker() {
    return /** @type {PeoplePicker} */ (this.querySelector("people-picker"));
  }

  render() {
    return html`<dialog class="dialog" aria-labelledby="dialog-title" data-testid="new-chat-dialog">
      ${repeat(
        this._opened ? [this._opened] : [],
        (opened) => opened,
        () => this._form(),
      )}
    </dialog>`;
  }

  _form() {
    const chat = this._chat;
    const taken = new Set(chat?.participants.map(({ kind, name }) => `${kind}:${name}`));
    return html`<form
      class="dialog-form"
      @submit=${(/** @type {SubmitEvent} */ event) => this._submit(event)}
    >
      ${this._head("dialog-title", chat ? gettext("Add people or agents") : gettext("New chat"))}
      <div class="dialog-body">
        ${
          chat
            ? nothing
            : html`<label for="chat-name">${gettext("Name")}</label>
                <input
                  class="field"
                  id="chat-name"
                  maxlength="200"
                  autocomplete="off"
                  placeholder=${gettext("Optional")}
                />`
        }<people-picker .taken=${taken}></people-picker>
      </div>
      <footer>
        ${this._problem()}<button type="button" class="button" @click=${() => this._close()}>
          ${gettext("Cancel")}
        </button>
        <button type="submit" class="button button-primary" ?disabled=${this._isBusy}>
          ${chat ? gettext("Add") : gettext("Start chat")}
        </button>
      </footer>
    </form>`;
  }

  /** @param {SubmitEvent} event */
  _submit(event) {
    event.preventDefault();
    const users = this._picker.chosen("user");
    const agents = this._picker.chosen("agent");
    return this._attempt(async () => {
      if (this._chat) await this._add(this._chat, users, agents);
      else await this._start(users, agents);
      this._close();
    });
  }

  /** @param {string[]} users @param {string[]} agents */
  async _start(users, agents) {
    const title = /** @type {HTMLInputElement} */ (this.querySelector("#chat-name")).value.trim();
    const isDirect = !title && users.length === 1 && agents.length === 0;
    const chat = isDirect
      ? await store.message(users[0])
      : await store.create(title, users, agents);
    this.dispatchEvent(new CustomEvent("open-chat", { bubbles: true, detail: chat.id }));
  }

  /** @param {Chat} chat @param {string[]} users @param {string[]} agents */
  async _add(chat, users, agents) {
    const path = `/chats/${encodeURIComponent(chat.id)}/participants`;
    for (const user of users) await api.post(path, { user });
    for (const agent of agents) await api.post(path, { agent });
    await store.reload(chat.id);
  }
}
customElements.define("new-chat-dialog", NewChatDialog);
