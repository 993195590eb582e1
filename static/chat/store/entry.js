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
 */

/**
 * One shape for both transports: REST has times in ISO 8601, the socket in ms.
 * @param {any} message
 * @param {number} [seq]
 * @returns {Entry}
 */
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

/**
 * Whether a person wrote a message.
 * @param {Entry} entry
 * @param {string} userId
 */
export const isFrom = (entry, userId) => entry.sender_kind === "user" && String(entry.sender_id) === userId;
