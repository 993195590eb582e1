/** The rows of the log, and the content before the first and after the last of them. */

import { page, store, threadPage } from "../context.js";
import { dayName } from "../text/time.js";
import { spinner } from "../view.js";
import { html, nothing, repeat } from "../../vendor/lit/lit.js";
import "../cards/approval-card.js";
import "../cards/payment-card.js";
import "./live-response.js";
import "./message.js";
import "./pending-turn.js";
import { repliesText } from "./reply-strip.js";
import { welcome } from "./welcome.js";
import { gettext } from "../words.js";

/** @typedef {import("../store/open-chat.js").OpenChat} OpenChat */
/** @typedef {import("../../uamp/approvals.js").Approval} Approval */

/**
 * @param {import("../store/rows.js").Row} row
 * @param {boolean} isDirect in a chat of two people each message says whether it was read
 */
export function rowTemplate(row, isDirect) {
  if (row.kind === "day")
    return html`<div class="separator is-day" role="separator">
      <span>${dayName(row.at)}</span>
    </div>`;
  if (row.kind === "unread")
    return html`<div class="separator is-unread" role="separator">
      <span>${gettext("New")}</span>
    </div>`;
  if (row.kind === "change") return changeTemplate(row);
  if (row.kind === "replies")
    return html`<div class="separator is-replies" role="separator">
      <span>${repliesText(row.count)}</span>
    </div>`;
  if (row.kind === "answer")
    return html`<live-response .responseId=${row.id} .again=${row.again}></live-response>`;
  return html`<chat-message
    .entry=${row.entry}
    .isMine=${row.isMine}
    .follows=${row.follows}
    .error=${row.error}
    .again=${row.again}
    .readers=${isDirect ? [] : row.readers}
    .tick=${isDirect ? row.tick : ""}
    .receipt=${row.receipt}
    .isEditing=${row.isEditing}
    .isLatest=${row.isLatest}
    .target=${row.target}
  ></chat-message>`;
}

/**
 * A line of the log; the source of a fork is a link for users who may read it.
 * @param {import("../store/rows.js").ChangeRow} row
 */
function changeTemplate({ text, more, source }) {
  const { chatId = null, messageId = "" } = source || {};
  const isReadable = chatId && store.get(page.state.chatId)?.forked_from?.readable;
  const detail = { chatId, messageId, threadId: "" };
  const open = (/** @type {MouseEvent} */ event) => {
    // Leave opening new tabs to the browser.
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    event.currentTarget?.dispatchEvent(new CustomEvent("open-message", { bubbles: true, detail }));
  };
  const line = isReadable
    ? html`<a
        href=${`/chats/${encodeURIComponent(chatId)}?message=${encodeURIComponent(messageId)}`}
        @click=${open}
        >${text}</a
      >`
    : text;
  return html`<p class="change" data-testid="change">
    ${line}${more ? html`<br />${more}` : nothing}
  </p>`;
}

/**
 * Renders the end of the log, after the last message: the greeting of an empty chat, approvals,
 * payments, and unsent turns.
 * @param {OpenChat} state
 * @param {<T extends {thread?: string}>(list: T[]) => T[]} here leaves out what another list shows
 * @param {(approval: Approval) => boolean} mayDecide
 */
export const endTemplate = (state, here, mayDecide) =>
  html` ${greetingTemplate(state)}
    <div class="log-asks">
      ${repeat(
        here(state.approvals),
        ({ key }) => key,
        (approval) =>
          html`<approval-card
            .mayDecide=${mayDecide(approval)}
            .itemOf=${itemOf}
            .approval=${approval}
          ></approval-card>`,
      )}
    </div>
    <div class="log-payments">
      ${repeat(
        here(state.payments),
        ({ key }) => key,
        (payment) =>
          html`<payment-card
            .payment=${payment}
            .question=${questionOf(state, payment)}
          ></payment-card>`,
      )}
    </div>
    <div class="log-turns">
      ${repeat(
        state.turns,
        ({ id }) => id,
        (turn) => html`<pending-turn .turn=${turn} .state=${turn.state}></pending-turn>`,
      )}
    </div>`;

/** @param {OpenChat} state @param {(end: "older") => void} want */
export function topTemplate(state, want) {
  if (state.loadingOlder === "yes") return spinner(gettext("Loading older messages"));
  if (state.loadingOlder === "failed")
    return html`<button type="button" class="button" @click=${() => want("older")}>
      ${gettext("Load older messages")}
    </button>`;
  if (state.hasOlder || state.thread) return "";
  return state.entries.length
    ? html`<p class="log-start">${gettext("Start of the conversation")}</p>`
    : "";
}

/**
 * The greeting of an empty chat. The log grows upwards, so lines that come late, such as that of a
 * new member, stand above it: below, they would move its buttons away from under the pointer.
 * @param {OpenChat} state
 */
const greetingTemplate = ({ loaded, thread, chatId, entries, turns, hasOlder }) =>
  loaded && !thread && !hasOlder && !entries.length && !turns.length ? welcome(chatId) : nothing;

/** @param {OpenChat} state @param {(end: "newer") => void} want */
export function bottomTemplate({ loadingNewer }, want) {
  if (loadingNewer === "yes") return spinner(gettext("Loading newer messages"));
  if (loadingNewer === "failed")
    return html`<button type="button" class="button" @click=${() => want("newer")}>
      ${gettext("Load newer messages")}
    </button>`;
  return "";
}

/**
 * The text of the message whose answer a payment is for; "" if it is not on the page.
 * @param {OpenChat} state
 * @param {{responseId: string}} payment
 */
function questionOf({ live, entries }, { responseId }) {
  const id = live.get(responseId)?.response.messageId;
  return entries.find((entry) => entry.id === id)?.content ?? "";
}

/**
 * Returns the content item with an id, sent by a member or made by a tool, if it is on the page.
 * @param {string} contentId
 * @returns {import("../parts/parts.js").Item|undefined}
 */
function itemOf(contentId) {
  const items = [...page.state.entries, ...threadPage.state.entries].flatMap(
    (entry) => entry.content_items || [],
  );
  const all = items.flatMap((item) => [item, ...(item.tool_result?.content_items || [])]);
  return all.find((item) => item.content_id === contentId);
}
