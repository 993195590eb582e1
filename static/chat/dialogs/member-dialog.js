/** A dialog for one member of a chat: the role of a person, or how an agent answers; and removing them. */

import { api, me, store } from "../context.js";
import { announce } from "../dom.js";
import { View, face, glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

const ROLES = {
  owner: [gettext("Owner"), gettext("Everything, also roles, payer and budgets")],
  admin: [gettext("Admin"), gettext("Names the chat, removes members, sets agents")],
  member: [gettext("Member"), gettext("Writes, and adds people and agents")],
};
const TRIGGERS = { mention: gettext("when mentioned"), always: gettext("every message"), keyword: gettext("a mention or a keyword"), never: gettext("never") };
const CONTEXTS = { chat: gettext("all messages of the chat"), last: gettext("the last messages"), addressed: gettext("messages to it, and its answers") };
const PERIODS = { day: gettext("each day"), total: gettext("in total") };

const option = (value, label, chosen) => html`<option value=${value} ?selected=${value === chosen}>${label}</option>`;
const options = (names, chosen) => Object.entries(names).map(([value, label]) => option(value, label, chosen));

class MemberDialog extends View {
  static properties = {
    _chat: { state: true }, _member: { state: true }, _error: { state: true }, _busy: { state: true },
    _trigger: { state: true }, _context: { state: true }, _confirms: { state: true },
  };

  /** @param {import("../chat-store.js").Chat} chat @param {any} member */
  async open(chat, member) {
    Object.assign(this, { _chat: chat, _member: member, _error: "", _busy: false, _confirms: false });
    Object.assign(this, { _trigger: member.trigger, _context: member.context });
    await this.updateComplete;
    this.querySelector("dialog").showModal();
  }

  render() {
    const { _member: member, _chat: chat } = this;
    if (!member) return html`<dialog class="dialog"></dialog>`;
    const may = (right) => chat.rights.includes(right);
    const isAgent = member.kind === "agent";
    const isMe = !isAgent && String(member.id) === me.id;
    const canSave = isAgent ? may("manage_agents") || may("manage_money") : may("change_roles");
    return html`<dialog class="dialog" aria-labelledby="member-title" data-testid="member-dialog">
      <form class="dialog-form" @submit=${this._save}>
        <header><h2 id="member-title">${member.name}</h2>
          <button type="button" class="icon-button" aria-label=${gettext("Close")} title=${gettext("Close")} @click=${this._close}>${glyph("close")}</button></header>
        <div class="dialog-body">${isAgent ? this._agent(member, may) : this._person(member, may)}</div>
        <footer>
          ${this._error ? html`<p class="dialog-error" role="alert">${this._error}</p>` : ""}
          ${isMe || may("remove_members") ? this._removal(member, isMe) : ""}
          <button type="button" class="button" @click=${this._close}>${canSave ? gettext("Cancel") : gettext("Close")}</button>
          ${canSave ? html`<button type="submit" class="button button-primary" ?disabled=${this._busy}>${gettext("Save")}</button>` : ""}
        </footer>
      </form>
    </dialog>`;
  }

  _removal(member, isMe) {
    if (!this._confirms) {
      return html`<button type="button" class="button" data-testid="remove-member" @click=${() => { this._confirms = true; }}>${isMe ? gettext("Leave chat") : gettext("Remove")}</button>`;
    }
    return html`<button type="button" class="button is-danger" data-testid="confirm-removal" @click=${this._remove}>${isMe ? gettext("Leave now") : interpolate(gettext("Remove %(name)s now"), { name: member.name })}</button>`;
  }

  _person(member, may) {
    const roles = Object.entries(ROLES).map(([role, [name, about]]) => html`<label class="picker-option">
      <span class="picker-text"><b>${name}</b><small>${about}</small></span>
      <input type="radio" name="role" value=${role} ?checked=${role === member.role} ?disabled=${!may("change_roles")}></label>`);
    return html`<fieldset class="payers"><legend class="visually-hidden">${gettext("Role")}</legend>${roles}</fieldset>
      ${may("change_roles") ? "" : html`<p class="quiet">${gettext("Only owners change roles.")}</p>`}`;
  }

  _agent(member, may) {
    const fixed = !may("manage_agents");
    return html`
      <label for="member-trigger">${gettext("Answers")}</label>
      <select class="field" id="member-trigger" name="trigger" ?disabled=${fixed} @change=${(e) => { this._trigger = e.target.value; }}>${options(TRIGGERS, member.trigger)}</select>
      ${this._trigger === "keyword" ? html`<label for="member-keywords">${gettext("Keywords, with commas between")}</label>
        <input class="field" id="member-keywords" name="keywords" maxlength="600" required autocomplete="off" .value=${member.keywords.join(", ")} ?disabled=${fixed}>` : ""}
      <label for="member-context">${gettext("Is shown")}</label>
      <select class="field" id="member-context" name="context" ?disabled=${fixed} @change=${(e) => { this._context = e.target.value; }}>${options(CONTEXTS, member.context)}</select>
      ${this._context === "last" ? html`<label for="member-messages">${gettext("How many messages")}</label>
        <input class="field" id="member-messages" name="context_messages" type="number" min="1" max="1000" required .value=${String(member.context_messages || 20)} ?disabled=${fixed}>` : ""}
      ${member.pricing ? this._budget(member, may("manage_money")) : ""}
      ${fixed ? html`<p class="quiet">${gettext("Owners and admins set how agents answer.")}</p>` : ""}`;
  }

  _budget(member, mayChange) {
    return html`<label for="member-budget">${interpolate(gettext("Budget of its answers in this chat (%(currency)s)"), { currency: member.pricing.currency })}</label>
      <div class="pool-fill"><input class="field" id="member-budget" name="budget" inputmode="decimal" maxlength="20" autocomplete="off" placeholder=${gettext("No limit")} .value=${member.budget || ""} ?disabled=${!mayChange}>
        <select class="field" name="budget_period" aria-label=${gettext("Time of the budget")} ?disabled=${!mayChange}>${options(PERIODS, member.budget_period || "day")}</select></div>`;
  }

  get _path() {
    return `/chats/${encodeURIComponent(this._chat.id)}/participants/${this._member.participant_id}`;
  }

  _close() {
    this.querySelector("dialog").close();
  }

  async _save(event) {
    event.preventDefault();
    /** @type {Record<string, any>} fields that are disabled are not there */
    const body = Object.fromEntries(new FormData(event.target));
    if (body.keywords !== undefined) body.keywords = body.keywords.split(",").map((word) => word.trim()).filter(Boolean);
    if (body.context_messages !== undefined) body.context_messages = Number(body.context_messages);
    if (body.budget !== undefined) body.budget = body.budget.trim();
    await this._do(() => api.send("PATCH", this._path, body), interpolate(gettext("%(name)s is changed."), { name: this._member.name }));
  }

  async _remove() {
    const { kind, id, name } = this._member;
    const isMe = kind === "user" && String(id) === me.id;
    await this._do(() => api.send("DELETE", this._path), isMe ? gettext("You left the chat.") : interpolate(gettext("%(name)s is removed."), { name }), isMe);
  }

  async _do(work, said, leaves = false) {
    this._error = "";
    this._busy = true;
    try {
      await work();
      this._close();
      announce(said);
      if (leaves) await store.refresh();
      else await store.reload(this._chat.id);
    } catch (problem) {
      if (problem.name !== "ApiError") throw problem;
      this._error = problem.message;
    } finally {
      this._busy = false;
    }
  }
}
customElements.define("member-dialog", MemberDialog);
