/** Formats file sizes. */

import { locale } from "../words.js";

/** "512 B", "12 kB", "3.4 MB". @param {number} bytes */
export function fileSize(bytes) {
  const number = (/** @type {number} */ value, /** @type {number} */ digits) =>
    new Intl.NumberFormat(locale, {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
      useGrouping: false,
    }).format(value);
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${number(bytes / 1e3, 0)} kB` : `${number(bytes / 1e6, 1)} MB`;
}
