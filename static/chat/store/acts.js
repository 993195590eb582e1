/**
 * Applies members' acts on messages from their events. Events are idempotent: one may be replayed,
 * or arrive after a history that includes it.
 */

/**
 * @typedef {import("./entry.js").Entry} Entry
 * @typedef {import("./entry.js").Reaction} Reaction
 * @typedef {import("../../uamp/types.js").Frame} Frame
 */

/** Whether a reaction lists all who gave it. @param {Reaction} reaction */
const isComplete = ({ count, users }) => users.length === count;

/**
 * @param {Entry} entry @param {Frame} event @param {string} userId of this user
 * @returns {Entry}
 */
function withReaction(entry, { type, emoji, user_id: by }, userId) {
  const known = entry.reactions.find((reaction) => reaction.emoji === emoji);
  const isAdded = type === "reaction.added";
  if (known && !isComplete(known)) return entry;
  const isThere = Boolean(known?.users.some(({ id }) => id === by));
  if (isThere === isAdded || entry.deletedAt) return entry;
  const users = isAdded
    ? [...(known?.users || []), { id: by }]
    : known?.users.filter(({ id }) => id !== by) || [];
  /** @type {Reaction} */
  const reaction = {
    emoji,
    count: users.length,
    own: users.some(({ id }) => id === userId),
    users,
  };
  const reactions = known
    ? entry.reactions.map((one) => (one === known ? reaction : one))
    : [...entry.reactions, reaction];
  return { ...entry, reactions: reactions.filter(({ count }) => count > 0) };
}

/** @param {Entry} entry @param {Frame} event @returns {Entry} */
function edited(entry, event) {
  if (event.revision <= entry.revision || entry.deletedAt) return entry;
  const { content, content_items: items, revision, edited_at: editedAt } = event;
  return { ...entry, content, content_items: items || null, revision, editedAt };
}

/**
 * What the signature covers goes with the text, as the server withholds it.
 * @param {Entry} entry @param {Frame} event @returns {Entry}
 */
function deleted(entry, event) {
  if (entry.deletedAt) return entry;
  return {
    ...entry,
    content: "",
    content_items: null,
    reactions: [],
    pinned: false,
    deletedAt: event.deleted_at,
    signature: null,
    stored_output_hash: null,
    stored_usage_hash: null,
    salt: null,
  };
}

/** @param {Entry} entry @param {boolean} pinned @returns {Entry} */
const pinnedAs = (entry, pinned) =>
  entry.pinned === pinned || entry.deletedAt ? entry : { ...entry, pinned };

/**
 * A message after an act; the same object where the act changes nothing of it.
 * @param {Entry} entry @param {Frame} event @param {string} userId of the person at this page
 * @returns {Entry}
 */
export function withAct(entry, event, userId) {
  if (entry.reply_to?.id === event.message_id) return withQuoteOf(entry, event);
  if (entry.id !== event.message_id) return entry;
  if (event.type === "message.edited")
    return event.deleted_at ? deleted(entry, event) : edited(entry, event);
  if (event.type === "message.deleted") return deleted(entry, event);
  if (event.type === "message.pinned") return pinnedAs(entry, true);
  if (event.type === "message.unpinned") return pinnedAs(entry, false);
  return withReaction(entry, event, userId);
}

/**
 * Update the quote of a message whose quoted text was changed or deleted.
 * @param {Entry} entry
 * @param {Frame} event
 * @returns {Entry}
 */
function withQuoteOf(entry, event) {
  const isGone = event.type === "message.deleted" || Boolean(event.deleted_at);
  if (!isGone && event.type !== "message.edited") return entry;
  const content = isGone ? "" : event.content;
  const quote = entry.reply_to;
  return !quote || quote.content === content
    ? entry
    : { ...entry, reply_to: { ...quote, content } };
}

/**
 * Whether an act cannot be applied without asking the server: the reaction does not list all who
 * gave it.
 * @param {Entry|undefined} entry
 * @param {Frame} event
 */
export function isUnclear(entry, { type, emoji }) {
  const known = entry?.reactions.find((reaction) => reaction.emoji === emoji);
  return type.startsWith("reaction.") && known !== undefined && !isComplete(known);
}
