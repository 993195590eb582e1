/** One message of the chat: who, when, what, and how it ended. */

import { me } from "./context.js";
import { avatar, h, icon } from "./dom.js";
import { moreButton } from "./message-menu.js";
import { PartList, partsOf } from "./parts.js";
import { clockTime, fullTime } from "./time.js";
import { transportBadge } from "./transport-badge.js";

/**
 * @typedef {object} Entry a stored message, from REST or from the socket
 * @property {string} id
 * @property {number} seq
 * @property {string} role
 * @property {string} content
 * @property {object[]|null} content_items
 * @property {string} name
 * @property {string} sender_id
 * @property {"user"|"agent"} sender_kind
 * @property {number} at Unix ms
 * @property {string|null} response_id
 * @property {"completed"|"cancelled"|"failed"} status
 * @property {string} [transport] by which it, or its question, came
 * @property {string} [html]
 * @property {string} [error] why it failed, for people
 */

/** @returns {Entry} one shape for both transports: REST says ISO 8601, the socket says ms */
export function entryOf(message, seq = message.seq) {
  return {
    ...message,
    seq,
    at: typeof message.created_at === "number" ? message.created_at : Date.parse(message.created_at),
    status: message.status || "completed",
    transport: message.transport || "",
    sender_kind: message.sender_kind || (message.role === "assistant" ? "agent" : "user"),
  };
}

/** @param {Entry} entry */
export const isMine = (entry) =>
  entry.sender_kind === "user" && String(entry.sender_id) === me.id;

/** Name, badges and time above a message. */
export function messageHead(name, kind, at, transport) {
  return h(
    "header", { class: "message-head" },
    h("span", { class: "message-name" }, name),
    kind === "agent" && h("span", { class: "badge" }, "agent"),
    transportBadge(transport, kind === "agent"),
    at && h("time", { datetime: new Date(at).toISOString(), title: fullTime(at) }, clockTime(at)),
  );
}

const ENDINGS = {
  cancelled: { text: "Stopped", icon: "stop" },
  failed: { text: "The answer failed", icon: "alert" },
};

/** The line that says that an answer did not come to its end. */
export function endingLine(status, error) {
  const ending = ENDINGS[status];
  if (!ending) return null;
  const text = error ? `${ending.text}: ${error}` : ending.text;
  return h("p", { class: `message-ending is-${status}` }, icon(ending.icon), h("span", {}, text));
}

/** Offer under an answer that failed to ask once more. Fires (bubbling) `ask-again` with the question. */
export function offerAgain(view, question) {
  const again = h("button", { type: "button", class: "link", "data-testid": "ask-again" }, "Ask again");
  again.addEventListener("click", () => again.dispatchEvent(new CustomEvent("ask-again", { bubbles: true, detail: question })));
  view.querySelector("[data-testid=ask-again]")?.remove();
  view.querySelector(".message-ending")?.append(again);
}

class ChatMessage extends HTMLElement {
  /** @param {Entry} entry */
  show(entry) {
    this.entry = entry;
    const mine = isMine(entry);
    const name = entry.name || (entry.sender_kind === "agent" ? "Agent" : "Someone");
    this.className = `message ${mine ? "is-mine" : ""} from-${entry.sender_kind}`;
    this.setAttribute("role", "article");
    this.setAttribute("aria-label", `${mine ? "You" : name}, ${fullTime(entry.at)}`);
    this.dataset.testid = "message";
    this.dataset.id = entry.id;
    this.dataset.status = entry.status;
    this._parts = new PartList(false);
    this._parts.update(partsOf(entry), false);
    this._readers = h("div", { class: "readers" });
    this._foot = h("div", { class: "message-foot" });
    this.replaceChildren(
      h("div", { class: "message-side" }, avatar(name, entry.sender_kind)),
      h(
        "div", { class: "message-main" },
        messageHead(mine ? "You" : name, entry.sender_kind, entry.at, entry.transport),
        h(
          "div", { class: "bubble-row" },
          h("div", { class: "bubble" }, this._parts.element, endingLine(entry.status, entry.error)),
          moreButton(entry, mine ? "your message" : `the message of ${name}`),
        ),
        this._foot, this._readers,
      ),
    );
    return this;
  }

  /** A message that follows one of the same sender closely needs no head of its own. */
  follow(isFollowing) {
    this.classList.toggle("is-following", isFollowing);
  }

  /** @param {{user_id: string, username: string}[]} readers who have read up to here */
  showReaders(readers) {
    const names = readers.map((reader) => reader.username).join(", ");
    if (names === this._readers.title) return;
    this._readers.replaceChildren(
      ...readers.slice(0, 5).map((reader) => avatar(reader.username, "user")),
      ...(names ? [h("span", { class: "visually-hidden" }, `Read by ${names}`)] : []),
    );
    this._readers.title = names;
  }
}
customElements.define("chat-message", ChatMessage);
