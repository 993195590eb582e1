/** The command palette (Ctrl+K): opens a chat or runs a command of the page by a few letters. */

import { isApiError } from "../api.js";
import { page, settings, store } from "../context.js";
import { unreadOf } from "../notifications/rules.js";
import { announce } from "../dom.js";
import { View, faceOfChat, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { sorted } from "./fuzzy.js";
import { gettext, interpolate } from "../words.js";

const SHOWN = 50;
const THEMES = { system: gettext("system"), light: gettext("light"), dark: gettext("dark") };

/** @param {string} theme of THEMES */
async function setTheme(theme) {
  try {
    await settings.change({ theme });
    announce(
      interpolate(gettext("Theme: %(name)s"), {
        name: THEMES[/** @type {keyof typeof THEMES} */ (theme)],
      }),
    );
  } catch (error) {
    if (!isApiError(error)) throw error;
    announce(error.message);
  }
}

/** @param {string} section */
const openSettings = (section) => () =>
  dispatchEvent(new CustomEvent("open-settings", { detail: section }));

/**
 * @typedef {object} Choice
 * @property {string} name
 * @property {string} note
 * @property {unknown} picture
 * @property {() => void} run
 */

/**
 * Fires (bubbling) the event of the chosen command: `open-chat`, `new-chat`, `open-search`,
 * `open-threads`, `toggle-members`, `share-chat`, `show-shortcuts`.
 */
class CommandPalette extends View {
  static properties = {
    _typed: { state: true },
    _active: { state: true },
    _isOpen: { state: true },
  };

  constructor() {
    super();
    this._typed = "";
    this._active = 0;
    this._isOpen = false;
    /** @type {Choice[]} */
    this._found = [];
  }

  connectedCallback() {
    super.connectedCallback();
    addEventListener("keydown", (event) => {
      const isWanted =
        (event.ctrlKey || event.metaKey) &&
        !event.shiftKey &&
        !event.altKey &&
        event.key.toLowerCase() === "k";
      if (!isWanted) return;
      event.preventDefault();
      if (this._isOpen) this._dialog.close();
      else if (!document.querySelector("dialog[open]")) this.open();
    });
  }

  async open() {
    this._typed = "";
    this._active = 0;
    this._isOpen = true;
    await this.updateComplete;
    this._dialog.showModal();
    this._input.value = "";
    this._input.focus();
  }

  get _dialog() {
    return /** @type {HTMLDialogElement} */ (this.querySelector("dialog"));
  }

  get _input() {
    return /** @type {HTMLInputElement} */ (this.querySelector("input"));
  }

  render() {
    this._found = this._isOpen
      ? sorted(this._typed, this._choices(), ({ name }) => name).slice(0, SHOWN)
      : [];
    return html`<dialog
      class="dialog palette"
      aria-label=${gettext("Commands and chats")}
      data-testid="palette"
      @close=${() => this._closed()}
      @click=${(/** @type {Event} */ event) => this._outside(event)}
    >
      <div class="palette-box">
        <label class="palette-field"
          >${glyph("search")}<input
            type="text"
            role="combobox"
            aria-label=${gettext("Jump to a chat or run a command")}
            placeholder=${gettext("Jump to a chat or run a command")}
            autocomplete="off"
            spellcheck="false"
            maxlength="100"
            aria-expanded="true"
            aria-controls="palette-list"
            aria-activedescendant=${this._found.length ? `palette-${this._active}` : nothing}
            data-testid="palette-text"
            @input=${() => this._written()}
            @keydown=${(/** @type {KeyboardEvent} */ event) => this._key(event)}
        /></label>
        <ul
          class="palette-list"
          id="palette-list"
          role="listbox"
          aria-label=${gettext("Commands and chats")}
        >
          ${this._found.map((choice, at) => this._option(choice, at))}
        </ul>
        ${
          this._found.length
            ? nothing
            : html`<p class="palette-none" role="status">
                ${gettext("No results. Try a shorter search.")}
              </p>`
        }
      </div>
    </dialog>`;
  }

  updated() {
    this.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }

  /** @param {Choice} choice @param {number} at */
  _option(choice, at) {
    return html`<li
      role="option"
      id="palette-${at}"
      aria-selected=${String(at === this._active)}
      @click=${() => this._choose(choice)}
    >
      ${choice.picture}<span dir="auto">${choice.name}</span><small>${choice.note}</small>
    </li>`;
  }

  /** @returns {Choice[]} */
  _choices() {
    const fire = (/** @type {string} */ type) => () =>
      this.dispatchEvent(new CustomEvent(type, { bubbles: true }));
    const go = (/** @type {string} */ path) => () => location.assign(path);
    const logout = /** @type {HTMLFormElement|null} */ (
      document.querySelector("form[action$='logout/'], form[action$=logout]")
    );
    const isInChat = Boolean(document.querySelector("chat-view .members-button"));
    /** @type {(Choice|false)[]} */
    const commands = [
      { name: gettext("New chat"), note: "", picture: glyph("add"), run: fire("new-chat") },
      {
        name: gettext("Search messages"),
        note: gettext("Ctrl+Shift+F"),
        picture: glyph("search"),
        run: fire("open-search"),
      },
      {
        name: gettext("Threads"),
        note: gettext("Ctrl+Shift+L"),
        picture: glyph("thread"),
        run: fire("open-threads"),
      },
      isInChat && {
        name: gettext("Show or hide the members"),
        note: "",
        picture: glyph("members"),
        run: fire("toggle-members"),
      },
      isInChat && {
        name: gettext("Invite, share, download"),
        note: "",
        picture: glyph("link"),
        run: () =>
          this.dispatchEvent(
            new CustomEvent("share-chat", { bubbles: true, detail: store.get(page.state.chatId) }),
          ),
      },
      {
        name: gettext("Keyboard shortcuts"),
        note: "?",
        picture: glyph("code"),
        run: fire("show-shortcuts"),
      },
      ...Object.entries(THEMES)
        .filter(([theme]) => theme !== settings.values.theme)
        .map(([theme, label]) => ({
          name: interpolate(gettext("Theme: %(name)s"), { name: label }),
          note: "",
          picture: glyph("spark"),
          run: () => setTheme(theme),
        })),
      { name: gettext("Settings"), note: "", picture: glyph("settings"), run: openSettings("") },
      {
        name: gettext("Notifications"),
        note: gettext("Settings"),
        picture: glyph("settings"),
        run: openSettings("notifications"),
      },
      {
        name: gettext("Profile and picture"),
        note: gettext("Settings"),
        picture: glyph("settings"),
        run: openSettings("profile"),
      },
      {
        name: gettext("Account and API keys"),
        note: "",
        picture: glyph("file"),
        run: go("/account"),
      },
      { name: gettext("Money"), note: "", picture: glyph("wallet"), run: go("/money") },
      { name: gettext("Agents"), note: "", picture: glyph("spark"), run: go("/agents") },
      logout !== null && {
        name: gettext("Sign out"),
        note: "",
        picture: glyph("back"),
        run: () => logout.requestSubmit(),
      },
    ];
    const chats = store.list.map((chat) => {
      const others = store.others(chat);
      const run = () =>
        this.dispatchEvent(new CustomEvent("open-chat", { bubbles: true, detail: chat.id }));
      return {
        name: store.nameOf(chat),
        note: unreadOf(chat).counts
          ? interpolate(gettext("%(n)s unread"), { n: unreadOf(chat).shown })
          : gettext("Chat"),
        picture: faceOfChat(chat, store.nameOf(chat), others),
        run,
      };
    });
    return [...commands.filter((command) => command !== false), ...chats];
  }

  _written() {
    this._typed = this._input.value;
    this._active = 0;
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    // Keys belong to an input method while it composes.
    if (event.isComposing || event.keyCode === 229) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this._found.length) {
      event.preventDefault();
      this._active = (this._active + step + this._found.length) % this._found.length;
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (this._found[this._active]) this._choose(this._found[this._active]);
    } else if (event.key === "Escape") event.stopPropagation();
  }

  /** @param {Choice} choice */
  _choose({ run }) {
    this._dialog.close();
    run();
  }

  _closed() {
    this._isOpen = false;
  }

  /** @param {Event} event a click beside the box closes it */
  _outside(event) {
    if (event.target === this._dialog) this._dialog.close();
  }
}
customElements.define("command-palette", CommandPalette);
