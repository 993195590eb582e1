/**
 * The members of the open chat: people with their presence, agents with their activity and when
 * they answer.
 */

import { isApiError } from "../api.js";
import { api, me, memberName, page, store } from "../context.js";
import { announce } from "../dom.js";
import { PAYERS, ownsChat, priceText } from "../money/price.js";
import { people } from "../person/looks.js";
import { workText } from "../store/agent-work.js";
import { Selected } from "../store/store.js";
import { View, face, glyph } from "../view.js";
import { html, nothing, repeat } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

/** @type {Record<string, string>} */
const TRIGGERS = {
  mention: gettext("Answers when mentioned"),
  always: gettext("Answers every message"),
  keyword: gettext("Answers mentions and keywords"),
  never: gettext("Listens only"),
};

/** @type {Record<string, string>} */
const ROLES = { owner: gettext("owner"), admin: gettext("admin") };

/** @typedef {import("../store/chat.js").Chat} Chat */
/** @typedef {import("../store/chat.js").Participant} Participant */

/**
 * Fires (bubbling) `add-members`, `set-payer`, `share-chat` and `chat-settings` (detail: the chat),
 * `open-member` (detail: the chat and the member), `open-profile` (detail: its kind and name), and
 * `toggle-members`.
 */
export class MembersPanel extends View {
  static properties = { chatId: { attribute: false } };

  constructor() {
    super();
    this.chatId = "";
    this._onChats = () => this.requestUpdate();
    this._works = new Selected(this, page, (state) => state.works);
  }

  connectedCallback() {
    super.connectedCallback();
    this.setAttribute("role", "complementary");
    this.setAttribute("aria-label", gettext("Members"));
    store.addEventListener("change", this._onChats);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    store.removeEventListener("change", this._onChats);
  }

  render() {
    const chat = store.get(this.chatId);
    if (!chat) return "";
    const of = (/** @type {Participant["kind"]} */ kind) =>
      chat.participants.filter((participant) => participant.kind === kind);
    return html` <div class="panel-head">
        <h2>${gettext("Members")}</h2>
        <button
          type="button"
          class="icon-button"
          aria-label=${gettext("Close the member list")}
          title=${gettext("Close the member list")}
          @click=${() => this._fire("toggle-members")}
        >
          ${glyph("close")}
        </button>
      </div>
      <div class="panel-body">
        ${chat.description ? html`<p dir="auto">${chat.description}</p>` : ""}
        ${
          chat.home
            ? html`<p class="quiet" data-testid="chat-home">
                ${interpolate(
                  gettext(
                    "This chat is hosted on %(server)s. Members, agents and settings are managed there. Threads and calls are only available there.",
                  ),
                  { server: chat.home },
                )}
              </p>`
            : ""
        }
        ${
          chat.agents_quiet
            ? html`<p class="quiet" data-testid="agents-quiet">
                ${gettext("Agents paused.")}
                ${
                  chat.home
                    ? ""
                    : html`<button
                        type="button"
                        class="link"
                        @click=${() => this._quiet(chat, false)}
                      >
                        ${gettext("Resume agents")}
                      </button>`
                }
              </p>`
            : ""
        }
        ${this._group(gettext("People"), of("user"))}${this._group(
          gettext("Agents"),
          of("agent"),
        )}${this._payer(chat)}
        ${
          chat.home
            ? ""
            : html`<button
                type="button"
                class="button"
                @click=${() => this._fire("add-members", chat)}
              >
                ${glyph("add")}${gettext("Add people or agents")}
              </button>`
        }
        <button
          type="button"
          class="button"
          data-testid="share-button"
          @click=${() => this._fire("share-chat", chat)}
        >
          ${glyph("link")}${gettext("Invite, share, download")}
        </button>
        ${
          !chat.home && !chat.agents_quiet && of("agent").length
            ? html`<button
                type="button"
                class="button"
                data-testid="quiet-agents"
                title=${gettext("No agent answers until a member resumes them")}
                @click=${() => this._quiet(chat, true)}
              >
                ${glyph("stop")}${gettext("Pause all agents")}
              </button>`
            : ""
        }
        <button
          type="button"
          class="button"
          data-testid="chat-settings-button"
          @click=${() => this._fire("chat-settings", chat)}
        >
          ${glyph("edit")}${gettext("Chat settings")}
        </button>
      </div>`;
  }

  /** @param {string} name @param {Participant[]} members */
  _group(name, members) {
    if (members.length === 0) return "";
    return html`<section>
      <h3>${name}</h3>
      <ul class="member-list">
        ${repeat(
          members,
          ({ kind, id }) => `${kind} ${id}`,
          (member) => this._member(member),
        )}
      </ul>
    </section>`;
  }

  /** The payer, if an agent has a price; an owner may change it. @param {Chat} chat */
  _payer(chat) {
    if (!chat.participants.some((member) => member.pricing)) return "";
    const change = html`<button
      type="button"
      class="button payer-button"
      @click=${() => this._fire("set-payer", chat)}
    >
      ${glyph("wallet")}${gettext("Payment settings")}
    </button>`;
    return html`<section data-testid="payer">
      <h3>${gettext("Who pays")}</h3>
      <p>${PAYERS[chat.payer ?? ""]}</p>
      ${ownsChat(chat) ? change : ""}
    </section>`;
  }

  /** @param {Participant} member */
  _member(member) {
    const isMe = member.kind === "user" && String(member.id) === me.id;
    const lines =
      member.kind === "agent"
        ? [
            TRIGGERS[member.trigger ?? ""],
            priceText(member.pricing),
            member.budget &&
              interpolate(
                member.budget_period === "total"
                  ? gettext("Budget: $%(amount)s in total")
                  : gettext("Budget: $%(amount)s a day"),
                { amount: member.budget },
              ),
          ]
        : [
            [
              member.display_name && `@${member.name}`,
              member.online || isMe ? gettext("Online") : gettext("Offline"),
              ROLES[member.role],
              member.status_text,
            ]
              .filter(Boolean)
              .join(" · "),
          ];
    return html`<li>
      ${face(member.name, member.kind, member.online || isMe)}<span class="picker-text"
        ><b dir="auto"
          ><button
            type="button"
            class="name-button"
            data-testid="open-profile"
            @click=${() => this._profile(member)}
          >
            ${
              member.kind === "user" ? people.nameOf(member.name) : member.name
            }${isMe ? ` ${gettext("(you)")}` : ""}
          </button></b
        >${member.kind === "agent" ? this._work(member) : nothing}${lines
          .filter(Boolean)
          .map((line) => html`<small>${line}</small>`)}</span
      >
      <button
        type="button"
        class="icon-button"
        aria-label=${interpolate(gettext("Settings for %(name)s"), { name: member.name })}
        title=${interpolate(gettext("Settings for %(name)s"), { name: member.name })}
        @click=${() => this._fire("open-member", { chat: store.get(this.chatId), member })}
      >
        ${glyph("more")}
      </button>
    </li>`;
  }

  /** Render the current activity of an agent. @param {Participant} agent */
  _work({ name, online }) {
    const work = this._works.value.find(({ agent }) => agent === name);
    if (!work)
      return html`<small data-testid="agent-state" data-state=${online ? "ready" : "offline"}
        >${online ? gettext("Ready") : gettext("Offline: can't answer right now")}</small
      >`;
    const text = workText(work, (userId) => memberName(this.chatId, userId));
    const bar =
      work.kind === "tool" && work.percent !== null
        ? html`<progress max="100" .value=${work.percent} aria-label=${text}></progress>`
        : nothing;
    return html`<small class="agent-work" data-testid="agent-state" data-state=${work.kind}
      >${text}${bar}</small
    >`;
  }

  /** @param {Chat} chat @param {boolean} isQuiet */
  async _quiet(chat, isQuiet) {
    try {
      await api.send("PATCH", `/chats/${encodeURIComponent(chat.id)}`, { agents_quiet: isQuiet });
      await store.reload(chat.id);
      announce(isQuiet ? gettext("Agents paused.") : gettext("Agents resumed."));
    } catch (problem) {
      if (!isApiError(problem)) throw problem;
      announce(problem.message);
    }
  }

  /** @param {Participant} member */
  _profile({ kind, name }) {
    this.dispatchEvent(new CustomEvent("open-profile", { bubbles: true, detail: { kind, name } }));
  }

  /** @param {string} type @param {Chat|{chat: Chat|undefined, member: Participant}} [detail] */
  _fire(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { bubbles: true, detail }));
  }
}
customElements.define("members-panel", MembersPanel);
