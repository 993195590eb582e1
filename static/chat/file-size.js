/** @param {number} bytes */

import { locale } from "./words.js";



export function fileSize(bytes) {
  const number = (value, digits) => new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false }).format(value);
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${number(bytes / 1e3, 0)} kB` : `${number(bytes / 1e6, 1)} MB`;
}
