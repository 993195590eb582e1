/** Parses search input: words, and filters that become chips. Knows no DOM. */

import { folded, foldedWithPlaces } from "../text/folding.js";
import { plainOf } from "../markdown/plain.js";
import { gettext } from "../words.js";

const EXAMPLE_DAYS = 30;

/** A day in the format of filters, in the user's time zone. @param {number} ms */
function dayOf(ms) {
  const day = new Date(ms);
  const padded = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return `${day.getFullYear()}-${padded(day.getMonth() + 1)}-${padded(day.getDate())}`;
}

/**
 * Example values of each filter.
 * @param {number} [now] Unix ms
 * @returns {Record<string, string>}
 */
export const filterExamples = (now = Date.now()) => ({
  from: gettext("from: a person"),
  agent: gettext("agent: an agent"),
  before: `before:${dayOf(now)}`,
  after: `after:${dayOf(now - EXAMPLE_DAYS * 86_400_000)}`,
});

/**
 * @typedef {{name: string, value: string}} Filter
 * @typedef {{text: string, isFound: boolean}} Piece
 */

const FINISHED = /(^|\s)(from|agent|in|has|before|after):(?:"([^"]+)"|([^\s"]+))(?=\s)/i;

/**
 * Extract the filters that are complete, which a trailing space marks, from a text.
 * @param {string} text @param {boolean} [isAll] also one at the end of the text
 * @returns {{filters: Filter[], text: string}} the last filter of each name
 */
export function takeFilters(text, isAll = false) {
  /** @type {Filter[]} */
  const filters = [];
  let rest = isAll ? `${text} ` : text;
  for (let match = FINISHED.exec(rest); match; match = FINISHED.exec(rest)) {
    filters.push({ name: match[2].toLowerCase(), value: match[3] ?? match[4] });
    rest =
      rest.slice(0, match.index) + match[1] + rest.slice(match.index + match[0].length).trimStart();
  }
  return { filters: withFilters([], filters), text: isAll ? rest.trimEnd() : rest };
}

/**
 * Merge filters; each name occurs once.
 * @param {Filter[]} filters
 * @param {Filter[]} more
 */
export const withFilters = (filters, more) =>
  Array.from(new Map([...filters, ...more].map((filter) => [filter.name, filter])).values());

/** The query in the server's syntax. @param {Filter[]} filters @param {string} text */
export function queryOf(filters, text) {
  const named = filters.map(
    ({ name, value }) => `${name}:${/\s/.test(value) ? `"${value}"` : value}`,
  );
  return [...named, text.trim()].filter(Boolean).join(" ");
}

/**
 * The words that a message must contain, folded; filters do not count.
 * @param {string} text
 */
export const wordsOf = (text) =>
  Array.from(takeFilters(text, true).text.matchAll(/"([^"]+)"|(\S+)/g), ([, quoted, bare]) =>
    folded(quoted ?? bare),
  );

const BEFORE = 50;
const SHOWN = 220;

/**
 * The part of a text around the first match, in pieces.
 * @param {string} text @param {string[]} words folded
 * @returns {Piece[]}
 */
export function excerpt(text, words) {
  const line = lineOf(text, words);
  const matches = placesOf(line, words);
  const places = matches.map(({ at }) => at);
  const from = Math.max(0, Math.min(...places, line.length) - BEFORE);
  const start = places.length ? from : 0;
  const shown = line.slice(start, start + SHOWN);
  /** @type {Piece[]} */
  const pieces = start > 0 ? [{ text: "…", isFound: false }] : [];
  let at = 0;
  for (const place of matches) {
    const [first, last] = [place.at - start, Math.min(place.end - start, shown.length)];
    if (first < at || first >= last) continue;
    if (first > at) pieces.push({ text: shown.slice(at, first), isFound: false });
    pieces.push({ text: shown.slice(first, last), isFound: true });
    at = last;
  }
  if (at < shown.length) pieces.push({ text: shown.slice(at), isFound: false });
  if (start + SHOWN < line.length) pieces.push({ text: "…", isFound: false });
  return pieces;
}

/**
 * A text without markup, or with it if a word occurs only there, as in the address of a link.
 * @param {string} text
 * @param {string[]} words
 */
function lineOf(text, words) {
  const plain = plainOf(text);
  const letters = folded(plain);
  return words.every((word) => letters.includes(word)) ? plain : text.replace(/\s+/g, " ");
}

/**
 * The positions of words in a line, in order; of two at one position, the longer first.
 * @param {string} line
 * @param {string[]} words
 */
function placesOf(line, words) {
  const { text, starts } = foldedWithPlaces(line);
  const matches = words.filter(Boolean).flatMap((word) => {
    const places = [];
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length))
      places.push({ at: starts[at], end: endOf(starts, at + word.length) });
    return places;
  });
  return matches.toSorted((a, b) => a.at - b.at || b.end - a.end);
}

/**
 * The end of the letter before a position: one letter may fold to several.
 * @param {number[]} starts
 * @param {number} at
 */
function endOf(starts, at) {
  const letter = starts[at - 1];
  while (at < starts.length - 1 && starts[at] === letter) at += 1;
  return starts[at];
}
