/** Amounts of money as decimal strings, never as floats, whose rounding errors would show. */

import { locale } from "../words.js";

const PLACES = 9;
const CENT = 10n ** BigInt(PLACES - 2);

/** @param {string} text a decimal string @returns {bigint} its smallest units */
export function units(text) {
  const [whole, places = ""] = String(text).replace("-", "").split(".");
  const value =
    BigInt(whole || "0") * 10n ** BigInt(PLACES) + BigInt(places.padEnd(PLACES, "0") || "0");
  return String(text).startsWith("-") ? -value : value;
}

/** @param {bigint} value smallest units @returns {string} the shortest decimal string */
export function decimal(value) {
  const digits = String(value < 0n ? -value : value).padStart(PLACES + 1, "0");
  const places = digits.slice(-PLACES).replace(/0+$/, "");
  return `${value < 0n ? "-" : ""}${digits.slice(0, -PLACES)}${places ? `.${places}` : ""}`;
}

/** The decimal separator of the page's language. */
const POINT =
  new Intl.NumberFormat(locale).formatToParts(1.5).find(({ type }) => type === "decimal")?.value ===
  ","
    ? ","
    : ".";

/**
 * An amount with at least two decimal places and no currency sign, for an input: "1.00", in German
 * "1,00".
 * @param {string} amount
 */
export function padded(amount) {
  const [whole, places = ""] = decimal(units(amount)).replace("-", "").split(".");
  return `${whole}${POINT}${places.padEnd(2, "0")}`;
}

/**
 * Parse an amount from an input: some keyboards only have a comma. "1,000", which may mean a
 * thousand, is left as it is and refused.
 * @param {string} text
 */
export const amountFromInput = (text) =>
  text
    .trim()
    .replace(/^(\d+),(\d{1,2})$/, "$1.$2")
    .replace(/^(0+),(\d+)$/, "$1.$2");

/**
 * A decimal string in the language of the page: "$5.00", "5,00 €", "3.00 CREDITS".
 * @param {string} amount
 * @param {string} currency
 */
function localized(amount, currency) {
  const places = { minimumFractionDigits: 2, maximumFractionDigits: PLACES };
  const isKnown = /^[A-Z]{3}$/.test(currency);
  /** @type {Intl.NumberFormatOptions} */
  const style = isKnown ? { style: "currency", currency, currencyDisplay: "narrowSymbol" } : {};
  const text = new Intl.NumberFormat(locale, { ...style, ...places })
    .format(/** @type {Intl.StringNumericLiteral} */ (amount))
    .replace("-", "−");
  return isKnown ? text : `${text} ${currency}`;
}

/** An amount with all of its digits: a price, an entry of the statement. @param {string} amount */
export const formatExact = (amount, currency = "USD") =>
  localized(decimal(units(amount)), currency);

/**
 * Round to whole cents, or to two digits below a cent.
 * @param {string} amount
 * @param {(value: bigint, step: bigint) => bigint} toSteps how many steps a positive value is
 */
function rounded(amount, toSteps) {
  const value = units(amount);
  const size = value < 0n ? -value : value;
  const step = size >= CENT ? CENT : 10n ** BigInt(Math.max(0, String(size).length - 2));
  const result = toSteps(size, step) * step;
  return decimal(value < 0n ? -result : result);
}

/**
 * An amount paid or available, to the nearest cent: "$0.02", "$5.12".
 * @param {string} amount
 */
export const formatAmount = (amount, currency = "USD") =>
  localized(
    rounded(amount, (value, step) => (2n * value + step) / (2n * step)),
    currency,
  );

/**
 * An amount due, rounded up: no one pays more than the amount they see.
 * @param {string} amount
 */
export const atMost = (amount) => rounded(amount, (value, step) => (value + step - 1n) / step);

/** An amount due, formatted for the user. @param {string} amount */
export const formatDue = (amount, currency = "USD") => localized(atMost(amount), currency);

/** Convert a float from the wire (UAMP §8.7) to a decimal string. @param {number} number */
export const fromFloat = (number) =>
  Number(number)
    .toFixed(PLACES)
    .replace(/\.?0+$/, "");
