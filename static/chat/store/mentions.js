/** The names that a text mentions. */

/** As in chat_app/mentioned.py, which decides whom a message that is sent mentions. */
export const MENTION = /(?<![\p{L}\p{N}_@/.])@([\p{L}\p{N}_][\p{L}\p{N}_.-]*)/gu;

/** @param {string} text @returns {string[]} in lower case, each once, in their order */
export function mentioned(text) {
  // What is code is not said to anyone.
  const said = text.replace(/```[\s\S]*?(?:```|$)|`[^`\n]*`/g, " ");
  const names = Array.from(said.matchAll(MENTION), ([, name]) => name.toLowerCase().replace(/[.-]+$/, ""));
  return [...new Set(names.filter(Boolean))];
}

/**
 * The names that a text mentions and no member has; a name that is still being written is not among them.
 * @param {string} text
 * @param {{name: string}[]} members
 */
export function unknownMentions(text, members) {
  const known = new Set(members.map(({ name }) => name.toLowerCase()));
  const finished = text.replace(/(^|[\s(])@[\w.-]*$/, "$1");
  return mentioned(finished).filter((name) => !known.has(name) && !["all", "everyone", "here"].includes(name));
}

/**
 * The agents of a chat that a text mentions although they are switched off.
 * @param {string} text @param {{kind: string, name: string, online?: boolean}[]} members
 * @returns {string[]} their names
 */
export function offlineMentions(text, members) {
  const names = mentioned(text);
  return members.filter(({ kind, name, online }) => kind === "agent" && online === false && names.includes(name.toLowerCase())).map(({ name }) => name);
}
