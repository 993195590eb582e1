/** Counts the unread replies in the threads that the user follows. */

/** The server stops counting here. */
const UNREAD_MAX = 100;

/** @typedef {import("./chat.js").Chat} Chat */

/**
 * Count a reply that only its thread shows.
 * @param {Chat} chat
 * @param {any} message
 * @param {boolean} isOwn
 * @returns {{isNew: boolean, isUnclear: boolean}} whether the count grew, and whether only the
 *   server knows it
 */
export function replied(chat, message, isOwn) {
  const unread = chat.unread_replies || 0;
  // A user who replies has read everything above.
  if (isOwn) return { isNew: false, isUnclear: unread > 0 };
  if (!message.is_followed) return { isNew: false, isUnclear: false };
  if (message.version_of) return { isNew: false, isUnclear: true };
  chat.unread_replies = Math.min(unread + 1, UNREAD_MAX);
  return { isNew: true, isUnclear: false };
}

/**
 * Replies were read.
 * @param {Chat} chat
 * @param {number} [replies] how many
 * @returns {boolean} whether the remaining number is known
 */
export function readReplies(chat, replies) {
  const unread = chat.unread_replies || 0;
  // If counting stopped, only the server knows how many are left.
  if (replies === undefined || unread >= UNREAD_MAX || replies > unread) return false;
  chat.unread_replies = unread - replies;
  return true;
}
