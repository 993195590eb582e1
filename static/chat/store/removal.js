/** Adjusts the list of chats while a deletion can still be undone. */

/**
 * The preview of a chat, skipping a message about to be deleted.
 * @param {Pick<import("./chat.js").Chat, "id"|"preview">} chat
 * @param {Pick<import("./open-chat.js").OpenChat, "chatId"|"entries"|"removing">} open
 * @returns {{name: string, content: string}|null}
 */
export function previewOf({ id, preview }, { chatId, entries, removing }) {
  if (id !== chatId || !removing) return preview;
  const at = entries.findIndex((entry) => entry.id === removing);
  const last = entries.findLastIndex((entry, place) => place !== at && !entry.deletedAt);
  return at < 0 || last > at ? preview : (entries[last] ?? null);
}
