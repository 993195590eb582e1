/**
 * The user's read position in the open chat, sent to the members when the newest message is on the
 * screen.
 */

import { api, me, page } from "./context.js";
import { newestOfOthers } from "./store/open-chat.js";

/**
 * Mark the chat as read, if its bottom is on the screen of a visible page.
 * @param {import("../uamp/chat-session.js").ChatSession|null} session
 * @param {import("./log/message-list.js").MessageList|null} list
 */
export function markRead(session, list) {
  if (!session || document.hidden || !list?.atBottom) return;
  const newest = newestOfOthers(page.state);
  const known = page.state.readers.get(me.id)?.seq ?? 0;
  if (!newest || newest.seq <= known) return;
  if (session.markRead(newest.id))
    page.dispatch({
      type: "read",
      reader: { user_id: me.id, username: me.username, seq: newest.seq },
    });
}

/**
 * A member has read up to a message.
 * @param {import("./store/chat.js").Chat|null} chat @param {import("../uamp/types.js").Frame} event
 */
export function showReader(chat, { user_id: userId, message_id: messageId }) {
  const entry = page.state.entries.find(({ id }) => id === messageId);
  const reader = chat?.participants.find(
    ({ kind, id }) => kind === "user" && String(id) === String(userId),
  );
  if (entry && reader)
    page.dispatch({
      type: "read",
      reader: { user_id: userId, username: reader.name, seq: entry.seq },
    });
}

/**
 * Load the read positions of the members.
 * @param {string} chatId
 * @returns {Promise<Map<string, import("./store/open-chat.js").Reader>>} by the id of the user
 */
export async function readersOf(chatId) {
  const { data } = await api.get(`/chats/${encodeURIComponent(chatId)}/receipts`);
  return new Map(
    data.map((/** @type {import("./store/open-chat.js").Reader} */ receipt) => [
      String(receipt.user_id),
      receipt,
    ]),
  );
}
