/** A dialog for sharing a chat: links to join or read it, and downloads. */

import { isApiError } from "../api.js";
import { api, me } from "../context.js";
import { copyText } from "../controls/clipboard.js";
import { announce } from "../dom.js";
import { people } from "../person/looks.js";
import { dayName } from "../text/time.js";
import { View, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { ROLES, daysText, openedText, usedText, usesText } from "./link-words.js";
import { gettext, interpolate } from "../words.js";

/** @typedef {import("./link-words.js").Link} Link */

/** The path of each kind of link in the API, and the right needed to create one. */
const KINDS = /** @type {const} */ ({
  invite: { path: "invite-links", right: "add_members" },
  share: { path: "share-links", right: "share" },
});
/** @typedef {keyof typeof KINDS} Kind */

const FORMATS = {
  markdown: [gettext("Markdown"), gettext("to read")],
  json: [gettext("JSON"), gettext("one document, for programs")],
  ndjson: [gettext("NDJSON"), gettext("one line per message, for long chats")],
};
const DAYS = [1, 7, 30];
const USES = [1, 10, 100];

export class LinksDialog extends View {
  static properties = {
    _chat: { state: true },
    _links: { state: true },
    _made: { state: true },
    _error: { state: true },
    _busy: { state: true },
    _copied: { state: true },
  };

  constructor() {
    super();
    /** @type {import("../store/chat.js").Chat|undefined} */
    this._chat = undefined;
    /** @type {{kind: Kind, id: string, url: string}|null} */
    this._made = null;
    /** @type {Record<Kind, Link[]>} */
    this._links = { invite: [], share: [] };
    this._error = "";
    this._busy = this._copied = false;
  }

  /** @param {import("../store/chat.js").Chat} chat */
  async open(chat) {
    Object.assign(this, {
      _chat: chat,
      _links: { invite: [], share: [] },
      _made: null,
      _error: "",
      _busy: false,
      _copied: false,
    });
    await this.updateComplete;
    this.querySelector("dialog")?.showModal();
    await this._do(() => this._read());
  }

  render() {
    const chat = this._chat;
    if (!chat) return html`<dialog class="dialog"></dialog>`;
    const may = (/** @type {Kind} */ kind) => chat.rights.includes(KINDS[kind].right);
    return html`<dialog
      class="dialog links-dialog"
      aria-labelledby="links-title"
      data-testid="links-dialog"
    >
      <div class="dialog-form">
        <header>
          <h2 id="links-title">${gettext("Invite, share, download")}</h2>
          <button
            type="button"
            class="icon-button"
            aria-label=${gettext("Close")}
            title=${gettext("Close")}
            @click=${this._close}
          >
            ${glyph("close")}
          </button>
        </header>
        <div class="dialog-body">
          ${this._error ? html`<p class="dialog-error" role="alert">${this._error}</p>` : nothing}
          ${
            chat.home
              ? nothing
              : html`<section aria-labelledby="links-invite">
                    <h3 id="links-invite">${gettext("Invite by a link")}</h3>
                    <p class="quiet">
                      ${gettext("Anyone who signs in can join this chat with the link.")}
                    </p>
                    ${may("invite") ? this._inviteForm(chat) : nothing}${this._list("invite")}
                  </section>
                  <section aria-labelledby="links-share">
                    <h3 id="links-share">${gettext("Public read-only link")}</h3>
                    <p class="quiet">
                      ${gettext(
                        "Anyone with the link can read the messages without signing in. All members can see that the link exists.",
                      )}
                    </p>
                    ${
                      may("share")
                        ? this._shareForm()
                        : html`<p class="quiet">
                            ${gettext("Only owners and admins can create these links.")}
                          </p>`
                    }${this._list("share")}
                  </section>`
          }
          <section aria-labelledby="links-file">
            <h3 id="links-file">${gettext("Download the chat")}</h3>
            <ul class="download-list">
              ${Object.entries(FORMATS).map(
                ([format, [name, about]]) =>
                  html`<li>
                    <a
                      class="button"
                      href="/api/v1/chats/${encodeURIComponent(chat.id)}/export?format=${format}"
                      download
                      data-testid="export-${format}"
                      >${glyph("down")}${name}</a
                    >
                    <span class="quiet">${about}</span>
                  </li>`,
              )}
            </ul>
          </section>
        </div>
      </div>
    </dialog>`;
  }

  /** @param {import("../store/chat.js").Chat} chat */
  _inviteForm(chat) {
    const own = chat.participants.find(
      ({ kind, id }) => kind === "user" && String(id) === me.id,
    )?.role;
    const roles =
      own === "owner"
        ? ["member", "admin", "owner"]
        : own === "admin"
          ? ["member", "admin"]
          : ["member"];
    return html`<form
        class="link-form"
        @submit=${(/** @type {SubmitEvent} */ event) => this._make(event, "invite")}
      >
        ${this._choice(
          "days",
          gettext("Ends after"),
          DAYS.map((days) => [days, daysText(days)]),
          7,
        )}
        ${this._choice(
          "most_uses",
          gettext("Max. uses"),
          [
            ["", gettext("Unlimited")],
            ...USES.map((uses) => /** @type {[number, string]} */ ([uses, usesText(uses)])),
          ],
          "",
        )}
        ${
          roles.length > 1
            ? this._choice(
                "role",
                gettext("Role"),
                roles.map((role) => [role, ROLES[/** @type {keyof typeof ROLES} */ (role)]]),
                "member",
              )
            : nothing
        }
        <button type="submit" class="button" data-testid="make-invite" ?disabled=${this._busy}>
          ${glyph("link")}${gettext("Create invite link")}
        </button>
      </form>
      ${this._address("invite")}`;
  }

  _shareForm() {
    return html`<form
        class="link-form"
        @submit=${(/** @type {SubmitEvent} */ event) => this._make(event, "share")}
      >
        ${this._choice(
          "days",
          gettext("Ends after"),
          DAYS.map((days) => [days, daysText(days)]),
          7,
        )}
        ${this._choice(
          "grows",
          gettext("Show"),
          [
            ["", gettext("messages so far")],
            ["1", gettext("later messages too")],
          ],
          "",
        )}
        <button type="submit" class="button" data-testid="make-share" ?disabled=${this._busy}>
          ${glyph("link")}${gettext("Create public link")}
        </button>
      </form>
      ${this._address("share")}`;
  }

  /**
   * @param {string} name
   * @param {string} label
   * @param {(readonly [string|number, string])[]} choices
   * @param {string|number} chosen
   */
  _choice(name, label, choices, chosen) {
    return html`<label
      >${label}
      <select class="field" name=${name}>
        ${choices.map(
          ([value, text]) =>
            html`<option value=${value} ?selected=${value === chosen}>${text}</option>`,
        )}
      </select></label
    >`;
  }

  /** The address of the new link, which the server does not store. @param {Kind} kind */
  _address(kind) {
    if (this._made?.kind !== kind) return nothing;
    return html`<div class="link-address" role="status">
      <label
        >${gettext("Copy this link now. You won't be able to see it again.")}
        <input
          class="field"
          readonly
          .value=${this._made.url}
          data-testid="link-address"
          @focus=${(/** @type {FocusEvent} */ event) =>
            /** @type {HTMLInputElement} */ (event.target).select()}
      /></label>
      <button
        type="button"
        class="button button-primary"
        data-testid="copy-link"
        @click=${this._copy}
      >
        ${glyph(this._copied ? "check" : "copy")}${
          this._copied ? gettext("Copied") : gettext("Copy")
        }
      </button>
    </div>`;
  }

  /** @param {Kind} kind */
  _list(kind) {
    const active = this._links[kind].filter(({ state }) => state === "active");
    if (active.length === 0) return nothing;
    return html`<ul class="link-list" data-testid="${kind}-links">
      ${active.map(
        (link) =>
          html`<li>
            <span class="picker-text"
              ><b dir="auto"
                >${interpolate(gettext("By %(name)s, until %(day)s"), {
                  name: people.nameOf(link.created_by),
                  day: dayName(Date.parse(link.expires_at)),
                })}</b
              >
              <small>${kind === "invite" ? usedText(link) : openedText(link)}</small></span
            >
            ${
              this._mayRevoke(kind, link)
                ? html`<button
                    type="button"
                    class="button"
                    ?disabled=${this._busy}
                    @click=${() => this._revoke(kind, link)}
                  >
                    ${gettext("Revoke")}
                  </button>`
                : nothing
            }
          </li>`,
      )}
    </ul>`;
  }

  /** @param {Kind} kind @param {Link} link */
  _mayRevoke(kind, link) {
    return (
      this._chat?.rights.includes("share") || (kind === "invite" && link.created_by === me.username)
    );
  }

  /** @param {SubmitEvent} event @param {Kind} kind */
  async _make(event, kind) {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
    /** @type {Record<string, any>} */
    const body = { days: Number(form.get("days")) };
    if (form.get("most_uses")) body.most_uses = Number(form.get("most_uses"));
    if (form.get("role")) body.role = form.get("role");
    if (kind === "share") body.grows = Boolean(form.get("grows"));
    await this._do(async () => {
      const link = await api.post(this._path(kind), body);
      this._made = { kind, id: link.id, url: link.url };
      this._copied = false;
      await this._read();
      await this.updateComplete;
      /** @type {HTMLInputElement|null} */ (this.querySelector(".link-address input"))?.focus();
    });
  }

  /** @param {Kind} kind @param {Link} link */
  async _revoke(kind, link) {
    await this._do(async () => {
      await api.send("DELETE", `${this._path(kind)}/${link.id}`);
      if (this._made?.id === link.id && this._made.kind === kind) this._made = null;
      await this._read();
      announce(gettext("The link no longer works."));
    });
    /** @type {HTMLElement|null} */ (this.querySelector("dialog .icon-button"))?.focus();
  }

  async _copy() {
    this._copied = await copyText(this._made?.url ?? "");
    announce(this._copied ? gettext("Copied") : gettext("Couldn't copy. The address is selected."));
    if (!this._copied)
      /** @type {HTMLInputElement|null} */ (this.querySelector(".link-address input"))?.select();
  }

  async _read() {
    const [invite, share] = await Promise.all([
      api.get(this._path("invite")),
      api.get(this._path("share")),
    ]);
    this._links = { invite: invite.data, share: share.data };
  }

  /** @param {Kind} kind */
  _path(kind) {
    return `/chats/${encodeURIComponent(this._chat?.id ?? "")}/${KINDS[kind].path}`;
  }

  _close() {
    this.querySelector("dialog")?.close();
  }

  /** @param {() => Promise<void>} work */
  async _do(work) {
    this._error = "";
    this._busy = true;
    try {
      await work();
    } catch (problem) {
      if (!isApiError(problem)) throw problem;
      this._error = problem.message;
    } finally {
      this._busy = false;
    }
  }
}
customElements.define("links-dialog", LinksDialog);
