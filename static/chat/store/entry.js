/** A stored message in the shape in which the page keeps it. */

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
 * @property {string|null} versionOf the first version of an answer that was made again
 *
 * @typedef {object} Quote the beginning of a message that another one answers
 * @property {string} id
 * @property {string} [name] missing until the message is read
 * @property {string} [content]
 *
 * @typedef {object} Reaction
 * @property {string} emoji
 * @property {number} count
 * @property {boolean} own whether the person at this page gave it
 * @property {{id: string, name?: string}[]} users the first who gave it
 */

/** @param {number|string|null|undefined} time in ms or ISO 8601 */
const milliseconds = (time) => (typeof time === "string" ? Date.parse(time) : time ?? null);

/**
 * One shape for both transports: REST has times in ISO 8601, the socket in ms.
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
export const isFrom = (entry, userId) => entry.sender_kind === "user" && String(entry.sender_id) === userId;
