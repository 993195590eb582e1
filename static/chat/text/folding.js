/**
 * Normalizes text for comparison in searches, mentions and lists of names, by the same rules as
 * `chat_app/folding.py`. Uses no DOM.
 */

const IGNORED = /\p{Default_Ignorable_Code_Point}+/gu;
/**
 * A letter with its combining marks, which fold as one; the two half-width marks of Japanese count
 * as marks.
 */
const CLUSTER =
  /[^\p{M}\uff9e\uff9f][\p{M}\uff9e\uff9f\p{Default_Ignorable_Code_Point}]*|[\p{M}\uff9e\uff9f]+/gu;
/** Lower-case letters that compare as equal to others. @type {Record<string, string>} */
const SAME = { ß: "ss", "i\u0307": "i", ı: "i", ς: "σ", "\u0345": "ι" };
const DIFFERENT = /i\u0307|[ßıς\u0345]/g;

/**
 * Returns the text in lower case, with one width and composition, without invisible characters.
 * @param {string} text
 */
export function folded(text) {
  const lower = text.replace(IGNORED, "").normalize("NFKD").toLowerCase();
  return lower.replace(DIFFERENT, (letter) => SAME[letter]).normalize("NFKC");
}

/**
 * Fold a text, and return for each resulting letter where its source letter starts.
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
