/** Scores how well typed letters match a name, to sort the palette. Knows no document. */

import { folded } from "../text/folding.js";

const START_OF_WORD = /[\s\-_.,:/(]/;

/**
 * @param {string} typed
 * @param {string} name
 * @returns {number} 0 where the letters are not in the name in their order; more for letters in a
 *   row, at starts of words and in short names
 */
export function fit(typed, name) {
  const wanted = folded(typed).replace(/\s+/g, "");
  const text = folded(name);
  if (!wanted) return 1;
  const direct = text.indexOf(folded(typed).trim());
  if (direct >= 0)
    return (
      1000 +
      (direct === 0 || START_OF_WORD.test(text[direct - 1]) ? 500 : 0) -
      Math.min(text.length, 400)
    );
  let score = 0;
  let last = -1;
  for (const letter of wanted) {
    const at = text.indexOf(letter, last + 1);
    if (at < 0) return 0;
    if (at === last + 1) score += 8;
    else if (at === 0 || START_OF_WORD.test(text[at - 1])) score += 6;
    else score += 1;
    last = at;
  }
  return score + 1 / (1 + text.length);
}

/**
 * @template T
 * @param {string} typed @param {T[]} choices @param {(choice: T) => string} nameOf
 * @returns {T[]} those that fit, the best first; equal ones stay in their order
 */
export function sorted(typed, choices, nameOf) {
  return choices
    .map((choice) => ({ choice, score: fit(typed, nameOf(choice)) }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score)
    .map(({ choice }) => choice);
}
