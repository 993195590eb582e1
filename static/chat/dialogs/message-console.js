/** A dialog with the frames of one message in each protocol, and the call that asks the same. */

import { api } from "../context.js";
import { copyButton } from "../copy-button.js";
import { h, iconButton } from "../dom.js";
import { tabsOf } from "../tabs.js";
import { gettext, interpolate } from "../words.js";

/** Frames as people read them: one after the other, an empty line between them. */
const textOf = (frames) => frames.map((frame) => JSON.stringify(frame, null, 2)).join("\n\n");

class MessageConsole extends HTMLElement {
  connectedCallback() {
    this._dialog = h("dialog", { class: "dialog is-wide", "aria-labelledby": "console-title", "data-testid": "console" });
    this.append(this._dialog);
  }

  /** @param {import("../store/entry.js").Entry} entry */
  async open(entry) {
    const spinner = h("div", { class: "spinner", role: "img", "aria-label": gettext("Loading") });
    const body = h("div", { class: "dialog-body message-console" }, spinner);
    this._said = h("p", { class: "visually-hidden", role: "status" });
    this._dialog.replaceChildren(
      h(
        "div", { class: "dialog-form" },
        h("header", {}, h("h2", { id: "console-title" }, gettext("Show as…")), iconButton("close", gettext("Close"), { onclick: () => this._dialog.close() })),
        body, this._said,
      ),
    );
    this._dialog.showModal();
    try {
      const { protocols } = await api.get(`/messages/${encodeURIComponent(entry.id)}/frames`);
      const panels = protocols.map((protocol) => ({ name: protocol.label, panel: this._panel(protocol) }));
      const { list } = tabsOf(gettext("Protocol"), panels);
      body.replaceChildren(list, ...panels.map(({ panel }) => panel));
      list.querySelector("[aria-selected=true]").focus();
    } catch (problem) {
      if (problem.name !== "ApiError") throw problem;
      body.replaceChildren(h("p", { class: "dialog-error", role: "alert" }, problem.message));
    }
  }

  _panel({ key, label, title, frames, is_cut: isCut, call }) {
    const text = textOf(frames);
    return h(
      "div", { class: "message-console", "data-protocol": key },
      h("p", { class: "quiet" }, frames.length ? title : interpolate(gettext("%(title)s: nothing of this message is kept as frames."), { title })),
      frames.length > 0 && h("pre", { class: "code-view", tabindex: "0", "aria-label": interpolate(gettext("Frames of %(label)s"), { label }), "data-testid": "frames" }, text),
      isCut && h("p", { class: "quiet" }, gettext("The message is long: what comes after this is left out.")),
      h(
        "div", { class: "approval-form" },
        frames.length > 0 && copyButton(gettext("Copy frames"), () => text, this._said),
        call && copyButton(gettext("Copy as curl"), () => call.curl, this._said),
      ),
      call && h("p", { class: "quiet" }, call.in_chat ? gettext("The call asks the same again in this chat, with your key in $KEY.") : gettext("The call asks the same again in a conversation of its own, with your key in $KEY.")),
    );
  }
}
customElements.define("message-console", MessageConsole);
