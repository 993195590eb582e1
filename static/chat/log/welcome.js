/**
 * The greeting in a chat without messages: an agent of the chat introduces itself, with three
 * things to try.
 */

import { start, store } from "../context.js";
import { face, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

/** @typedef {import("../store/chat.js").Chat} Chat */
/** @typedef {import("../store/chat.js").Participant} Participant */

/**
 * The agent that greets: the assistant, else the first free one.
 * @param {Chat} chat
 * @returns {Participant|undefined}
 */
function greeterOf({ participants }) {
  const agents = participants.filter(({ kind, online }) => kind === "agent" && online !== false);
  return agents.find(({ name }) => name === "assistant") ?? agents.find(({ pricing }) => !pricing);
}

/** @param {Event} event @param {string} type @param {unknown} [detail] */
const fire = (event, type, detail) =>
  event.currentTarget?.dispatchEvent(new CustomEvent(type, { bubbles: true, detail }));

/** The hint that no agent here has a model, and who can change that. */
function modelHint() {
  if (!start.needs_model) return nothing;
  const advice = start.may_connect_model
    ? html`<a href="/connect-model">${gettext("Connect a model")}</a>
        ${gettext("with an API key, or a model server on this machine. It takes a minute.")}`
    : gettext("An operator of this server can connect one.");
  return html`<p class="welcome-model" data-testid="needs-model">
    ${gettext("No AI model is connected yet, so a script answers.")} ${advice}
  </p>`;
}

/**
 * Fires (bubbling) `ask-again` with a text for the composer, `choose-files`, and `share-chat` or
 * `add-members` with the chat.
 * @param {string} chatId
 */
export function welcome(chatId) {
  const chat = store.get(chatId);
  const greeter = chat && greeterOf(chat);
  if (!chat || !greeter)
    return html`<div class="empty" data-testid="no-messages">
      ${glyph("message")}
      <h2>${gettext("No messages yet. Say hello!")}</h2>
    </div>`;
  const { name } = greeter;
  const text = gettext("What can you do?");
  const question = greeter.trigger === "always" ? text : `@${name} ${text}`;
  const invites = chat.rights.includes("add_members");
  return html`<div class="welcome" data-testid="no-messages">
    ${face(name, "agent")}
    <h2>${interpolate(gettext("Hi, I'm %(name)s."), { name })}</h2>
    <p>
      ${
        greeter.trigger === "always"
          ? gettext("I answer everything you write here.")
          : interpolate(
              gettext("Type @%(name)s and a question, and everyone in this chat sees my answer."),
              { name },
            )
      }
    </p>
    ${modelHint()}
    <div class="welcome-tries" role="group" aria-label=${gettext("Things to try")}>
      <button
        type="button"
        class="button"
        data-testid="try-ask"
        @click=${(/** @type {Event} */ event) => fire(event, "ask-again", question)}
      >
        ${glyph("spark")}${gettext("Ask a question")}
      </button>
      <button
        type="button"
        class="button"
        data-testid="try-file"
        @click=${(/** @type {Event} */ event) => fire(event, "choose-files")}
      >
        ${glyph("attach")}${gettext("Send a file")}
      </button>
      ${
        invites
          ? html`<button
              type="button"
              class="button"
              data-testid="try-invite"
              @click=${(/** @type {Event} */ event) => fire(event, "share-chat", chat)}
            >
              ${glyph("members")}${gettext("Invite someone")}
            </button>`
          : nothing
      }
    </div>
  </div>`;
}
