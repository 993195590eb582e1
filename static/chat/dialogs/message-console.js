/**
 * A dialog with the frames that carry a message in each protocol, and the call that asks the same
 * again.
 */

import { api } from "../context.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { spinner } from "../view.js";
import { DialogView } from "./dialog-view.js";
import "../controls/copy-button.js";
import "../controls/tabs.js";
import { gettext, interpolate } from "../words.js";

/**
 * @typedef {object} Protocol as REST has it (`/messages/{id}/frames`)
 * @property {string} key
 * @property {string} label
 * @property {string} title
 * @property {import("../../uamp/types.js").Frame[]} frames
 * @property {boolean} is_cut
 * @property {{curl: string, in_chat: boolean}|null} call
 */

/**
 * Frames as readable text, separated by empty lines.
 * @param {Protocol["frames"]} frames
 */
const textOf = (frames) => frames.map((frame) => JSON.stringify(frame, null, 2)).join("\n\n");

export class MessageConsole extends DialogView {
  static properties = { _protocols: { state: true }, _chosen: { state: true } };

  constructor() {
    super();
    /** @type {Protocol[]|null} null until loaded */
    this._protocols = null;
    this._chosen = "";
  }

  /** @param {import("../store/entry.js").Entry} entry */
  async open(entry) {
    this._protocols = null;
    await this._show();
    await this._attempt(async () => {
      /** @type {{protocols: Protocol[]}} */
      const { protocols } = await api.get(`/messages/${encodeURIComponent(entry.id)}/frames`);
      this._protocols = protocols;
      this._chosen = protocols[0]?.label ?? "";
    });
    const tabs = /** @type {import("../controls/tabs.js").TabList|null} */ (
      this.querySelector("tab-list")
    );
    await tabs?.updateComplete;
    tabs?.focus();
  }

  render() {
    return html`<dialog
      class="dialog is-wide"
      aria-labelledby="console-title"
      data-testid="console"
    >
      <div class="dialog-form">
        ${this._head("console-title", gettext("View as…"))}
        <div class="dialog-body message-console">${this._body()}</div>
      </div>
    </dialog>`;
  }

  _body() {
    const protocols = this._protocols;
    if (this._error) return this._problem();
    if (!protocols) return spinner(gettext("Loading"));
    const tabs = protocols.map(({ key, label }) => ({ name: label, panel: `frames-${key}` }));
    return html`<tab-list
        .label=${gettext("Protocol")}
        .tabs=${tabs}
        .chosen=${this._chosen}
        @choose-tab=${(/** @type {CustomEvent<string>} */ event) => {
          this._chosen = event.detail;
        }}
      ></tab-list>
      ${protocols.map((protocol) => this._panel(protocol))}`;
  }

  /** @param {Protocol} protocol */
  _panel({ key, label, title, frames, is_cut: isCut, call }) {
    const text = textOf(frames);
    return html`<div
      class="message-console"
      role="tabpanel"
      id="frames-${key}"
      aria-labelledby="tab-frames-${key}"
      data-protocol=${key}
      ?hidden=${label !== this._chosen}
    >
      <p class="quiet">
        ${
          frames.length
            ? title
            : interpolate(gettext("%(title)s: no frames are stored for this message."), { title })
        }
      </p>
      ${
        frames.length
          ? html`<pre
              class="code-view"
              tabindex="0"
              aria-label=${interpolate(gettext("Frames of %(label)s"), { label })}
              data-testid="frames"
            >
${text}</pre>`
          : nothing
      }
      ${
        isCut
          ? html`<p class="quiet">${gettext("The message is long; the rest is omitted.")}</p>`
          : nothing
      }
      <div class="approval-form">
        ${
          frames.length
            ? html`<copy-button .label=${gettext("Copy frames")} .text=${text}></copy-button>`
            : nothing
        }${
          call
            ? html`<copy-button .label=${gettext("Copy as curl")} .text=${call.curl}></copy-button>`
            : nothing
        }
      </div>
      ${
        call
          ? html`<p class="quiet">
              ${
                call.in_chat
                  ? gettext("This call repeats the request in this chat, with your key in $KEY.")
                  : gettext(
                      "This call repeats the request in a new conversation, with your key in $KEY.",
                    )
              }
            </p>`
          : nothing
      }
    </div>`;
  }
}
customElements.define("message-console", MessageConsole);
