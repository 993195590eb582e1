/** A dialog for a chat: its name, description and picture, how its agents work, and what one mutes. */

import { api, store } from "../context.js";
import { announce } from "../dom.js";
import { View, glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";

class ChatSettingsDialog extends View {
  static properties = { _chat: { state: true }, _error: { state: true }, _busy: { state: true } };

  /** @param {any} chat */
  async open(chat) {
    Object.assign(this, { _chat: chat, _error: "", _busy: false });
    await this.updateComplete;
    this.querySelector("dialog").showModal();
  }

  render() {
    const chat = this._chat;
    if (!chat) return html`<dialog class="dialog"></dialog>`;
    const may = (right) => chat.rights.includes(right);
    const fixed = !may("describe");
    const emoji = chat.avatar && !/^(#|content:)/.test(chat.avatar) ? chat.avatar : "";
    return html`<dialog class="dialog" aria-labelledby="settings-title" data-testid="chat-settings">
      <form class="dialog-form" @submit=${this._save}>
        <header><h2 id="settings-title">Chat settings</h2>
          <button type="button" class="icon-button" aria-label="Close" title="Close" @click=${this._close}>${glyph("close")}</button></header>
        <div class="dialog-body">
          <label for="settings-name">Name</label>
          <input class="field" id="settings-name" name="title" maxlength="200" autocomplete="off" dir="auto" .value=${chat.title} placeholder=${store.nameOf(chat)} ?disabled=${fixed}>
          <label for="settings-about">Description</label>
          <textarea class="field" id="settings-about" name="description" maxlength="2000" rows="3" dir="auto" .value=${chat.description} ?disabled=${fixed}></textarea>
          <label for="settings-avatar">Emoji as its picture</label>
          <input class="field" id="settings-avatar" name="avatar" maxlength="32" autocomplete="off" .value=${emoji} placeholder="Made of the name" ?disabled=${fixed}>
          ${fixed ? html`<p class="quiet">Owners and admins change name, description and picture.</p>` : ""}
          ${may("rule") ? html`<label for="settings-hops">How often in a row agents may ask each other (0: never)</label>
            <input class="field" id="settings-hops" name="agent_hops" type="number" min="0" max="20" required .value=${String(chat.agent_hops)}>` : ""}
          <label class="picker-option"><span class="picker-text"><b>Quiet agents</b><small>No agent answers until a member ends this</small></span>
            <input type="checkbox" name="agents_quiet" .checked=${chat.agents_quiet}></label>
          <label class="picker-option"><span class="picker-text"><b>Mute for me</b><small>The others do not see this</small></span>
            <input type="checkbox" name="muted" .checked=${chat.muted}></label>
        </div>
        <footer>
          ${this._error ? html`<p class="dialog-error" role="alert">${this._error}</p>` : ""}
          <button type="button" class="button" @click=${this._close}>Cancel</button>
          <button type="submit" class="button button-primary" ?disabled=${this._busy}>Save</button>
        </footer>
      </form>
    </dialog>`;
  }

  _close() {
    this.querySelector("dialog").close();
  }

  async _save(event) {
    event.preventDefault();
    const chat = this._chat;
    const path = `/chats/${encodeURIComponent(chat.id)}`;
    const form = new FormData(event.target);
    const isMuted = form.has("muted");
    /** @type {Record<string, any>} what is another now */
    const changes = { agents_quiet: form.has("agents_quiet") };
    for (const name of ["title", "description", "avatar"]) if (form.has(name)) changes[name] = String(form.get(name)).trim();
    // A colour or picture that was set elsewhere stays while no emoji is written.
    if (!changes.avatar && /^(#|content:)/.test(chat.avatar || "")) delete changes.avatar;
    if (form.has("agent_hops")) changes.agent_hops = Number(form.get("agent_hops"));
    for (const [name, value] of Object.entries(changes)) if (value === (chat[name] ?? "")) delete changes[name];
    this._error = "";
    this._busy = true;
    try {
      if (Object.keys(changes).length) await api.send("PATCH", path, changes);
      if (isMuted !== chat.muted) await api.send("PUT", `${path}/mute`, { muted: isMuted });
      await store.reload(chat.id);
      this._close();
      announce("The chat is changed.");
    } catch (problem) {
      if (problem.name !== "ApiError") throw problem;
      this._error = problem.message;
    } finally {
      this._busy = false;
    }
  }
}
customElements.define("chat-settings-dialog", ChatSettingsDialog);
