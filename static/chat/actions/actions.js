/** What can be done with a message: the list that the menu, the toolbar and the keyboard share. */

import { copyText } from "../clipboard.js";
import { announce } from "../dom.js";

/**
 * @typedef {import("../store/entry.js").Entry} Entry
 *
 * @typedef {object} MessageAction
 * @property {string} name unique, and the test id of its item
 * @property {(entry: Entry) => string} label
 * @property {keyof import("../dom.js").PATHS} icon
 * @property {string} [key] runs it while the message has the focus
 * @property {boolean} [isDangerous] it takes something away
 * @property {(entry: Entry) => boolean} [isOffered] always where it is missing
 * @property {(entry: Entry, origin: HTMLElement) => void} run `origin` is what was pressed; an event
 *   from it bubbles through the chat
 */

/** @param {string} type */
const fires = (type) => (/** @type {Entry} */ entry, /** @type {HTMLElement} */ origin) =>
  origin.dispatchEvent(new CustomEvent(type, { bubbles: true, detail: entry }));

/** @param {string} text @param {string} said */
async function copy(text, said) {
  announce((await copyText(text)) ? said : "Copying is blocked by the browser.");
}

const hasText = (/** @type {Entry} */ { content }) => Boolean(content);

/** @type {MessageAction[]} in their order in the menu */
const ACTIONS = [
  { name: "copy-text", label: () => "Copy text", icon: "copy", key: "c", isOffered: hasText, run: ({ content }) => copy(content, "Copied.") },
  { name: "show-as", label: () => "Show as…", icon: "code", run: fires("show-frames") },
];

/** @param {Entry} entry @returns {MessageAction[]} those that its reader may take */
export const actionsFor = (entry) => ACTIONS.filter(({ isOffered }) => !isOffered || isOffered(entry));
