/** The line below the composer about a mention of one who is not in the chat: add them, or say that the name is unknown. */

import { api, store } from "../context.js";
import { announce } from "../dom.js";
import { unknownMentions } from "../store/mentions.js";
import { View, glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

const ASK_AFTER_MS = 500;

/** Who is called so: an agent that one may use, or a person; null when the name is unknown. */
async function whoIs(name) {
  const agents = await api.get("/agents");
  const agent = (agents.data || agents).find((one) => one.name.toLowerCase() === name);
  if (agent) return { kind: "agent", name: agent.name };
  const users = await api.get(`/users?q=${encodeURIComponent(name)}`);
  const user = users.data.find((one) => one.username.toLowerCase() === name);
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
    this.text = "";
    /** @type {Map<string, Promise<{kind: string, name: string}|null>>} */
    this._known = new Map();
    /** @type {{name: string, who: {kind: string, name: string}|null}|null} */
    this._found = null;
    this._said = "";
  }

  willUpdate() {
    const [name] = this.chat ? unknownMentions(this.text, this.chat.participants) : [];
    if (name === this._name) return;
    this._name = name;
    this._said = "";
    this._found = null;
    clearTimeout(this._timer);
    if (name) this._timer = setTimeout(() => this._ask(name), ASK_AFTER_MS);
  }

  render() {
    if (!this._found) return html`<p class="mention-hint" role="status" hidden></p>`;
    const { name, who } = this._found;
    return html`<p class="mention-hint" role="status" data-testid="mention-hint">
      <span>${who ? interpolate(gettext("%(name)s is not in this chat."), { name: who.name }) : interpolate(gettext("There is no agent or person called @%(name)s."), { name })} ${this._said}</span>
      ${who ? html`<button type="button" class="link" @click=${() => this._add(who)}>${glyph("add")}${interpolate(gettext("Add %(name)s"), { name: who.name })}</button>` : ""}
    </p>`;
  }

  async _ask(name) {
    if (!this._known.has(name)) this._known.set(name, whoIs(name));
    try {
      const who = await this._known.get(name);
      if (this._name === name) this._found = { name, who };
    } catch (error) {
      this._known.delete(name);
      // It is only a hint: the next mention asks again.
      if (error.name !== "ApiError") throw error;
    }
  }

  async _add({ kind, name }) {
    const { id } = this.chat;
    try {
      await api.post(`/chats/${encodeURIComponent(id)}/participants`, { [kind]: name });
      await store.reload(id);
      announce(interpolate(gettext("%(name)s is in the chat now."), { name }));
      this.closest("chat-composer").querySelector("textarea").focus();
    } catch (error) {
      if (error.name !== "ApiError") throw error;
      this._said = error.message;
    }
  }
}
customElements.define("mention-hint", MentionHint);
