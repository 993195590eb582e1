/** The names that a text mentions. */

import { folded } from "../text/folding.js";

/**
 * Letters of scripts written without spaces: mentions may stand between them, and names in other
 * letters end before them.
 */
export const JOINED = String.raw`\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3100-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\u{20000}-\u{3ffff}`;
const LETTER = String.raw`\p{L}\p{N}_`;
/** As in chat_app/mentioned.py, which decides whom a sent message mentions. */
export const MENTION = new RegExp(
  String.raw`(?<!(?![${JOINED}])[${LETTER}@/.])[@\uff20]([${JOINED}][${LETTER}.\-]*|(?![${JOINED}])[${LETTER}](?:(?![${JOINED}])[${LETTER}.\-])*)`,
  "gu",
);

const JOINED_START = new RegExp(`^[${JOINED}]`, "u");
/** Text that ends with an unfinished mention, up to the caret; its group is the name so far. */
export const UNFINISHED = new RegExp(
  String.raw`(?<!(?![${JOINED}])[${LETTER}@/.])[@\uff20]([${LETTER}\p{M}.\-]*)$`,
  "u",
);

/** @param {string} text @returns {string[]} as written, each once, in their order */
function written(text) {
  // Code mentions no one.
  const prose = text.normalize("NFC").replace(/```[\s\S]*?(?:```|$)|`[^`\n]*`/g, " ");
  const names = Array.from(prose.matchAll(MENTION), ([, name]) => name.replace(/[.-]+$/, ""));
  return [...new Set(names.filter(Boolean))];
}

/**
 * The known name that the letters after an @ form or, in scripts without spaces, begin with; "" if
 * none.
 * @param {string} name
 * @param {Set<string>} known
 */
function knownName(name, known) {
  const letters = folded(name);
  if (known.has(letters) || !JOINED_START.test(name)) return known.has(letters) ? letters : "";
  return (
    [...known]
      .filter((one) => letters.startsWith(one))
      .toSorted((a, b) => b.length - a.length)[0] ?? ""
  );
}

/**
 * Return the names that a text mentions.
 * @param {string} text
 * @param {string[]} names
 * @returns {Set<string>} folded
 */
export function mentioned(text, names) {
  if (!/[@\uff20]/.test(text)) return new Set();
  const known = new Set(names.map(folded));
  return new Set(
    written(text)
      .map((name) => knownName(name, known))
      .filter(Boolean),
  );
}

/**
 * The names mentioned in a text that no member has, except one still being typed.
 * @param {string} text
 * @param {{name: string}[]} members
 */
export function unknownMentions(text, members) {
  const known = new Set([...members.map(({ name }) => folded(name)), "all", "everyone", "here"]);
  const finished = text.normalize("NFC").replace(UNFINISHED, "");
  return [
    ...new Set(
      written(finished)
        .filter((name) => !knownName(name, known))
        .map(folded),
    ),
  ];
}

/**
 * The mentioned agents that are switched off.
 * @param {string} text @param {{kind: string, name: string, online?: boolean}[]} members
 * @returns {string[]} their names
 */
export function offlineMentions(text, members) {
  const names = mentioned(
    text,
    members.map(({ name }) => name),
  );
  return members
    .filter(
      ({ kind, name, online }) => kind === "agent" && online === false && names.has(folded(name)),
    )
    .map(({ name }) => name);
}
