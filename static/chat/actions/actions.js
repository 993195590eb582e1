/** The actions on a message, shared by the menu, the toolbar and the keyboard. */

import { page, pageAt, store } from "../context.js";
import { newId } from "../../uamp/ids.js";
import { announce } from "../dom.js";
import { copyText } from "../controls/clipboard.js";
import { canSpeak, readAloud, speaking } from "./speech.js";
import {
  attempt,
  isMirror,
  isOwn,
  isOwner,
  isThere,
  mayAskAgain,
  mayPin,
  pin,
  saveProof,
} from "./acts.js";
import { gettext, interpolate } from "../words.js";

/**
 * @typedef {import("../store/entry.js").Entry} Entry
 *
 * @typedef {object} MessageAction
 * @property {string} name unique, and the test id of its item
 * @property {(entry: Entry) => string} label
 * @property {keyof typeof import("../dom.js").PATHS} icon
 * @property {string} [key] runs it while the message has the focus
 * @property {boolean} [isQuick] it has a button beside the message, too
 * @property {boolean} [isBelow] it has a button below an answer, too
 * @property {boolean} [isDangerous] it destroys something
 * @property {(entry: Entry) => boolean} [isOffered] always offered when missing
 * @property {(entry: Entry, origin: HTMLElement) => void} run `origin` is the pressed
 *   element; its events bubble through the chat
 */

/** @param {string} type */
const fires = (type) => (/** @type {Entry} */ entry, /** @type {HTMLElement} */ origin) =>
  origin.dispatchEvent(new CustomEvent(type, { bubbles: true, detail: entry }));

/**
 * The address that opens the chat at a message, in its thread if only the thread shows it.
 * @param {Entry} entry
 */
export function linkTo({ id, thread, alsoInChat }) {
  const { chatId } = page.state;
  if (thread && !alsoInChat) return threadLink(chatId, thread, id);
  const link = new URL(`/chats/${encodeURIComponent(chatId)}`, location.origin);
  link.searchParams.set("message", id);
  return link.href;
}

/**
 * The address that opens a thread of a chat, at a reply if one is given.
 * @param {string} chatId
 * @param {string} rootId
 * @param {string} [messageId]
 */
export function threadLink(chatId, rootId, messageId = "") {
  const link = new URL(`/chats/${encodeURIComponent(chatId)}`, location.origin);
  link.searchParams.set("thread", rootId);
  if (messageId) link.searchParams.set("message", messageId);
  return link.href;
}

/** @param {string} text @param {string} said */
async function copy(text, said) {
  announce((await copyText(text)) ? said : gettext("Copying is blocked by the browser."));
}

/** @param {Entry} entry @param {HTMLElement} origin */
async function togglePin(entry, origin) {
  const isPinned = !entry.pinned;
  if (await attempt(origin, () => pin(entry, isPinned)))
    announce(isPinned ? gettext("Pinned.") : gettext("Unpinned."));
}

const TITLE_CHARS = 200;
/**
 * Idempotency keys of forks: a retry after an error leads to the same chat.
 * @type {Map<string, string>} keys by the message's id
 */
const forkKeys = new Map();

/** @param {Entry} entry @param {HTMLElement} origin */
async function forkFrom({ id }, origin) {
  const { chatId } = page.state;
  const key = forkKeys.get(id) || newId();
  forkKeys.set(id, key);
  const name = store.get(chatId)?.title;
  const title = name
    ? interpolate(gettext("Fork of %(title)s"), { title: name }).slice(0, TITLE_CHARS)
    : "";
  let forkId = "";
  if (
    !(await attempt(origin, async () => {
      forkId = (await store.fork(chatId, id, title, key)).id;
    }))
  )
    return;
  forkKeys.delete(id);
  announce(gettext("Forked."));
  dispatchEvent(new CustomEvent("open-chat", { detail: forkId }));
}

const hasText = (/** @type {Entry} */ { content }) => Boolean(content);

/** @type {MessageAction[]} in their order in the menu */
const ACTIONS = [
  {
    name: "react",
    label: () => gettext("React…"),
    icon: "smile",
    key: "+",
    isQuick: true,
    isOffered: isThere,
    run: fires("react"),
  },
  {
    name: "reply",
    label: () => gettext("Reply"),
    icon: "reply",
    key: "r",
    isQuick: true,
    isOffered: isThere,
    run: fires("reply"),
  },
  {
    name: "thread",
    label: ({ thread, replies }) =>
      thread || replies ? gettext("Open thread") : gettext("Reply in thread"),
    icon: "thread",
    key: "t",
    isQuick: true,
    isOffered: (entry) => !isMirror() && (isThere(entry) || Boolean(entry.replies)),
    run: fires("open-thread"),
  },
  {
    name: "answer-again",
    label: () => gettext("Regenerate"),
    icon: "again",
    key: "g",
    isBelow: true,
    isOffered: (entry) => isThere(entry) && mayAskAgain(entry),
    run: fires("answer-again"),
  },
  {
    name: "copy-text",
    label: () => gettext("Copy text"),
    icon: "copy",
    key: "c",
    isBelow: true,
    isOffered: hasText,
    run: ({ content }) => copy(content, gettext("Copied.")),
  },
  {
    name: "read-aloud",
    label: ({ id }) => (speaking() === id ? gettext("Stop reading") : gettext("Read aloud")),
    icon: "sound",
    isOffered: (entry) => canSpeak() && isThere(entry) && hasText(entry),
    run: readAloud,
  },
  {
    name: "copy-link",
    label: () => gettext("Copy link"),
    icon: "link",
    key: "l",
    run: (entry) => copy(linkTo(entry), gettext("Link copied.")),
  },
  {
    name: "fork",
    label: () => gettext("Fork from here"),
    icon: "fork",
    key: "f",
    isOffered: isThere,
    run: forkFrom,
  },
  {
    name: "pin",
    label: ({ pinned }) => (pinned ? gettext("Unpin") : gettext("Pin")),
    icon: "pin",
    key: "p",
    isOffered: (entry) => isThere(entry) && mayPin(),
    run: togglePin,
  },
  {
    name: "edit",
    label: () => gettext("Edit"),
    icon: "edit",
    key: "e",
    isOffered: (entry) => isThere(entry) && isOwn(entry),
    run: ({ id }, origin) => pageAt(origin).dispatch({ type: "editing", id }),
  },
  {
    name: "revisions",
    label: () => gettext("Earlier versions"),
    icon: "clock",
    isOffered: (entry) => isThere(entry) && entry.revision > 0,
    run: fires("show-revisions"),
  },
  {
    name: "show-as",
    label: () => gettext("View as…"),
    icon: "code",
    isOffered: isThere,
    run: fires("show-frames"),
  },
  {
    name: "proof",
    label: () => gettext("Download proof"),
    icon: "seal",
    isOffered: isThere,
    run: (entry, origin) => attempt(origin, () => saveProof(entry)),
  },
  {
    name: "delete",
    label: () => gettext("Delete…"),
    icon: "bin",
    key: "Delete",
    isDangerous: true,
    isOffered: (entry) => isThere(entry) && (isOwn(entry) || isOwner()),
    run: fires("delete-message"),
  },
];

/** The actions on a former version of an answer; all others act on the newest one. */
const OF_FORMER = new Set(["copy-text", "fork", "read-aloud", "show-as"]);

/** @param {Entry} entry @returns {MessageAction[]} those that its reader may take */
export const actionsFor = (entry) =>
  ACTIONS.filter(
    ({ name, isOffered }) =>
      (!entry.replaced_by || OF_FORMER.has(name)) && (!isOffered || isOffered(entry)),
  );
