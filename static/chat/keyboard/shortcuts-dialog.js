/** The list of the page's keys and commands; "?" opens it. */

import { COMMANDS } from "../composer/commands.js";
import { View, glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { gettext } from "../words.js";

const MODIFIER = /Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘" : gettext("Ctrl");
const SHIFT = gettext("Shift");

/** @type {{heading: string, keys: [string, string][]}[]} every listed key works on the page */
const KEYS = [
  {
    heading: gettext("Anywhere"),
    keys: [
      ["?", gettext("Show keyboard shortcuts")],
      [`${MODIFIER} K`, gettext("Jump to a chat or run a command")],
      [`${MODIFIER} ${SHIFT} F`, gettext("Search messages")],
      [`${MODIFIER} ${SHIFT} L`, gettext("Threads you follow")],
      [gettext("Esc"), gettext("Close dialog, or stop your running answers")],
    ],
  },
  {
    heading: gettext("While you write"),
    keys: [
      ["Enter", gettext("Send")],
      [gettext("Shift Enter"), gettext("New line")],
      [gettext("Alt Enter"), gettext("Queue: send when the answer is done")],
      ["@", gettext("Mention a member")],
      ["↑", gettext("Edit last message (empty composer)")],
    ],
  },
  {
    heading: gettext("In the messages"),
    keys: [
      ["↑ ↓", gettext("Move between messages")],
      ["M", gettext("Open the message menu")],
      ["T", gettext("Open the thread of a message; Esc closes it")],
    ],
  },
  {
    heading: gettext("In a call"),
    keys: [["M", gettext("Toggle mute (when not typing)")]],
  },
];

/** @param {EventTarget|null} target */
const isWriting = (target) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.matches("input, textarea, select"));

class ShortcutsDialog extends View {
  connectedCallback() {
    super.connectedCallback();
    addEventListener("show-shortcuts", () => this.open());
    addEventListener("keydown", (event) => {
      if (
        event.key !== "?" ||
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        event.isComposing ||
        isWriting(event.target)
      )
        return;
      if (document.querySelector("dialog[open]")) return;
      event.preventDefault();
      this.open();
    });
  }

  open() {
    this._dialog.showModal();
  }

  get _dialog() {
    return /** @type {HTMLDialogElement} */ (this.querySelector("dialog"));
  }

  render() {
    return html`<dialog class="dialog" aria-labelledby="shortcuts-title" data-testid="shortcuts">
      <div class="dialog-form">
        <header>
          <h2 id="shortcuts-title">${gettext("Shortcuts and commands")}</h2>
          <button
            type="button"
            class="icon-button"
            aria-label=${gettext("Close")}
            title=${gettext("Close")}
            @click=${() => this._dialog.close()}
          >
            ${glyph("close")}
          </button>
        </header>
        <div
          class="dialog-body shortcuts"
          tabindex="0"
          role="region"
          aria-labelledby="shortcuts-title"
        >
          ${KEYS.map(
            ({ heading, keys }) =>
              html`<h3>${heading}</h3>
                <dl>
                  ${keys.map(
                    ([key, note]) =>
                      html`<div>
                        <dt>${key.split(" ").map((one) => html`<kbd>${one}</kbd>`)}</dt>
                        <dd>${note}</dd>
                      </div>`,
                  )}
                </dl>`,
          )}
          <h3>${gettext("Commands in the message field")}</h3>
          <dl>
            ${COMMANDS.map(
              ({ name, argument, note }) =>
                html`<div>
                  <dt><kbd>/${name}${argument ? ` ${argument}` : ""}</kbd></dt>
                  <dd>${note}</dd>
                </div>`,
            )}
          </dl>
        </div>
      </div>
    </dialog>`;
  }
}
customElements.define("shortcuts-dialog", ShortcutsDialog);
