/** A dialog that starts a chat, or adds people and agents to one. */

import { api, store } from "../context.js";
import { h, iconButton, whileBusy } from "../dom.js";
import { PeoplePicker } from "./people-picker.js";
import { gettext } from "../words.js";

/** Fires (bubbling) `open-chat` (detail: id of the chat that was made). */
class NewChatDialog extends HTMLElement {
  connectedCallback() {
    this._dialog = h("dialog", { class: "dialog", "aria-labelledby": "dialog-title", "data-testid": "new-chat-dialog" });
    this.append(this._dialog);
  }

  /** Start a chat. */
  startChat() {
    const title = h("input", { class: "field", id: "chat-name", maxlength: 200, autocomplete: "off", placeholder: gettext("Optional") });
    const name = [h("label", { for: "chat-name" }, gettext("Name")), title];
    this._show(gettext("New chat"), gettext("Start chat"), name, new Set(), async (users, agents) => {
      const chat = await store.create(title.value.trim(), users, agents);
      this.dispatchEvent(new CustomEvent("open-chat", { bubbles: true, detail: chat.id }));
    });
  }

  /** @param {import("../chat-store.js").Chat} chat to which members are added */
  addTo(chat) {
    const taken = new Set(chat.participants.map(({ kind, name }) => `${kind}:${name}`));
    this._show(gettext("Add people and agents"), gettext("Add"), [], taken, async (users, agents) => {
      const path = `/chats/${encodeURIComponent(chat.id)}/participants`;
      for (const user of users) await api.post(path, { user });
      for (const agent of agents) await api.post(path, { agent });
      await store.reload(chat.id);
    });
  }

  _show(heading, action, fields, taken, done) {
    const picker = new PeoplePicker(taken);
    const error = h("p", { class: "dialog-error", role: "alert", hidden: true });
    const button = h("button", { type: "submit", class: "button button-primary" }, action);
    const submit = async (event) => {
      event.preventDefault();
      const named = (kind) => Array.from(picker.chosen.values()).filter((p) => p.kind === kind).map((p) => p.name);
      try {
        await whileBusy(button, () => done(named("user"), named("agent")));
        this._dialog.close();
      } catch (problem) {
        if (problem.name !== "ApiError") throw problem;
        error.hidden = false;
        error.textContent = problem.message;
      }
    };
    this._dialog.replaceChildren(
      h(
        "form", { class: "dialog-form", onsubmit: submit },
        h("header", {}, h("h2", { id: "dialog-title" }, heading), iconButton("close", gettext("Close"), { onclick: () => this._dialog.close() })),
        h("div", { class: "dialog-body" }, fields, picker.element),
        h("footer", {}, error, h("button", { type: "button", class: "button", onclick: () => this._dialog.close() }, gettext("Cancel")), button),
      ),
    );
    this._dialog.showModal();
    // On a phone the keyboard would cover the list.
    if (matchMedia("(pointer: fine)").matches) this._dialog.querySelector(".dialog-body input").focus();
  }
}
customElements.define("new-chat-dialog", NewChatDialog);
