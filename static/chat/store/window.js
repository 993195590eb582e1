/**
 * The part of a chat that is on the page: its messages without gaps, which grows at one end and is
 * cut at the other one.
 */

import { withAct } from "./acts.js";
import { isFrom } from "./entry.js";

/**
 * @typedef {import("./entry.js").Entry} Entry
 * @typedef {import("./open-chat.js").OpenChat} OpenChat
 */

/** More new messages are not counted one by one. */
export const MAX_ARRIVED = 100;

/**
 * Entries with more of them, each once, in the order of the log.
 * @param {Entry[]} entries @param {Entry[]} more
 */
export function merged(entries, more) {
  const known = new Set(entries.map(({ seq }) => seq));
  const fresh = more.filter(({ seq }) => !known.has(seq));
  if (fresh.length === 0) return entries;
  return [...entries, ...fresh].sort((a, b) => a.seq - b.seq);
}

/**
 * Messages as they are after the acts that the page received.
 * @param {OpenChat} state @param {Entry[]} entries
 */
export const withActs = ({ acts, userId }, entries) =>
  entries.map((entry) => acts.reduce((known, act) => withAct(known, act, userId), entry));

/** @param {Entry[]} entries */
const lastOf = (entries) => entries.at(-1)?.seq ?? 0;

/**
 * With the last one alone of the answers that are in one place. A page may have the last one before
 * the socket sends a former one again.
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
 * With a message that arrived. It is on the page where it stands beside what is there.
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
  /** A page beside what is there; `hasOlder` or `hasNewer` is given for the end at which it is. */
  page: (state, { entries, hasOlder, hasNewer, failures }) => {
    const all = withoutReplaced(merged(state.entries, withActs(state, entries)));
    const newest = Math.max(state.newest, lastOf(all));
    return {
      ...state,
      loaded: true,
      entries: all,
      newest,
      hasOlder: hasOlder ?? state.hasOlder,
      // A message may have arrived while the page was on its way.
      hasNewer: hasNewer === undefined ? state.hasNewer : hasNewer || newest > lastOf(all),
      loadingOlder: hasOlder === undefined ? state.loadingOlder : "no",
      loadingNewer: hasNewer === undefined ? state.loadingNewer : "no",
      failures: failures ? new Map([...state.failures, ...failures]) : state.failures,
    };
  },

  /** A page of another place takes the place of what is there. */
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

  /** What is before the place `first` or after `last` is dropped. */
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

  /** A message is to be shown and marked. */
  target: (state, { id }) => ({ ...state, target: { id } }),
};
