/**
 * Requests for acts of this user on messages; the resulting changes arrive as events of the chat.
 */

import { isApiError } from "../api.js";
import { api, me, page, pageOf, store } from "../context.js";
import { saveFile } from "../dom.js";
import { isFrom } from "../store/entry.js";
import { gettext } from "../words.js";

/**
 * @typedef {import("../store/entry.js").Entry} Entry
 */

/** @param {Entry} entry */
const pathOf = ({ id }) => `/messages/${encodeURIComponent(id)}`;

/** @param {Entry} entry */
export const isOwn = (entry) => isFrom(entry, me.id);

/** @param {Entry} entry */
export const isThere = ({ deletedAt }) => !deletedAt;

const chat = () => store.get(page.state.chatId);

export const isOwner = () =>
  chat()?.participants.some(
    ({ kind, id, role }) => kind === "user" && String(id) === me.id && role === "owner",
  ) ?? false;
/** Whether the chat belongs to another server; its threads and calls stay there. */
export const isMirror = () => Boolean(chat()?.home);
export const mayPin = () => !chat()?.only_owners_pin || isOwner();

/**
 * Whether this user may have an answer regenerated: they asked for it, or own the chat, and no
 * later question follows.
 * @param {Entry} entry
 */
export function mayAskAgain(entry) {
  const { id, sender_kind: kind, response_id: responseId } = entry;
  const { entries, hasNewer } = pageOf(entry).state;
  const at = entries.findIndex((one) => one.id === id);
  if (
    kind !== "agent" ||
    !responseId ||
    hasNewer ||
    entries.slice(at + 1).some((one) => one.sender_kind === "user")
  )
    return false;
  const question = entries.slice(0, at).findLast((one) => one.sender_kind === "user");
  return question !== undefined && (isOwn(question) || isOwner());
}

/**
 * Whether this user may edit a question and have its answers regenerated: it has an answer, and no
 * later question follows.
 * @param {Entry} entry
 */
export function mayAskEdited(entry) {
  const { entries, hasNewer } = pageOf(entry).state;
  const at = entries.findIndex(({ id }) => id === entry.id);
  const after = entries.slice(at + 1);
  return (
    at >= 0 &&
    !hasNewer &&
    isOwn(entry) &&
    !after.some((one) => one.sender_kind === "user") &&
    after.some((one) => one.response_id && !one.deletedAt)
  );
}

/** The name of a member by id. @param {{id: string, name?: string}} user */
export function nameOf({ id, name }) {
  if (id === me.id) return gettext("You");
  return (
    name ||
    chat()?.participants.find((one) => one.kind === "user" && String(one.id) === id)?.name ||
    gettext("A former member")
  );
}

/**
 * Do something that the server may refuse, and show its reason below the chat.
 * @param {HTMLElement} origin in the chat @param {() => Promise<any>} work
 * @returns {Promise<boolean>} whether it was done
 */
export async function attempt(origin, work) {
  try {
    await work();
    return true;
  } catch (error) {
    if (!isApiError(error)) throw error;
    const place = origin.isConnected ? origin : document.querySelector("message-list");
    place?.dispatchEvent(new CustomEvent("say", { bubbles: true, detail: error.message }));
    return false;
  }
}

/** @param {Entry} entry @param {string} emoji @param {boolean} isGiven */
export const react = (entry, emoji, isGiven) =>
  api.send(
    isGiven ? "PUT" : "DELETE",
    `${pathOf(entry)}/reactions?emoji=${encodeURIComponent(emoji)}`,
  );

/** Save the proof that the log has this message, as `uamp verify` reads it. @param {Entry} entry */
export const saveProof = async (entry) =>
  saveFile(`proof-${entry.id}.json`, await api.text(`${pathOf(entry)}/proof`));

/** @param {Entry} entry @param {boolean} isPinned */
export const pin = (entry, isPinned) =>
  api.send(isPinned ? "PUT" : "DELETE", `${pathOf(entry)}/pin`);

/** @param {Entry} entry @param {string} content */
export const edit = (entry, content) =>
  api.send("PATCH", pathOf(entry), { content, revision: entry.revision });

/** @param {Entry} entry */
export const remove = (entry) => api.send("DELETE", pathOf(entry));

/** The texts that a message had, oldest first. @param {Entry} entry */
export const revisionsOf = async (entry) =>
  (await api.get(`${pathOf(entry)}/revisions?limit=200`)).data;

/** All versions of an answer, oldest first. @param {Entry} entry */
export const versionsOf = async (entry) =>
  (await api.get(`${pathOf(entry)}/versions?limit=200`)).data;
