/** The notice shown instead of messages when no chat is open or the chat cannot be shown. */

import { glyph } from "./view.js";
import { html, nothing } from "../vendor/lit/lit.js";
import { gettext } from "./words.js";

/**
 * @typedef {object} Problem why the chat is not shown: an ApiError, or the error of its session
 * @property {number} [status]
 * @property {string} [code]
 * @property {string} message
 */

/**
 * A notice with an icon in place of messages.
 * @param {keyof typeof import("./dom.js").PATHS} name
 * @param {string} title
 * @param {string} text
 * @param {unknown} [action]
 */
const notice = (name, title, text, action = nothing) =>
  html`<div class="empty" role="note">
    ${glyph(name)}
    <h1>${title}</h1>
    <p>${text}</p>
    ${action}
  </div>`;

/** The notice that no chat is open. @param {() => void} begin starts one */
export const nothingOpen = (begin) =>
  notice(
    "message",
    gettext("Choose a chat"),
    gettext("Pick one from the list, or start a new one."),
    html`<button type="button" class="button button-primary" @click=${begin}>
      ${glyph("add")}${gettext("New chat")}
    </button>`,
  );

/**
 * The notice that explains why the chat is not shown.
 * @param {Problem} problem @param {() => void} again tries once more
 */
export function failure({ status, code = "", message }, again) {
  if (code === "removed")
    return notice(
      "alert",
      gettext("You're no longer in this chat"),
      gettext("Someone removed you or deleted the chat."),
    );
  if (status === 404 || ["chat_not_found", "forbidden"].includes(code)) {
    return notice(
      "alert",
      gettext("Chat not found"),
      gettext("It doesn't exist, or you're not a member. Ask a member to add you."),
    );
  }
  return notice(
    "alert",
    gettext("Couldn't load the chat"),
    `${message} ${gettext("Your text is kept.")}`,
    html`<button type="button" class="button button-primary" @click=${again}>
      ${gettext("Try again")}
    </button>`,
  );
}
