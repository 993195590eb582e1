/**
 * A dialog for one member of a chat: the role of a person, or how an agent answers; and removing
 * them.
 */

import { amountFromInput, padded } from "../money/amounts.js";
import { api, me, store } from "../context.js";
import { announce } from "../dom.js";
import { glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { DialogView } from "./dialog-view.js";
import { gettext, interpolate } from "../words.js";

const ROLES = {
  owner: [gettext("Owner"), gettext("Full control, including roles, billing and budgets")],
  admin: [gettext("Admin"), gettext("Can rename the chat, remove members and configure agents")],
  member: [gettext("Member"), gettext("Can write, and add people and agents")],
};
const TRIGGERS = {
  mention: gettext("when mentioned"),
  always: gettext("every message"),
  keyword: gettext("a mention or a keyword"),
  never: gettext("never"),
};
const CONTEXTS = {
  chat: gettext("all messages of the chat"),
  last: gettext("the last messages"),
  addressed: gettext("only messages addressed to it and its answers"),
};
const PERIODS = { day: gettext("each day"), total: gettext("in total") };

/** @typedef {import("../store/chat.js").Chat} Chat */
/** @typedef {import("../store/chat.js").Participant} Participant */
/** @typedef {(right: string) => boolean} May whether the person has a right in the chat */

/** @param {string} value @param {string} label @param {string|undefined} chosen */
const option = (value, label, chosen) =>
  html`<option value=${value} ?selected=${value === chosen}>${label}</option>`;
/** @param {Record<string, string>} names @param {string} [chosen] */
const options = (names, chosen) =>
  Object.entries(names).map(([value, label]) => option(value, label, chosen));

export class MemberDialog extends DialogView {
  static properties = {
    _chat: { state: true },
    _member: { state: true },
    _trigger: { state: true },
    _context: { state: true },
    _confirms: { state: true },
  };

  constructor() {
    super();
    /** @type {Chat|null} */
    this._chat = null;
    /** @type {Participant|null} */
    this._member = null;
    /** The current choice of when an agent answers. @type {string|undefined} */
    this._trigger = undefined;
    /** @type {string|undefined} */
    this._context = undefined;
    this._confirms = false;
  }

  /** @param {Chat} chat @param {Participant} member */
  async open(chat, member) {
    Object.assign(this, {
      _chat: chat,
      _member: member,
      _trigger: member.trigger,
      _context: member.context,
      _confirms: false,
    });
    await this._show();
  }

  render() {
    const { _member: member, _chat: chat } = this;
    if (!member || !chat) return html`<dialog class="dialog"></dialog>`;
    const may = (/** @type {string} */ right) => chat.rights.includes(right);
    const isAgent = member.kind === "agent";
    const isMe = !isAgent && String(member.id) === me.id;
    const canSave = isAgent ? may("manage_agents") || may("manage_money") : may("change_roles");
    return html`<dialog class="dialog" aria-labelledby="member-title" data-testid="member-dialog">
      <form
        class="dialog-form"
        @submit=${(/** @type {SubmitEvent} */ event) => this._save(event, chat, member)}
      >
        ${this._head("member-title", member.name)}
        <div class="dialog-body">
          ${isAgent ? this._agent(member, may) : this._person(member, may)}
        </div>
        <footer>
          ${this._problem()}
          ${isMe || may("remove_members") ? this._removal(chat, member, isMe) : ""}
          ${
            isAgent || isMe || store.directWith(member.name)?.id === chat.id
              ? ""
              : html`<button
                  type="button"
                  class="button"
                  data-testid="message-member"
                  ?disabled=${this._isBusy}
                  @click=${() => this._message(member)}
                >
                  ${glyph("message")}${gettext("Message")}
                </button>`
          }
          <button type="button" class="button" @click=${() => this._close()}>
            ${canSave ? gettext("Cancel") : gettext("Close")}
          </button>
          ${
            canSave
              ? html`<button type="submit" class="button button-primary" ?disabled=${this._isBusy}>
                  ${gettext("Save")}
                </button>`
              : ""
          }
        </footer>
      </form>
    </dialog>`;
  }

  /** @param {Chat} chat @param {Participant} member @param {boolean} isMe */
  _removal(chat, member, isMe) {
    if (!this._confirms) {
      return html`<button
        type="button"
        class="button is-danger"
        data-testid="remove-member"
        @click=${() => {
          this._confirms = true;
        }}
      >
        ${isMe ? gettext("Leave chat") : gettext("Remove")}
      </button>`;
    }
    return html`<button
      type="button"
      class="button button-danger"
      data-testid="confirm-removal"
      @click=${() => this._remove(chat, member, isMe)}
    >
      ${
        isMe
          ? gettext("Leave now")
          : interpolate(gettext("Remove %(name)s now"), { name: member.name })
      }
    </button>`;
  }

  /** @param {Participant} member @param {May} may */
  _person(member, may) {
    const roles = Object.entries(ROLES).map(
      ([role, [name, about]]) =>
        html`<label class="picker-option">
          <span class="picker-text"><b>${name}</b><small>${about}</small></span>
          <input
            type="radio"
            name="role"
            value=${role}
            ?checked=${role === member.role}
            ?disabled=${!may("change_roles")}
        /></label>`,
    );
    return html`<fieldset class="payers">
        <legend class="visually-hidden">${gettext("Role")}</legend>
        ${roles}
      </fieldset>
      ${
        may("change_roles") || this._chat?.home
          ? ""
          : html`<p class="quiet">${gettext("Only owners can change roles.")}</p>`
      }`;
  }

  /** @param {Participant} member @param {May} may */
  _agent(member, may) {
    const fixed = !may("manage_agents");
    return html` <label for="member-trigger">${gettext("Answers")}</label>
      <select
        class="field"
        id="member-trigger"
        name="trigger"
        ?disabled=${fixed}
        @change=${(/** @type {Event} */ e) => {
          this._trigger = /** @type {HTMLSelectElement} */ (e.target).value;
        }}
      >
        ${options(TRIGGERS, member.trigger)}
      </select>
      ${
        this._trigger === "keyword"
          ? html`<label for="member-keywords">${gettext("Keywords, separated by commas")}</label>
              <input
                class="field"
                id="member-keywords"
                name="keywords"
                maxlength="600"
                required
                autocomplete="off"
                .value=${(member.keywords ?? []).join(", ")}
                ?disabled=${fixed}
              />`
          : ""
      }
      <label for="member-context">${gettext("Can see")}</label>
      <select
        class="field"
        id="member-context"
        name="context"
        ?disabled=${fixed}
        @change=${(/** @type {Event} */ e) => {
          this._context = /** @type {HTMLSelectElement} */ (e.target).value;
        }}
      >
        ${options(CONTEXTS, member.context)}
      </select>
      ${
        this._context === "last"
          ? html`<label for="member-messages">${gettext("Number of messages")}</label>
              <input
                class="field"
                id="member-messages"
                name="context_messages"
                type="number"
                min="1"
                max="1000"
                required
                .value=${String(member.context_messages || 20)}
                ?disabled=${fixed}
              />`
          : ""
      }
      ${member.pricing ? this._budget(member, may("manage_money")) : ""}
      ${
        fixed
          ? html`<p class="quiet">${gettext("Only owners and admins can configure agents.")}</p>`
          : ""
      }`;
  }

  /** @param {Participant} member @param {boolean} mayChange */
  _budget(member, mayChange) {
    return html`<label for="member-budget"
        >${interpolate(gettext("Budget for its answers in this chat (%(currency)s)"), {
          currency: member.pricing?.currency ?? "",
        })}</label
      >
      <div class="pool-fill">
        <input
          class="field"
          id="member-budget"
          name="budget"
          inputmode="decimal"
          maxlength="20"
          autocomplete="off"
          placeholder=${gettext("No limit")}
          .value=${member.budget ? padded(member.budget) : ""}
          ?disabled=${!mayChange}
        />
        <select
          class="field"
          name="budget_period"
          aria-label=${gettext("Budget period")}
          ?disabled=${!mayChange}
        >
          ${options(PERIODS, member.budget_period || "day")}
        </select>
      </div>`;
  }

  /** @param {SubmitEvent} event @param {Chat} chat @param {Participant} member */
  _save(event, chat, member) {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
    /** Disabled fields are missing. @type {Record<string, unknown>} */
    const body = Object.fromEntries(form);
    if (form.has("keywords"))
      body.keywords = String(form.get("keywords"))
        .split(",")
        .map((word) => word.trim())
        .filter(Boolean);
    if (form.has("context_messages")) body.context_messages = Number(form.get("context_messages"));
    if (form.has("budget")) body.budget = amountFromInput(String(form.get("budget")));
    return this._attempt(async () => {
      await api.send("PATCH", pathOf(chat, member), body);
      this._done(interpolate(gettext("%(name)s updated."), { name: member.name }));
      await store.reload(chat.id);
    });
  }

  /** Open the chat with this person alone. @param {Participant} member */
  _message(member) {
    return this._attempt(async () => {
      const chat = await store.message(member.name);
      this._close();
      this.dispatchEvent(new CustomEvent("open-chat", { bubbles: true, detail: chat.id }));
    });
  }

  /** @param {Chat} chat @param {Participant} member @param {boolean} isMe */
  _remove(chat, member, isMe) {
    return this._attempt(async () => {
      await api.send("DELETE", pathOf(chat, member));
      this._done(
        isMe
          ? gettext("You left the chat.")
          : interpolate(gettext("%(name)s removed."), { name: member.name }),
      );
      if (isMe) {
        this.dispatchEvent(new CustomEvent("left-chat", { bubbles: true, detail: chat.id }));
        await store.refresh();
      } else await store.reload(chat.id);
    });
  }

  /** @param {string} said */
  _done(said) {
    this._close();
    announce(said);
  }
}
customElements.define("member-dialog", MemberDialog);

/** @param {Chat} chat @param {Participant} member */
const pathOf = (chat, member) =>
  `/chats/${encodeURIComponent(chat.id)}/participants/${member.participant_id}`;
