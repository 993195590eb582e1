/**
 * The line below the composer about a mention of a name that is not in the chat, or of an agent
 * that is switched off.
 */

import { isApiError } from "../api.js";
import { api, store } from "../context.js";
import { announce } from "../dom.js";
import { folded } from "../text/folding.js";
import { offlineMentions, unknownMentions } from "../store/mentions.js";
import { View, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

const ASK_AFTER_MS = 500;

/** @typedef {{kind: "user"|"agent", name: string}} Member */

/**
 * Look up a name: an available agent, or a person; null when the name is unknown.
 * @param {string} name
 * @returns {Promise<Member|null>}
 */
async function whoIs(name) {
  const agents = await api.get("/agents");
  const agent = (agents.data || agents).find(
    (/** @type {{name: string}} */ one) => folded(one.name) === name,
  );
  if (agent) return { kind: "agent", name: agent.name };
  const users = await api.get(`/users?q=${encodeURIComponent(name)}`);
  const user = users.data.find(
    (/** @type {{username: string}} */ one) => folded(one.username) === name,
  );
  return user ? { kind: "user", name: user.username } : null;
}

class MentionHint extends View {
  static properties = {
    chat: { attribute: false },
    text: { attribute: false },
    _found: { state: true },
    _said: { state: true },
  };

  constructor() {
    super();
    /** @type {import("../store/chat.js").Chat|undefined} */
    this.chat = undefined;
    /** The name being looked up. @type {string|undefined} */
    this._name = undefined;
    this._timer = 0;
    this.text = "";
    /** @type {Map<string, Promise<Member|null>>} */
    this._known = new Map();
    /** @type {{name: string, who: Member|null}|null} */
    this._found = null;
    this._said = "";
    this._onChats = () => this.requestUpdate();
  }

  connectedCallback() {
    super.connectedCallback();
    store.addEventListener("change", this._onChats);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    store.removeEventListener("change", this._onChats);
  }

  willUpdate() {
    const [name] = this.chat ? unknownMentions(this.text, this.chat.participants) : [];
    if (name === this._name) return;
    this._name = name;
    this._said = "";
    this._found = null;
    clearTimeout(this._timer);
    if (name) this._timer = window.setTimeout(() => this._ask(name), ASK_AFTER_MS);
  }

  render() {
    if (!this._found) {
      const [offline] = this.chat ? offlineMentions(this.text, this.chat.participants) : [];
      return html`<p
        class="mention-hint"
        role="status"
        data-testid=${offline ? "offline-hint" : nothing}
        ?hidden=${!offline}
      >
        ${
          offline
            ? interpolate(gettext("%(name)s is offline and can't answer right now."), {
                name: offline,
              })
            : ""
        }
      </p>`;
    }
    const { name, who } = this._found;
    return html`<p class="mention-hint" role="status" data-testid="mention-hint">
      <span
        >${
          who
            ? interpolate(gettext("%(name)s isn't in this chat."), { name: who.name })
            : interpolate(gettext("No agent or person is called @%(name)s."), { name })
        }
        ${this._said}</span
      >
      ${
        who
          ? html`<button type="button" class="link" @click=${() => this._add(who)}>
              ${glyph("add")}${interpolate(gettext("Add %(name)s"), { name: who.name })}
            </button>`
          : ""
      }
    </p>`;
  }

  /** @param {string} name */
  async _ask(name) {
    const asked = this._known.get(name) ?? whoIs(name);
    this._known.set(name, asked);
    try {
      const who = await asked;
      if (this._name === name) this._found = { name, who };
    } catch (error) {
      this._known.delete(name);
      // This is only a hint: the next mention tries again.
      if (!isApiError(error)) throw error;
    }
  }

  /** @param {Member} who */
  async _add({ kind, name }) {
    if (!this.chat) return;
    const { id } = this.chat;
    try {
      await api.post(`/chats/${encodeURIComponent(id)}/participants`, { [kind]: name });
      await store.reload(id);
      announce(interpolate(gettext("%(name)s is now in the chat."), { name }));
      this.closest("chat-composer")?.querySelector("textarea")?.focus();
    } catch (error) {
      if (!isApiError(error)) throw error;
      this._said = error.message;
    }
  }
}
customElements.define("mention-hint", MentionHint);
