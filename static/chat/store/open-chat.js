/** The state of the open chat, and its reducers, which are pure functions. */

import { factText, leftOutText } from "./facts.js";
import { LiveResponse, reasonOf } from "../../uamp/live-response.js";
import { withAct } from "./acts.js";
import { isShownIn, withReply, withThreadRead } from "./threads.js";
import { isFrom } from "./entry.js";
import { WINDOW_REDUCERS, inWindow, withActs } from "./window.js";

/** How many of the latest acts are kept, to apply them to messages loaded later. */
const MAX_ACTS = 200;

/**
 * @typedef {import("./entry.js").Entry} Entry
 * @typedef {import("../../uamp/approvals.js").Approval} Approval
 * @typedef {import("../../uamp/payments.js").Payment} Payment
 * @typedef {import("../../uamp/outbox.js").Turn} Turn
 *
 * @typedef {object} Reader how far a person has read
 * @property {string} user_id
 * @property {string} username
 * @property {number} seq
 *
 * @typedef {object} Answer the place of an answer without a message
 * @property {string} id of the response
 * @property {number|null} after the place in the log where it ended; null while it runs
 * @property {string} questionId of the message that it answers
 * @property {boolean} failed
 *
 * @typedef {object} Change of the members
 * @property {number} seq
 * @property {string} text
 * @property {string} [more] another line
 * @property {{chatId: string|null, messageId: string}} [source] the message of another chat with
 *   which a copied history ends
 *
 * @typedef {object} OpenChat
 * @property {string} userId of this user
 * @property {string} username
 * @property {string} chatId "" when none is open
 * @property {string} thread the message whose thread this is; "" for the chat itself
 * @property {boolean} loaded whether its newest page is here
 * @property {Entry[]} entries a part of the chat without gaps, by their place in the log
 * @property {boolean} hasOlder
 * @property {boolean} hasNewer
 * @property {"no"|"yes"|"failed"} loadingOlder
 * @property {"no"|"yes"|"failed"} loadingNewer
 * @property {number} newest the last place that is known to have a message
 * @property {number[]} arrived the latest places at which messages from others arrived
 * @property {{id: string}|null} target the message to show and mark; a new object each time
 * @property {import("../../uamp/types.js").Frame[]} acts the latest ones, oldest first
 * @property {Entry[]} pins in the order in which they were pinned
 * @property {Entry|null} replyTo the message that the next one answers
 * @property {string} editing id of the message whose text is being changed
 * @property {string} removing id of the message that is about to be deleted, and of a deleted one
 * @property {number|null} unreadAfter the user's read position when the chat was opened
 * @property {Answer[]} answers in the order in which they began
 * @property {Map<string, {response: LiveResponse}>} live by response id; another object after each
 *   change
 * @property {Set<string>} own ids of the running responses that this user asked for
 * @property {Map<string, string>} failures why answers failed or who stopped them, by response id
 * @property {Change[]} changes of the members, by their place in the log
 * @property {Map<string, Reader>} readers by user id
 * @property {Map<string, any>} receipts by response id
 * @property {import("./agent-work.js").Work[]} works the activities of answering agents, also in
 *   threads
 * @property {Approval[]} approvals
 * @property {Payment[]} payments
 * @property {Turn[]} turns not acknowledged
 * @property {import("../../uamp/types.js").Frame[]} queue messages that are sent when the running
 *   answers have ended
 * @property {{value: Record<string, any>, by: string}} shared the state that members and
 *   agents share, and the agent that changed it last
 */

/**
 * @param {string} userId
 * @param {string} [chatId]
 * @param {string} [thread]
 * @param {string} [username]
 * @returns {OpenChat}
 */
export function emptyChat(userId, chatId = "", thread = "", username = "") {
  return {
    userId,
    username,
    chatId,
    thread,
    loaded: false,
    entries: [],
    hasOlder: false,
    hasNewer: false,
    loadingOlder: "no",
    loadingNewer: "no",
    newest: 0,
    arrived: [],
    target: null,
    acts: [],
    pins: [],
    replyTo: null,
    editing: "",
    removing: "",
    unreadAfter: null,
    answers: [],
    live: new Map(),
    changes: [],
    own: new Set(),
    failures: new Map(),
    readers: new Map(),
    receipts: new Map(),
    works: [],
    approvals: [],
    payments: [],
    turns: [],
    queue: [],
    shared: { value: {}, by: "" },
  };
}

/** @param {OpenChat} state @param {string} responseId */
export const hasAnswer = (state, responseId) =>
  state.entries.some((entry) => entry.response_id === responseId);

/**
 * Remove a live answer.
 * @param {OpenChat} state @param {string|null} id
 * @returns {OpenChat}
 */
function withoutAnswer(state, id) {
  if (!id || !state.live.has(id)) return state;
  const live = new Map(state.live);
  live.delete(id);
  return { ...state, live, answers: state.answers.filter((answer) => answer.id !== id) };
}

/**
 * Add or update a live answer; its place changes only when it begins or ends.
 * @param {OpenChat} state @param {LiveResponse} response
 * @returns {OpenChat}
 */
function withAnswer(state, response) {
  const live = new Map(state.live).set(response.id, { response });
  const known = state.answers.find(({ id }) => id === response.id);
  const isOver = response.status !== "running";
  if (known && (known.after !== null || !isOver)) return { ...state, live };
  const place = {
    id: response.id,
    after: isOver ? response.seq || state.entries.at(-1)?.seq || 0 : null,
    questionId: response.messageId,
    failed: response.status === "failed",
  };
  const answers = known
    ? state.answers.map((answer) => (answer === known ? place : answer))
    : [...state.answers, place];
  return { ...state, live, answers };
}

/**
 * Add the answers that ended without content: the log has their beginning and end, but no message.
 * @param {OpenChat} state
 * @param {import("../../uamp/types.js").Frame[]} events of the log, in any order
 */
function withEmptyAnswers(state, events) {
  const begun = new Map(
    events
      .filter(({ type }) => type === "response.created")
      .map((event) => [event.response_id, event]),
  );
  const isEmptyEnd = (
    /** @type {import("../../uamp/types.js").Frame} */ { type, partial_output: output },
  ) => ["response.cancelled", "response.error"].includes(type) && !output?.length;
  return events.filter(isEmptyEnd).reduce((known, event) => {
    const created = begun.get(event.response_id);
    if (
      !created ||
      (created.thread || "") !== known.thread ||
      known.live.has(event.response_id) ||
      hasAnswer(known, event.response_id)
    )
      return known;
    const response = new LiveResponse(event.response_id, created);
    response.finish(event);
    response.reason = reasonOf(event, known.userId);
    return withAnswer(known, response);
  }, state);
}

/** @param {import("../../uamp/types.js").Frame} event @param {string} text @returns {Change} */
function changeOf(event, text) {
  const { seq, type, source } = event;
  return type === "chat.forked"
    ? {
        seq,
        text,
        more: leftOutText(event),
        source: { chatId: source.chat_id, messageId: source.message_id },
      }
    : { seq, text };
}

/** @type {import("./store.js").Reducers<OpenChat>} */
export const REDUCERS = {
  /** Another chat, or none, is open. */
  opened: (state, { chatId, thread }) => emptyChat(state.userId, chatId, thread, state.username),
  /** The open chat is about to be loaded again; the user may be answering a message of it. */
  emptied: ({ userId, chatId, thread, username, replyTo }) => ({
    ...emptyChat(userId, chatId, thread, username),
    replyTo,
  }),

  ...WINDOW_REDUCERS,

  message: (state, { entry }) => {
    const counted = withReply(state, entry);
    const next = isShownIn(state, entry) ? inWindow(counted, entry) : counted;
    return withoutAnswer(next, entry.response_id);
  },
  "thread-read": (state, { event }) =>
    event.thread && String(event.user_id) === state.userId ? withThreadRead(state, event) : state,

  /** A member acted on a message. */
  act: (state, { event }) => {
    const acts = [...state.acts, event].slice(-MAX_ACTS);
    const after = (/** @type {Entry[]} */ list) => {
      const changed = list.map((entry) => withAct(entry, event, state.userId));
      return changed.some((entry, at) => entry !== list[at]) ? changed : list;
    };
    return {
      ...state,
      acts,
      entries: after(state.entries),
      pins: after(state.pins).filter(({ pinned }) => pinned),
    };
  },
  /** A message was refetched. */
  refreshed: (state, { entry }) => {
    const fresh = withActs(state, [entry])[0];
    return {
      ...state,
      entries: state.entries.map((known) => (known.id === entry.id ? fresh : known)),
    };
  },
  pins: (state, { entries }) => ({
    ...state,
    pins: withActs(state, entries).filter(({ pinned }) => pinned),
  }),
  "reply-to": (state, { entry }) => ({ ...state, replyTo: entry, editing: "" }),
  editing: (state, { id }) => ({ ...state, editing: id }),
  /** A message is hidden until it is deleted; "" for none. */
  removing: (state, { id }) => ({ ...state, removing: id }),

  response: (state, { response }) =>
    hasAnswer(state, response.id) || (response.thread || "") !== state.thread
      ? state
      : withAnswer(state, response),

  /** An answer ended: with a message, with a part of one, or with nothing. */
  "response-end": (state, { response, failures }) => {
    const next = failures
      ? { ...state, failures: new Map([...state.failures, ...failures]) }
      : state;
    const isShown =
      !hasAnswer(next, response.id) &&
      (response.thread || "") === state.thread &&
      (response.parts.length > 0 || response.status !== "completed");
    return isShown ? withAnswer(next, response) : withoutAnswer(next, response.id);
  },
  own: (state, { ids }) => {
    const isSame =
      ids.length === state.own.size && ids.every((/** @type {string} */ id) => state.own.has(id));
    return isSame ? state : { ...state, own: new Set(ids) };
  },

  /**
   * Events of the log other than messages: members who came or went, and why answers are
   * incomplete.
   */
  facts: (state, { events }) => {
    const failures = new Map(state.failures);
    const changes = new Map(state.changes.map((change) => [change.seq, change]));
    for (const event of events) {
      const isHere =
        (event.thread || "") === state.thread && (!state.thread || event.type === "agent.stopped");
      const text = isHere ? factText(event, state.userId) : "";
      if (text) changes.set(event.seq, changeOf(event, text));
      else if (event.response_id && event.type !== "response.created")
        failures.set(event.response_id, reasonOf(event, state.userId));
    }
    return withEmptyAnswers(
      { ...state, failures, changes: Array.from(changes.values()).sort((a, b) => a.seq - b.seq) },
      events,
    );
  },

  "unread-after": (state, { seq }) => ({ ...state, unreadAfter: seq }),
  readers: (state, { readers }) => ({ ...state, readers: new Map(readers) }),
  read: (state, { reader }) => ({
    ...state,
    readers: new Map(state.readers).set(String(reader.user_id), reader),
  }),
  receipts: (state, { receipts }) => {
    const known = new Map(state.receipts);
    for (const receipt of receipts) known.set(receipt.response_id, receipt);
    return { ...state, receipts: known };
  },

  // Most deltas do not change it.
  works: (state, { list }) =>
    JSON.stringify(list) === JSON.stringify(state.works) ? state : { ...state, works: list },
  // The client changes its objects in place: copies let views compare them.
  approvals: (state, { list }) => ({
    ...state,
    approvals: list.map((/** @type {Approval} */ one) => ({ ...one })),
  }),
  payments: (state, { list }) => ({
    ...state,
    payments: list.map((/** @type {Payment} */ one) => ({ ...one })),
  }),
  turns: (state, { list }) => ({
    ...state,
    turns: list.filter((/** @type {Turn} */ turn) => (turn.thread || "") === state.thread),
  }),
  queue: (state, { list }) =>
    list.length || state.queue.length ? { ...state, queue: list } : state,
  shared: (state, { shared }) => ({ ...state, shared }),
};

/** @param {OpenChat} state the readers of others */
export function otherReaders({ readers, userId }) {
  return Array.from(readers.values()).filter((reader) => String(reader.user_id) !== userId);
}

/** @param {OpenChat} state the newest message of another member */
export const newestOfOthers = ({ entries, userId }) =>
  entries.findLast((entry) => !isFrom(entry, userId));
