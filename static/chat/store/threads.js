/** How replies change the messages that begin their threads, and where they are shown. */

/**
 * @typedef {import("./entry.js").Entry} Entry
 * @typedef {import("./entry.js").Replies} Replies
 * @typedef {import("./open-chat.js").OpenChat} OpenChat
 */

import { mentioned } from "./mentions.js";

const FACES = 5;

/** The id by which replies refer to a message: that of its first version. @param {Entry} entry */
export const rootOf = ({ id, versionOf }) => versionOf || id;

/**
 * Whether a message is shown in a chat, or in one of its threads.
 * @param {{thread: string}} state @param {Entry} entry
 */
export const isShownIn = ({ thread }, entry) =>
  thread ? entry.thread === thread || entry.id === thread : !entry.thread || entry.alsoInChat;

/**
 * @param {OpenChat} state
 * @param {string} rootId
 * @param {(replies: Replies|null) => Replies|null} change
 * @returns {OpenChat}
 */
function withReplies(state, rootId, change) {
  let isChanged = false;
  const entries = state.entries.map((entry) => {
    const replies = rootOf(entry) === rootId ? change(entry.replies) : entry.replies;
    isChanged ||= replies !== entry.replies;
    return replies === entry.replies ? entry : { ...entry, replies };
  });
  return isChanged ? { ...state, entries } : state;
}

/**
 * Count an arrived reply at the first message of its thread. One that was counted before changes
 * nothing: it may be replayed.
 * @param {OpenChat} state @param {Entry} entry
 */
export function withReply(
  state,
  { thread, seq, at, versionOf, sender_id: id, sender_kind: kind, name, content },
) {
  if (!thread) return state;
  const isMine = kind === "user" && String(id) === state.userId;
  const root = state.entries.find((entry) => rootOf(entry) === thread);
  const isConcerned =
    isMine ||
    (root?.sender_kind === "user" && String(root.sender_id) === state.userId) ||
    mentions(content, state.username);
  return withReplies(state, thread, (replies) => {
    if (replies && seq <= replies.lastSeq) return replies;
    const known = replies || {
      count: 0,
      lastAt: 0,
      lastSeq: 0,
      faces: [],
      following: false,
      readSeq: 0,
    };
    const others = known.faces.filter((face) => face.kind !== kind || face.id !== String(id));
    return {
      count: known.count + (versionOf ? 0 : 1),
      lastAt: at,
      lastSeq: seq,
      faces: [{ kind, id: String(id), name }, ...others].slice(0, FACES),
      following: known.following || isConcerned,
      readSeq: isMine ? seq : known.readSeq,
    };
  });
}

/** @param {string} content @param {string} username */
const mentions = (content, username) => mentioned(content, [username]).size > 0;

/**
 * The user has read a thread, here or elsewhere.
 * @param {OpenChat} state @param {import("../../uamp/types.js").Frame} event
 */
export const withThreadRead = (state, { thread, seq }) =>
  // The event of a user with private read receipts has no place in the log.
  withReplies(state, thread, (replies) =>
    replies && (seq ?? replies.lastSeq) > replies.readSeq
      ? { ...replies, readSeq: seq ?? replies.lastSeq }
      : replies,
  );

/**
 * Whether a thread has unread replies for this user.
 * @param {Replies|null} replies
 */
export const hasNews = (replies) =>
  Boolean(replies?.following && replies.lastSeq > replies.readSeq);
