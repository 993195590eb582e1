/**
 * The style page: the design tokens, and every component in all of its states, rendered from
 * samples by the pages' own modules and styles. Nothing here reaches the server, and nothing is
 * stored.
 */

import { answerWith } from "./network.js";
import { store } from "../chat/context.js";
import { entryOf } from "../chat/store/entry.js";
import { View } from "../chat/view.js";
import { html, render } from "../vendor/lit/lit.js";
import { welcome } from "../chat/log/welcome.js";
import "../agents/code-examples.js";
import "../chat/actions/emoji-picker.js";
import "../chat/actions/message-dialogs.js";
import "../chat/actions/message-menu.js";
import "../chat/actions/undo-bar.js";
import "../chat/calls/call-bar.js";
import "../chat/calls/call-dialog.js";
import "../chat/chat-view.js";
import "../chat/dialogs/chat-settings-dialog.js";
import "../chat/dialogs/links-dialog.js";
import "../chat/dialogs/media-viewer.js";
import "../chat/dialogs/member-dialog.js";
import "../chat/dialogs/message-console.js";
import "../chat/dialogs/new-chat-dialog.js";
import "../chat/dialogs/payer-dialog.js";
import "../chat/dialogs/verify-dialog.js";
import "../chat/keyboard/palette.js";
import "../chat/keyboard/shortcuts-dialog.js";
import "../chat/notifications/notification-banner.js";
import "../chat/panels/chat-list.js";
import "../chat/panels/chat-menu.js";
import "../chat/panels/connection-banner.js";
import "../chat/panels/members-panel.js";
import "../chat/panels/thread-panel.js";
import "../chat/person/profile-card.js";
import "../chat/person/settings-dialog.js";
import "../chat/search/search-dialog.js";
import "../chat/search/threads-dialog.js";
import "../money/balance.js";
import "../money/limits.js";
import "../money/spend.js";
import "../money/statement.js";
import "../money/tokens.js";
import "../money/topup.js";
import { CONTROLS } from "./controls.js";
import { MESSAGES } from "./sample-messages.js";
import { CHAT } from "./sample-people.js";
import { answerOf } from "./samples.js";
import { OTHERS, play } from "./scene.js";
import "./tokens.js";

answerWith(answerOf);

const SECTIONS = {
  tokens: "Tokens",
  controls: "Controls",
  chat: "The chat",
  panels: "Panels",
  dialogs: "Dialogs and menus",
  money: "Money",
  agents: "Agents",
};
const THEMES = { system: "System", light: "Light", dark: "Dark" };
const WORDS = {
  theme: "Theme",
  sections: "Sections",
  connection: "Connection",
  nothing: "No chat is open",
  thread: "Thread",
  list: "Chats",
  members: "Members",
  welcome: "A chat without messages",
};
const EXAMPLES = { Python: 'client.responses.create(model="report")', Shell: "curl $URL" };

/** @type {import("../uamp/client.js").ConnectionState[]} */
const CONNECTIONS = [
  { phase: "connecting", attempt: 2, retryAt: 0 },
  { phase: "waiting", attempt: 3, retryAt: Date.now() + 9_000, lostAt: Date.now() - 60_000 },
  { phase: "waiting", attempt: 1, retryAt: Date.now() + 9_000, isRestart: true },
  { phase: "offline", attempt: 1, retryAt: 0 },
  { phase: "refused", attempt: 0, retryAt: 0 },
  { phase: "closed", attempt: 0, retryAt: 0 },
];

const ENTRIES = MESSAGES.map((message) => entryOf(message));
const [PERSON, , , , AGENT] = CHAT.participants;
const entry = (/** @type {string} */ id) => ENTRIES.find((one) => one.id === id);
const part = (/** @type {string} */ name) => /** @type {any} */ (document.querySelector(name));
const search = async () => {
  await part("search-dialog").open();
  const field = /** @type {HTMLInputElement} */ (part("search-dialog").querySelector("input"));
  field.value = "plan from:bob ";
  field.dispatchEvent(new Event("input"));
};

/**
 * Functions that open the dialogs, by their elements.
 * @type {Record<string, (origin: HTMLElement) => void>}
 */
const OPENERS = {
  "new-chat-dialog": () => part("new-chat-dialog").startChat(),
  "chat-settings-dialog": () => part("chat-settings-dialog").open(CHAT),
  "member-dialog": () => part("member-dialog").open(CHAT, AGENT),
  "member-dialog of a person": () => part("member-dialog").open(CHAT, PERSON),
  "links-dialog": () => part("links-dialog").open(CHAT),
  "payer-dialog": () => part("payer-dialog").open(CHAT),
  "verify-dialog": () => part("verify-dialog").open(CHAT),
  "profile-card": () => part("profile-card").open({ kind: "user", name: "bob" }),
  "call-dialog": () => part("call-dialog").open(CHAT),
  "settings-dialog": () => part("settings-dialog").open("profile"),
  "settings-dialog at notifications": () => part("settings-dialog").open("notifications"),
  "search-dialog": search,
  "threads-dialog": () => part("threads-dialog").open(),
  "command-palette": () => part("command-palette").open(),
  "shortcuts-dialog": () => part("shortcuts-dialog").open(),
  "message-console": () => part("message-console").open(entry("done")),
  "media-viewer": (origin) =>
    part("media-viewer").open(origin, {
      kind: "table",
      url: "/api/content/00000000-0000-4000-8000-000000000001",
      name: "costs.csv",
    }),
  "media-viewer of a picture": (origin) =>
    part("media-viewer").open(origin, {
      kind: "image",
      url: new URL("../chat/icon.svg", import.meta.url).href,
      name: "icon.svg",
    }),
  "media-viewer of a PDF": (origin) =>
    part("media-viewer").open(origin, {
      kind: "pdf",
      url: new URL("sample.pdf", import.meta.url).href,
      name: "sample.pdf",
    }),
  "delete-dialog": (origin) => part("delete-dialog").open(origin, entry("mine")),
  "revisions-dialog": (origin) => part("revisions-dialog").open(origin, entry("mine")),
  "chat-menu": (origin) => part("chat-menu").open(origin, CHAT),
  "message-menu": (origin) => part("message-menu").open(origin, entry("mine")),
  "emoji-picker": (origin) => part("emoji-picker").open(origin, entry("root")),
};

class StylePage extends View {
  render() {
    return html` <header class="style-head">
        <h1>${"Style"}</h1>
        <nav aria-label=${WORDS.sections}>
          ${Object.entries(SECTIONS).map(([id, title]) => html`<a href="#${id}">${title}</a>`)}
        </nav>
        <fieldset class="style-themes">
          <legend class="visually-hidden">${WORDS.theme}</legend>
          ${Object.entries(THEMES).map(
            ([theme, name]) =>
              html`<label>
                <input
                  type="radio"
                  name="style-theme"
                  value=${theme}
                  ?checked=${theme === (document.documentElement.dataset.theme ?? "system")}
                  @change=${() => this._showIn(theme)}
                />${name}</label
              >`,
          )}
        </fieldset>
      </header>
      ${this._section("tokens", html`<design-tokens></design-tokens>`)}
      ${this._section(
        "controls",
        html`${Object.entries(CONTROLS).map(
          ([title, draw]) =>
            html`<h3>${title}</h3>
              <div class="style-row">${draw()}</div>`,
        )}`,
      )}
      ${this._section("chat", html`<div class="style-frame is-chat"><chat-view></chat-view></div>`)}
      ${this._section(
        "panels",
        html` <h3>${WORDS.connection}</h3>
          ${CONNECTIONS.map(
            (state) => html`<connection-banner .state=${state}></connection-banner>`,
          )}<call-bar></call-bar>
          <div class="style-columns">
            <div>
              <h3>${WORDS.list}</h3>
              <div class="style-frame"><chat-list></chat-list></div>
            </div>
            <div>
              <h3>${WORDS.members}</h3>
              <div class="style-frame"><members-panel></members-panel></div>
            </div>
            <div>
              <h3>${WORDS.thread}</h3>
              <div class="style-frame"><thread-panel></thread-panel></div>
            </div>
            <div>
              <h3>${WORDS.nothing}</h3>
              <div class="style-frame"><chat-view class="is-empty"></chat-view></div>
            </div>
            <div>
              <h3>${WORDS.welcome}</h3>
              <div class="style-frame" id="style-welcome"></div>
            </div>
          </div>
          <notification-banner></notification-banner>`,
      )}
      ${this._section(
        "dialogs",
        html`<div class="style-row">
            ${Object.entries(OPENERS).map(
              ([name, open]) =>
                html`<button
                  type="button"
                  class="button"
                  data-opens=${name.split(" ")[0]}
                  @click=${(/** @type {MouseEvent} */ event) =>
                    open(/** @type {HTMLElement} */ (event.currentTarget))}
                >
                  ${name}
                </button>`,
            )}
          </div>
          <new-chat-dialog></new-chat-dialog><payer-dialog></payer-dialog
          ><member-dialog></member-dialog><profile-card></profile-card><call-dialog></call-dialog
          ><chat-settings-dialog></chat-settings-dialog><links-dialog></links-dialog>
          <settings-dialog></settings-dialog><message-menu></message-menu><chat-menu></chat-menu
          ><emoji-picker></emoji-picker><delete-dialog></delete-dialog><undo-bar></undo-bar
          ><revisions-dialog></revisions-dialog> <search-dialog></search-dialog
          ><threads-dialog></threads-dialog><command-palette></command-palette
          ><shortcuts-dialog></shortcuts-dialog><message-console></message-console
          ><verify-dialog></verify-dialog
          ><media-viewer></media-viewer>`,
      )}
      ${this._section(
        "money",
        html`<div class="money">
          <money-balance></money-balance><money-topup></money-topup><money-spend></money-spend
          ><money-limits></money-limits> <money-approvals></money-approvals
          ><money-tokens></money-tokens><money-statement></money-statement>
        </div>`,
      )}
      ${this._section(
        "agents",
        html`<code-examples
          >${Object.entries(EXAMPLES).map(
            ([language, code]) =>
              html`<figure data-language=${language}>
                <figcaption>${language}</figcaption>
                <pre class="code-view" tabindex="0">${code}</pre>
              </figure>`,
          )}</code-examples
        >`,
      )}`;
  }

  /** @param {keyof typeof SECTIONS} id @param {unknown} content */
  _section(id, content) {
    return html`<section class="style-section" id=${id} aria-labelledby="style-${id}">
      <h2 id="style-${id}">${SECTIONS[id]}</h2>
      ${content}
    </section>`;
  }

  async firstUpdated() {
    await store.refresh();
    const view = part("chat-view");
    await view.open(CHAT.id);
    render(welcome(CHAT.id), /** @type {HTMLElement} */ (document.getElementById("style-welcome")));
    part("members-panel").chatId = CHAT.id;
    part("chat-list").select(CHAT.id);
    await part("thread-panel").open(CHAT.id, "root");
    view.querySelector("message-list").mayDecide = (/** @type {{key: string}} */ { key }) =>
      key !== OTHERS;
    await play(this);
    // The dialogs took the focus: scroll back to the top, or to the anchor in the address.
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
    (document.getElementById(location.hash.slice(1)) ?? document.body).scrollIntoView({
      block: "start",
    });
    this.dataset.ready = "";
  }

  /** Show the page in a colour scheme until it is closed. @param {string} theme */
  _showIn(theme) {
    const { dataset } = document.documentElement;
    if (theme === "system") delete dataset.theme;
    else dataset.theme = theme;
  }
}
customElements.define("style-page", StylePage);
