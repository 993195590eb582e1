/** Folds texts that are compared: in searches, mentions and lists of names. `chat_app/folding.py` folds alike. Knows no DOM. */

const IGNORED = /\p{Default_Ignorable_Code_Point}+/gu;
/** What is folded together: a letter with its marks, of which two are letters of half width. */
const CLUSTER = /[^\p{M}\uff9e\uff9f][\p{M}\uff9e\uff9f\p{Default_Ignorable_Code_Point}]*|[\p{M}\uff9e\uff9f]+/gu;
/** Letters that differ in lower case and are alike in a comparison. @type {Record<string, string>} */
const SAME = { ß: "ss", "i\u0307": "i", ı: "i", ς: "σ", "\u0345": "ι" };
const DIFFERENT = /i\u0307|[ßıς\u0345]/g;

/** A text in one case, width and composition, without characters that are not shown. @param {string} text */
export function folded(text) {
  const lower = text.replace(IGNORED, "").normalize("NFKD").toLowerCase();
  return lower.replace(DIFFERENT, (letter) => SAME[letter]).normalize("NFKC");
}

/**
 * A text folded, and for each of its letters where in the text the one starts that it is of.
 * @param {string} text
 * @returns {{text: string, starts: number[]}} with the length of the text as the last start
 */
export function foldedWithPlaces(text) {
  /** @type {number[]} */
  const starts = [];
  let whole = "";
  for (const { 0: cluster, index } of text.matchAll(CLUSTER)) {
    const letters = folded(cluster);
    for (let at = 0; at < letters.length; at += 1) starts.push(index);
    whole += letters;
  }
  starts.push(text.length);
  return { text: whole, starts };
}
