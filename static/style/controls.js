/**
 * The small parts that consist of styles alone: buttons, fields, avatars, badges, menus, loading,
 * empty states.
 */

import { PATHS } from "../chat/dom.js";
import "../chat/controls/tabs.js";
import "../chat/controls/copy-button.js";
import "../chat/parts/picture-preview.js";
import { colourChoice } from "../chat/person/avatar-picker.js";
import { signatureDetails, signatureMark } from "../chat/log/signature-badge.js";
import { dots, face, faceOf, faceOfChat, glyph, spinner } from "../chat/view.js";
import { html } from "../vendor/lit/lit.js";

/** @typedef {import("../vendor/lit/lit.js").TemplateResult} TemplateResult */

const WORDS = {
  button: "Button",
  primary: "Primary",
  quiet: "Quiet",
  danger: "Danger",
  disabled: "Disabled",
  link: "Link",
  label: "Label",
  filled: "Filled",
  area: "Several lines",
  choice: "Choice",
  checked: "Checked",
  unread: "Unread",
  agent: "agent",
  loading: "Loading",
  empty: "Nothing here",
  teaches: "What one can do about it.",
  act: "Do it",
  first: "First",
  second: "Second",
  item: "Reply",
  dangerous: "Delete",
  kept: "What you write is kept.",
  note: "A note",
  failed: "It failed",
  ok: "Done",
  busy: "Working",
  sheet: "costs.csv",
  film: "film.mov",
  size: "4 kB",
  card: "Shall this browser tell you when you are mentioned?",
};
const ICON = new URL("../chat/icon.svg", import.meta.url).href;
const NAMES = [
  "alice",
  "bob",
  "caro",
  "dana",
  "Eve Ng",
  "frank",
  "gül",
  "hana",
  "ivo",
  "Jo Li",
  "kim",
  "lars",
];

const buttons = () =>
  html` <button type="button" class="button">${WORDS.button}</button
    ><button type="button" class="button button-primary">${WORDS.primary}</button>
    <button type="button" class="button button-quiet">${WORDS.quiet}</button
    ><button type="button" class="button button-danger">${WORDS.danger}</button>
    <button type="button" class="button" disabled>${WORDS.disabled}</button
    ><button type="button" class="button button-primary" disabled>${WORDS.disabled}</button>
    <button type="button" class="link">${WORDS.link}</button>
    <button type="button" class="icon-button" aria-label=${WORDS.button}>${glyph("add")}</button>
    <button type="button" class="icon-button" aria-label=${WORDS.disabled} disabled>
      ${glyph("add")}</button
    ><kbd>Ctrl</kbd>`;

const fields = () =>
  html` <label>${WORDS.label}<input class="field" placeholder=${WORDS.label} /></label
    ><label>${WORDS.filled}<input class="field" value=${WORDS.filled} /></label>
    <label>${WORDS.disabled}<input class="field" value=${WORDS.disabled} disabled /></label
    ><label>${WORDS.area}<textarea class="field" rows="2"></textarea></label>
    <label
      >${WORDS.choice}<select class="field">
        <option>${WORDS.first}</option>
        <option>${WORDS.second}</option>
      </select></label
    >
    <label class="picker-option"
      ><span class="picker-text"><b>${WORDS.checked}</b><small>${WORDS.teaches}</small></span
      ><input type="checkbox" checked
    /></label>
    <p class="dialog-error" role="note">${WORDS.failed}</p>
    ${colourChoice("style_colour", "", () => {})}`;

const avatars = () =>
  html`${NAMES.map((name, at) =>
    face(name, at % 3 === 2 ? "agent" : "user", at === 0),
  )}${faceOf("dana", { avatar_emoji: "🦊" })}${faceOf("dana", {
    avatar_colour: "#ffd166",
  })}${faceOf("dana", { avatar_url: ICON })}${faceOfChat({ avatar: "" }, "Weekend in Lyon", [])}`;

const badges = () =>
  html`<span class="badge">${WORDS.agent}</span> <span class="badge transport">A2A</span>
    <span class="unread">3</span> <span class="unread is-mention">@2</span>
    <span class="unread is-muted">5</span>
    <span class="unread is-replies">${glyph("thread")}4</span>
    <span class="reply-new">${WORDS.unread}</span>
    <span class="muted-mark">${glyph("muted")}</span>
    ${
      /** @type {const} */ ([
        "valid",
        "rotated",
        "changed",
        "unsigned",
        "unknown_key",
        "erased",
        "unsupported",
      ]).map((state) => signatureMark({ state, request: "absent" }))
    }`;

const signed = () =>
  html`<div class="signed">${signatureDetails({
    state: "valid",
    request: "same",
    kid: "2b5c8f1a9d3e7046",
    claims: {
      iss: "https://chat.example.org",
      sub: "agent_1",
      agent: "atlas",
      chat_id: "chat_1",
      jti: "resp_1",
      iat: 1767323045,
      response_hash: "",
      output_hash: "",
      request_hash: "",
      models: ["model-1"],
      price: { amount: "0.25", currency: "USD", transfer_id: "tr_1" },
      digital_source_type: "trainedAlgorithmicMedia",
    },
  })}</div>`;

const icons = () =>
  html`${
    /** @type {(keyof typeof PATHS)[]} */ (Object.keys(PATHS)).map(
      (name) => html`<span title=${name}>${glyph(name)}</span>`,
    )
  }`;

const loading = () =>
  html`${spinner(WORDS.loading)}<span class="dots">${dots}</span
    ><span class="dots is-small">${dots}</span>
    <ul>
      <li class="skeleton">
        <i></i><span><b></b><b></b></span>
      </li>
    </ul>
    <div
      class="progress"
      role="progressbar"
      aria-label=${WORDS.busy}
      aria-valuenow="0"
      aria-valuemin="0"
      aria-valuemax="100"
    >
      <div class="progress-fill"></div>
    </div>
    <div class="progress is-unknown" role="progressbar" aria-label=${WORDS.busy}>
      <div class="progress-fill"></div>
    </div>
    <progress class="upload" max="1" value="0.4" aria-label=${WORDS.busy}></progress>`;

const empty = () =>
  html`<div class="empty" role="note">
    ${glyph("message")}
    <h3>${WORDS.empty}</h3>
    <p>${WORDS.teaches}</p>
    <button type="button" class="button button-primary">${WORDS.act}</button>
  </div>`;

const tabs = () =>
  html`<tab-list
      .label=${WORDS.choice}
      .tabs=${[WORDS.first, WORDS.second].map((name) => ({ name, panel: `style-${name}` }))}
      .chosen=${WORDS.first}
    ></tab-list>
    ${[WORDS.first, WORDS.second].map(
      (name) =>
        html`<pre
          class="code-view"
          tabindex="0"
          role="tabpanel"
          id="style-${name}"
          aria-labelledby="tab-style-${name}"
          ?hidden=${name !== WORDS.first}
        >
${name}</pre>`,
    )}
    <copy-button .label=${WORDS.button} .text=${WORDS.first}></copy-button>`;

const menus = () =>
  html`<div class="menu style-menu" role="menu" aria-label=${WORDS.choice}>
    <button type="button" role="menuitem" class="menu-item">
      ${glyph("reply")}<span>${WORDS.item}</span>
    </button>
    <button type="button" role="menuitem" class="menu-item is-dangerous">
      ${glyph("bin")}<span>${WORDS.dangerous}</span>
    </button>
  </div>`;

const notes = () =>
  html`<p class="composer-note">${WORDS.kept}</p>
    <p class="call-note">${WORDS.note}</p>
    <div class="notice-card" role="group" aria-label=${WORDS.note}>
      <p>${WORDS.card}</p>
      <div><button type="button" class="button button-primary">${WORDS.act}</button></div>
    </div>
    <a class="media-image" href=${ICON}
      ><img src=${ICON} alt=${WORDS.label} width="96" height="96"
    /></a>
    <picture-preview .src=${`${ICON}#`} .name=${WORDS.label}></picture-preview>
    <div class="tray">
      <div class="tray-item">
        ${glyph("file")}<span class="file-text"
          ><span class="file-name">${WORDS.sheet}</span><small>${WORDS.size}</small></span
        >
      </div>
      <div class="tray-item is-failed">
        ${glyph("file")}<span class="file-text"
          ><span class="file-name">${WORDS.film}</span><small>${WORDS.failed}</small></span
        >
      </div>
    </div>`;

/** By their titles. @type {Record<string, () => TemplateResult>} */
export const CONTROLS = {
  Buttons: buttons,
  Fields: fields,
  Avatars: avatars,
  Badges: badges,
  "What was signed": signed,
  Icons: icons,
  Loading: loading,
  "Empty state": empty,
  Tabs: tabs,
  Menu: menus,
  "Notes, pictures and files": notes,
};
