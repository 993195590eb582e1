/** The names that a text mentions. */

/**
 * Letters of scripts that are written without spaces: a mention may stand between them, and a name in other letters ends
 * before them.
 */
const JOINED = String.raw`\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3100-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\u{20000}-\u{3ffff}`;
const LETTER = String.raw`\p{L}\p{N}_`;
/** As in chat_app/mentioned.py, which decides whom a message that is sent mentions. */
export const MENTION = new RegExp(String.raw`(?<!(?![${JOINED}])[${LETTER}@/.])[@\uff20]([${JOINED}][${LETTER}.\-]*|(?![${JOINED}])[${LETTER}](?:(?![${JOINED}])[${LETTER}.\-])*)`, "gu");

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
