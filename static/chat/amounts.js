/** Amounts of money as decimal strings: never a float, which would show cents that are not there. */

const PLACES = 9;
/** @type {Record<string, string>} */
const SIGNS = { USD: "$" };

/** @param {string} text a decimal string @returns {bigint} its smallest units */
export function units(text) {
  const [whole, places = ""] = String(text).replace("-", "").split(".");
  const value = BigInt(whole || "0") * 10n ** BigInt(PLACES) + BigInt(places.padEnd(PLACES, "0") || "0");
  return String(text).startsWith("-") ? -value : value;
}

/** @param {bigint} value smallest units @returns {string} the shortest decimal string */
export function decimal(value) {
  const digits = String(value < 0n ? -value : value).padStart(PLACES + 1, "0");
  const places = digits.slice(-PLACES).replace(/0+$/, "");
  return `${value < 0n ? "-" : ""}${digits.slice(0, -PLACES)}${places ? `.${places}` : ""}`;
}

/** An amount with at least two places and no sign, as one would write it into a field: "1.00". @param {string} amount */
export function padded(amount) {
  const [whole, places = ""] = decimal(units(amount)).replace("-", "").split(".");
  return `${whole}.${places.padEnd(2, "0")}`;
}

/** An amount as people read it: "$0.02", "$5.1204", "3.00 CREDITS". @param {string} amount */
export function shown(amount, currency = "USD") {
  const text = decimal(units(amount));
  const number = padded(amount);
  const minus = text.startsWith("-") ? "−" : "";
  return SIGNS[currency] ? `${minus}${SIGNS[currency]}${number}` : `${minus}${number} ${currency}`;
}

/** The same to the cent, rounded down, where room is short and there is at least a cent. @param {string} amount */
export function brief(amount, currency = "USD") {
  const cent = 10n ** BigInt(PLACES - 2);
  const value = units(amount);
  return shown(value < cent ? amount : decimal((value / cent) * cent), currency);
}

/** A number that the wire has as a float (UAMP §8.7) as a decimal string. @param {number} number */
export const fromFloat = (number) => Number(number).toFixed(PLACES).replace(/\.?0+$/, "");
