/** Normalizes stored messages for the page. */

/**
 * @typedef {object} Entry a stored message, from REST or from the socket
 * @property {string} id
 * @property {number} seq
 * @property {string} role
 * @property {string} content
 * @property {any[]|null} content_items
 * @property {string} name
 * @property {string} sender_id
 * @property {"user"|"agent"} sender_kind
 * @property {number} at Unix ms
 * @property {string|null} response_id
 * @property {"completed"|"cancelled"|"failed"} status
 * @property {string} [transport] by which it, or its question, came
 * @property {Quote|null} reply_to the message that it answers
 * @property {number} revision how often it was edited
 * @property {number|null} editedAt Unix ms
 * @property {number|null} deletedAt Unix ms; a deleted message has neither text nor content items
 * @property {Reaction[]} reactions the first given first
 * @property {boolean} pinned
 * @property {string|null} [signature] of an answer, by its agent
 * @property {string|null} [stored_output_hash] of the stored response, which other protocols read
 * @property {string|null} [stored_usage_hash] of the same
 * @property {string|null} [salt] which the signatures of its answers cover
 * @property {string|null} [copied_from] in a fork, the original message
 * @property {string|null} versionOf the first version of a regenerated answer
 * @property {string} [replaced_by] the version that replaced this one
 * @property {string|null} thread the first message of its thread
 * @property {boolean} alsoInChat whether a reply is shown in the chat too
 * @property {Replies|null} replies its thread
 *
 * @typedef {object} Replies
 * @property {number} count
 * @property {number} lastAt Unix ms
 * @property {number} lastSeq
 * @property {{kind: "user"|"agent", id: string, name: string}[]} faces who replied last, the latest
 *   first
 * @property {boolean} following whether this user follows them
 * @property {number} readSeq how far they have read
 *
 * @typedef {object} Quote the beginning of a message that another one answers
 * @property {string} id
 * @property {string} [name] missing until the message is read
 * @property {string} [content]
 *
 * @typedef {object} Reaction
 * @property {string} emoji
 * @property {number} count
 * @property {boolean} own whether this user gave it
 * @property {{id: string, name?: string}[]} users the first who gave it
 */

/** @param {number|string|null|undefined} time in ms or ISO 8601 */
const milliseconds = (time) => (typeof time === "string" ? Date.parse(time) : (time ?? null));

/** @param {any} replies as REST has them @returns {Replies|null} */
function repliesOf(replies) {
  if (!replies) return null;
  return {
    count: replies.replies,
    lastAt: milliseconds(replies.last_at) ?? 0,
    lastSeq: replies.last_seq,
    faces: replies.participants,
    following: replies.following,
    readSeq: replies.read_seq,
  };
}

/**
 * Convert a message from either transport: REST has times in ISO 8601, the socket in ms.
 * @param {any} message
 * @param {number} [seq]
 * @returns {Entry}
 */
export function entryOf(message, seq = message.seq) {
  const { reply_to: answered } = message;
  return {
    ...message,
    seq,
    at: milliseconds(message.created_at),
    reply_to: typeof answered === "string" ? { id: answered } : answered || null,
    revision: message.revision || 0,
    editedAt: milliseconds(message.edited_at),
    deletedAt: milliseconds(message.deleted_at),
    reactions: message.reactions || [],
    pinned: Boolean(message.pinned),
    versionOf: message.version_of || null,
    thread: message.thread || null,
    alsoInChat: Boolean(message.also_in_chat),
    replies: repliesOf(message.replies),
    status: message.status || "completed",
    transport: message.transport || "",
    sender_kind: message.sender_kind || (message.role === "assistant" ? "agent" : "user"),
  };
}

/**
 * Whether a person wrote a message.
 * @param {Entry} entry
 * @param {string} userId
 */
export const isFrom = (entry, userId) =>
  entry.sender_kind === "user" && String(entry.sender_id) === userId;
