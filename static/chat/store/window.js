/**
 * The loaded part of a chat: messages without gaps, extended at one end and trimmed at the other.
 */

import { withAct } from "./acts.js";
import { isFrom } from "./entry.js";

/**
 * @typedef {import("./entry.js").Entry} Entry
 * @typedef {import("./open-chat.js").OpenChat} OpenChat
 */

/** New messages beyond this number are not counted individually. */
export const MAX_ARRIVED = 100;

/**
 * Merge entries, each once, in the order of the log.
 * @param {Entry[]} entries @param {Entry[]} more
 */
export function merged(entries, more) {
  const known = new Set(entries.map(({ seq }) => seq));
  const fresh = more.filter(({ seq }) => !known.has(seq));
  if (fresh.length === 0) return entries;
  return [...entries, ...fresh].sort((a, b) => a.seq - b.seq);
}

/**
 * Apply the received acts to messages.
 * @param {OpenChat} state @param {Entry[]} entries
 */
export const withActs = ({ acts, userId }, entries) =>
  entries.map((entry) => acts.reduce((known, act) => withAct(known, act, userId), entry));

/** @param {Entry[]} entries */
const lastOf = (entries) => entries.at(-1)?.seq ?? 0;

/**
 * Keep only the last of several versions of an answer. A page may have the last one before the
 * socket resends an earlier one.
 * @param {Entry[]} entries in the order of the log
 */
function withoutReplaced(entries) {
  const last = new Map(
    entries.flatMap(({ versionOf, seq }) => (versionOf ? [[versionOf, seq]] : [])),
  );
  if (last.size === 0) return entries;
  return entries.filter(({ id, versionOf, seq }) => (last.get(versionOf ?? id) ?? seq) === seq);
}

/**
 * Add an arrived message, if it adjoins the loaded part.
 * @param {OpenChat} state @param {Entry} entry
 * @returns {OpenChat}
 */
export function inWindow(state, entry) {
  const { seq } = entry;
  const isNew = seq > state.newest;
  const arrived =
    isNew && !isFrom(entry, state.userId)
      ? [...state.arrived, seq].slice(-MAX_ARRIVED)
      : state.arrived;
  const next = isNew ? { ...state, newest: seq, arrived } : state;
  const { entries } = state;
  const isBehind = state.hasNewer && seq > lastOf(entries);
  const isBefore = state.hasOlder && entries.length > 0 && seq < entries[0].seq;
  if (isBehind || isBefore) return next;
  const all = merged(entries, withActs(state, [entry]));
  return all === entries ? next : { ...next, entries: withoutReplaced(all) };
}

/** @type {import("./store.js").Reducers<OpenChat>} */
export const WINDOW_REDUCERS = {
  /**
   * A page beside the loaded part; `hasOlder` or `hasNewer` is given for the end that it extends.
   */
  page: (state, { entries, hasOlder, hasNewer, failures }) => {
    const all = withoutReplaced(merged(state.entries, withActs(state, entries)));
    const newest = Math.max(state.newest, lastOf(all));
    return {
      ...state,
      loaded: true,
      entries: all,
      newest,
      hasOlder: hasOlder ?? state.hasOlder,
      // A message may have arrived while the page was loading.
      hasNewer: hasNewer === undefined ? state.hasNewer : hasNewer || newest > lastOf(all),
      loadingOlder: hasOlder === undefined ? state.loadingOlder : "no",
      loadingNewer: hasNewer === undefined ? state.loadingNewer : "no",
      failures: failures ? new Map([...state.failures, ...failures]) : state.failures,
    };
  },

  /** A page at another place replaces the loaded part. */
  place: (state, { entries, hasOlder, hasNewer }) => {
    const all = merged([], withActs(state, entries));
    const newest = Math.max(state.newest, lastOf(all));
    return {
      ...state,
      loaded: true,
      entries: all,
      newest,
      hasOlder,
      hasNewer: hasNewer || newest > lastOf(all),
      loadingOlder: "no",
      loadingNewer: "no",
      changes: [],
    };
  },

  /** Drops everything before the place `first` or after `last`. */
  cut: (state, { first, last }) => {
    const entries = state.entries.filter(({ seq }) => seq >= first && seq <= last);
    if (entries.length === 0 || entries.length === state.entries.length) return state;
    const hasOlder = state.hasOlder || entries[0].seq > state.entries[0].seq;
    const hasNewer = state.hasNewer || lastOf(entries) < lastOf(state.entries);
    const changes = state.changes.filter(
      ({ seq }) => (!hasOlder || seq > entries[0].seq) && (!hasNewer || seq < lastOf(entries)),
    );
    return { ...state, entries, hasOlder, hasNewer, changes };
  },

  loading: (state, { end }) => ({
    ...state,
    [end === "older" ? "loadingOlder" : "loadingNewer"]: "yes",
  }),
  "load-failed": (state, { end }) => ({
    ...state,
    [end === "older" ? "loadingOlder" : "loadingNewer"]: "failed",
  }),

  /** Shows and marks a message. */
  target: (state, { id }) => ({ ...state, target: { id } }),
};
