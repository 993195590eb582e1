/**
 * The texts of the page in the user's language: Django's catalogue (`/jsi18n/<language>`), loaded
 * by a script in the page's head. Without it, as under node, texts stay untranslated.
 *
 * Values in a text have names: `interpolate(gettext("%(name)s left"), { name })`. Never join
 * pieces: the order of words differs between languages.
 */

/**
 * @type {{gettext: (text: string) => string, ngettext: (one: string, many: string, count: number)
 *   => string, pgettext: (context: string, text: string) => string}|undefined}
 */
const catalogue = /** @type {any} */ (globalThis).django;

/** @param {string} text @returns {string} */
export const gettext = (text) => catalogue?.gettext(text) ?? text;

/**
 * A text that depends on a number, in the plural forms of the language.
 * @param {string} singular @param {string} plural @param {number} count @returns {string}
 */
export const ngettext = (singular, plural, count) =>
  catalogue?.ngettext(singular, plural, count) ?? (count === 1 ? singular : plural);

/**
 * A text that means different things in different places. @param {string} context where it is shown
 * @param {string} text @returns {string}
 */
export const pgettext = (context, text) => catalogue?.pgettext(context, text) ?? text;

/** Right-to-left letters, and characters that change the direction of the following ones. */
const TURNS =
  /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const ISOLATES = /[\u2066-\u2069]/g;

/**
 * Isolate a value, like `<bdi>`: a name in it must not reverse the sentence or another value.
 * @param {string} value
 */
const isolated = (value) =>
  TURNS.test(value) ? `\u2068${value.replace(ISOLATES, "")}\u2069` : value;

/**
 * Replace each `%(name)s` in a text with its value; `%%` is a percent sign.
 * @param {string} text @param {Record<string, string|number>} values @returns {string}
 */
export const interpolate = (text, values) =>
  text.replace(/%(?:%|\((\w+)\)[sd])/g, (all, name) =>
    name === undefined ? "%" : name in values ? isolated(String(values[name])) : all,
  );

const page = globalThis.document?.documentElement.lang || "en";

/**
 * The page's locale for dates and numbers, with the browser's region if it has the same language:
 * "en-GB".
 */
export const locale =
  globalThis.navigator?.languages?.find((one) => one.split("-")[0] === page.split("-")[0]) ?? page;
