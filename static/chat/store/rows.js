/** The lines of the open chat from top to bottom: days, messages, answers without a message. */

import { daysAgo } from "../text/time.js";
import { isFrom } from "./entry.js";
import { otherReaders } from "./open-chat.js";

const FOLLOWS_WITHIN_MS = 5 * 60_000;

/**
 * @typedef {import("./entry.js").Entry} Entry
 * @typedef {import("./open-chat.js").OpenChat} OpenChat
 * @typedef {import("./open-chat.js").Reader} Reader
 *
 * @typedef {{kind: "day", key: string, at: number}} DayRow
 * @typedef {{kind: "unread", key: string}} UnreadRow
 * @typedef {{kind: "replies", key: string, count: number}} RepliesRow
 * @typedef {{kind: "change", key: string, text: string, more?: string, source?: {chatId:
 *   string|null, messageId: string}}} ChangeRow
 * @typedef {{kind: "answer", key: string, id: string, again: string}} AnswerRow
 * @typedef {object} MessageRow
 * @property {"message"} kind
 * @property {string} key
 * @property {Entry} entry
 * @property {boolean} isMine
 * @property {boolean} follows whether it needs no head, soon after another message of its sender
 * @property {string} error why it failed, for the user
 * @property {string} again the question, if this user may ask it again
 * @property {Reader[]} readers who have read up to here
 * @property {"read"|"sent"|""} tick for the user's own messages: whether another person has read it
 * @property {any} receipt
 * @property {boolean} isEditing
 * @property {boolean} isLatest whether no person wrote after it
 * @property {{id: string}|null} target if it is the message to show and mark
 *
 * @typedef {DayRow|UnreadRow|RepliesRow|ChangeRow|AnswerRow|MessageRow} Row
 */

/** @param {Entry} before @param {Entry} entry */
const follows = (before, entry) =>
  before.sender_id === entry.sender_id &&
  before.sender_kind === entry.sender_kind &&
  before.transport === entry.transport &&
  entry.at - before.at < FOLLOWS_WITHIN_MS;

/**
 * The read positions of members, by message.
 * @param {OpenChat} state
 */
function placesOf(state) {
  /** @type {Map<number, Reader[]>} */
  const places = new Map();
  for (const reader of otherReaders(state)) {
    const last = state.entries.findLast(({ seq }) => seq <= reader.seq);
    if (last) places.set(last.seq, [...(places.get(last.seq) || []), reader]);
  }
  return places;
}

/** @param {OpenChat} state @returns {Row[]} */
export function rowsOf(state) {
  const { entries, userId } = state;
  const places = placesOf(state);
  const readTo = Math.max(0, ...otherReaders(state).map(({ seq }) => seq));
  /** @param {Entry|undefined} question */
  const againOf = (question) => (question && isFrom(question, userId) && question.content) || "";
  // Anything before the oldest or after the newest loaded message belongs to a page that is not
  // loaded.
  const first = state.hasOlder ? (entries[0]?.seq ?? 0) : 0;
  const last = state.hasNewer ? (entries.at(-1)?.seq ?? 0) : Infinity;
  const isHere = (/** @type {number} */ seq) => seq >= first && seq < last;
  const ended = state.answers
    .filter(({ after }) => after !== null && isHere(after))
    .sort((a, b) => Number(a.after) - Number(b.after));
  /** @param {{id: string, questionId: string, failed: boolean}} answer @returns {AnswerRow} */
  const answerRow = ({ id, questionId, failed }) => ({
    kind: "answer",
    key: `answer ${id}`,
    id,
    again: failed ? againOf(entries.find((entry) => entry.id === questionId)) : "",
  });
  /** @param {import("./open-chat.js").Change} change @returns {ChangeRow} */
  const changeRow = ({ seq, ...said }) => ({ kind: "change", key: `change ${seq}`, ...said });
  const changes = state.changes.filter(({ seq }) => isHere(seq));
  const unreadAt =
    state.unreadAfter === null
      ? -1
      : entries.findIndex(
          (entry) => entry.seq > Number(state.unreadAfter) && !isFrom(entry, userId),
        );
  /** @type {Row[]} */
  const rows = [];
  /** @type {Entry|undefined} */
  let question;
  const lastQuestion = entries.findLastIndex((entry) => entry.sender_kind === "user");
  entries.forEach((entry, at) => {
    let isBroken = false;
    while (ended.length && Number(ended[0].after) < entry.seq) {
      rows.push(answerRow(/** @type {any} */ (ended.shift())));
      isBroken = true;
    }
    while (changes.length && changes[0].seq < entry.seq) {
      rows.push(changeRow(/** @type {any} */ (changes.shift())));
      isBroken = true;
    }
    const before = entries[at - 1];
    const isSameDay = before !== undefined && daysAgo(before.at, entry.at) === 0;
    if (!isSameDay) rows.push({ kind: "day", key: `day ${entry.seq}`, at: entry.at });
    if (at === unreadAt && at > 0) rows.push({ kind: "unread", key: "unread" });
    rows.push({
      kind: "message",
      key: `message ${entry.seq}`,
      entry,
      isMine: isFrom(entry, userId),
      follows: isSameDay && !isBroken && before.id !== state.thread && follows(before, entry),
      error: (entry.response_id && state.failures.get(entry.response_id)) || "",
      again: entry.status === "failed" && entry.sender_kind !== "user" ? againOf(question) : "",
      readers: places.get(entry.seq) || [],
      tick: !isFrom(entry, userId) || entry.deletedAt ? "" : entry.seq <= readTo ? "read" : "sent",
      receipt: entry.response_id ? state.receipts.get(entry.response_id) : undefined,
      isEditing: state.editing === entry.id,
      isLatest: at >= lastQuestion,
      target: state.target?.id === entry.id ? state.target : null,
    });
    if (entry.id === state.thread)
      rows.push({ kind: "replies", key: "replies", count: entry.replies?.count ?? 0 });
    if (entry.sender_kind === "user") question = entry;
  });
  const running = state.hasNewer ? [] : state.answers.filter(({ after }) => after === null);
  return [...rows, ...changes.map(changeRow), ...[...ended, ...running].map(answerRow)];
}
