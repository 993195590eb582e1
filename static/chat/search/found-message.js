/** A message in the search results. */

import { store } from "../context.js";
import { fullTime, shortTime } from "../text/time.js";
import { face, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { authorOf } from "./author.js";
import { excerpt } from "./query.js";
import { gettext } from "../words.js";

/**
 * @typedef {object} FoundMessage as returned by REST (`/search`)
 * @property {string} id
 * @property {string} chat_id
 * @property {string} name
 * @property {"user"|"agent"} sender_kind
 * @property {string} content
 * @property {{filename?: string}[]} content_items
 * @property {string} created_at ISO 8601
 * @property {string|null} thread
 * @property {boolean} also_in_chat
 */

/**
 * @param {FoundMessage} message
 * @param {string[]} words
 * @param {(chatId: string, messageId: string, threadId: string) => void} open
 */
export function foundMessage(
  {
    id,
    chat_id: chatId,
    name,
    sender_kind: kind,
    content,
    content_items: items,
    created_at: at,
    thread,
    also_in_chat: alsoInChat,
  },
  words,
  open,
) {
  const inChat = !thread || alsoInChat;
  const chat = store.get(chatId);
  const files = items.map(({ filename }) => filename).filter(Boolean);
  return html`<li>
    <button
      type="button"
      class="search-result"
      data-testid="search-result"
      @click=${() => open(chatId, id, inChat ? "" : (thread ?? ""))}
    >
      ${face(name, kind)}
      <span class="search-words"
        ><span class="search-head"
          ><b><bdi>${authorOf(kind, name)}</bdi></b>
          <span class="search-chat"
            ><bdi>${chat ? store.nameOf(chat) : gettext("Another chat")}</bdi></span
          >
          <time datetime=${at} title=${fullTime(Date.parse(at))}
            >${shortTime(Date.parse(at))}</time
          ></span
        >
        <span class="search-text" dir="auto"
          >${excerpt(content, words).map(({ text, isFound }) =>
            isFound ? html`<mark>${text}</mark>` : text,
          )}</span
        >
        ${
          files.length
            ? html`<span class="search-files"
                >${glyph("file")}<span
                  >${files.map((file, at) => html`${at ? ", " : ""}<bdi>${file}</bdi>`)}</span
                ></span
              >`
            : nothing
        }</span
      >
    </button>
  </li>`;
}
