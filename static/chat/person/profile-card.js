/**
 * The card of a member: who it is, whether it is a person or an agent, and a button to message it.
 */

import { me, page, store } from "../context.js";
import { DialogView } from "../dialogs/dialog-view.js";
import { priceText } from "../money/price.js";
import { fullDate } from "../text/time.js";
import { face } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { people } from "./looks.js";
import { gettext, interpolate } from "../words.js";

/** @typedef {import("../store/chat.js").Participant} Participant */
/** @typedef {{kind: "user"|"agent", name: string}} Subject */

/**
 * Fires (bubbling) `open-chat` (detail: chat id) and `open-member` (detail: the chat and the
 * member).
 */
export class ProfileCard extends DialogView {
  static properties = { _subject: { state: true } };

  constructor() {
    super();
    /** @type {Subject|null} */
    this._subject = null;
  }

  /** @param {Subject} subject */
  async open(subject) {
    this._subject = subject;
    await this._show();
  }

  get _chat() {
    return store.get(page.state.chatId);
  }

  render() {
    if (!this._subject) return html`<dialog class="dialog"></dialog>`;
    const { kind, name } = this._subject;
    const member = this._chat?.participants.find((one) => one.kind === kind && one.name === name);
    const isMe = kind === "user" && name === me.username;
    const isHere = store.directWith(name, kind)?.id === page.state.chatId;
    return html`<dialog class="dialog" aria-labelledby="profile-name" data-testid="profile-card">
      <div class="dialog-form">
        ${this._head("profile-name", kind === "user" ? people.nameOf(name) : name)}
        <div class="dialog-body profile-card">
          <span class="profile-face">${face(name, kind, member?.online)}</span>
          <div>
            <p>
              ${
                kind === "user"
                  ? html`<bdi>@${name}</bdi> <span class="badge">${gettext("person")}</span>`
                  : html`<span class="badge">${gettext("agent")}</span>`
              }
            </p>
            ${this._facts(member, isMe).map(
              (fact) => html`<p class="quiet" dir="auto">${fact}</p>`,
            )}
          </div>
        </div>
        <footer>
          ${this._problem()}
          ${
            member
              ? html`<button type="button" class="button" @click=${() => this._settings(member)}>
                  ${gettext("Settings")}
                </button>`
              : nothing
          }
          ${
            isMe || isHere
              ? nothing
              : html`<button
                  type="button"
                  class="button button-primary"
                  data-testid="message-profile"
                  ?disabled=${this._isBusy}
                  @click=${() => this._message(kind, name)}
                >
                  ${gettext("Message")}
                </button>`
          }
        </footer>
      </div>
    </dialog>`;
  }

  /** @param {Participant|undefined} member @param {boolean} isMe @returns {string[]} */
  _facts(member, isMe) {
    if (!member) return [gettext("No longer in this chat")];
    const since = member.joined_at
      ? interpolate(gettext("In this chat since %(date)s"), {
          date: fullDate(Date.parse(member.joined_at)),
        })
      : "";
    const price = member.kind === "agent" ? priceText(member.pricing) || gettext("Free") : "";
    return [
      member.status_text ?? "",
      member.online || isMe ? gettext("Online") : gettext("Offline"),
      price,
      since,
    ].filter(Boolean);
  }

  /** @param {Participant} member */
  _settings(member) {
    this._close();
    this.dispatchEvent(
      new CustomEvent("open-member", { bubbles: true, detail: { chat: this._chat, member } }),
    );
  }

  /** @param {Subject["kind"]} kind @param {string} name */
  _message(kind, name) {
    return this._attempt(async () => {
      const chat = await store.message(name, kind);
      this._close();
      this.dispatchEvent(new CustomEvent("open-chat", { bubbles: true, detail: chat.id }));
    });
  }
}
customElements.define("profile-card", ProfileCard);
