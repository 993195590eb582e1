/** Decides which files can be previewed on the page, and parses tables. Knows no DOM. */

/** How much of a file is fetched for its preview. */
export const PREVIEW_BYTES = 200_000;
const ROWS = 500;
const COLUMNS = 50;
const TABLES = /\.(csv|tsv)$/i;
const TEXTS =
  /\.(txt|md|markdown|log|json|jsonl|ndjson|ya?ml|toml|ini|xml|svg|html?|css|[cm]?js|ts|py|rb|go|rs|java|kt|c|h|cpp|sh|sql|diff|patch|tex|srt|vtt)$/i;

/**
 * The kind of preview of a file, or "" for download only. Web pages and drawings are shown as
 * source.
 * @param {string} name
 * @param {string} mime
 * @returns {"pdf"|"table"|"text"|""}
 */
export function previewOf(name, mime) {
  if (mime === "application/pdf") return "pdf";
  if (/^text\/(csv|tab-separated-values)\b/.test(mime) || TABLES.test(name)) return "table";
  return /^(text\/|application\/(json|xml|x-ndjson|yaml|toml|xhtml\+xml)\b|image\/svg)/.test(
    mime,
  ) || TEXTS.test(name)
    ? "text"
    : "";
}

/** The first line in which spreadsheets declare the separator. */
const SEPARATOR_LINE = /^\uFEFF?"?sep=(.)\1*"?[ \t]*(?:\r\n?|\n|$)/i;
const SAMPLE_CHARS = 65_536;
const SAMPLE_LINES = 20;

/**
 * Guess the separator: the one that most of the first lines contain as often as the first line
 * does; of equals, the most frequent.
 * @param {string} text
 */
function separatorOf(text) {
  const lines = text
    .slice(0, SAMPLE_CHARS)
    .replace(/"[^"]*"/g, "")
    .split(/\r\n?|\n/)
    .filter((line) => line.trim())
    .slice(0, SAMPLE_LINES);
  const signs = [",", ";", "\t", "|"].map((sign) => {
    const counts = lines.map((line) => line.split(sign).length - 1);
    const count = counts[0] || 0;
    return { sign, count, lines: count ? counts.filter((one) => one === count).length : 0 };
  });
  return signs.reduce((best, one) =>
    one.lines > best.lines || (one.lines === best.lines && one.count > best.count) ? one : best,
  ).sign;
}

/**
 * Parse a table (RFC 4180): only its first rows and columns.
 * @param {string} text
 * @returns {{rows: string[][], isCut: boolean}}
 */
export function tableOf(text) {
  const named = SEPARATOR_LINE.exec(text);
  const separator = named ? named[1] : separatorOf(text);
  /** @type {string[][]} */
  const rows = [];
  /** @type {string[]} */
  let row = [];
  let cell = "";
  let isQuoted = false;
  let isCut = false;
  const endCell = () => {
    if (row.length < COLUMNS) row.push(cell);
    else isCut = true;
    cell = "";
  };
  const endRow = () => {
    endCell();
    if (row.length > 1 || row[0]) rows.push(row);
    row = [];
  };
  let at = named ? named[0].length : text.startsWith("\uFEFF") ? 1 : 0;
  for (; at < text.length && rows.length < ROWS; at += 1) {
    const sign = text[at];
    if (isQuoted) {
      if (sign !== '"') cell += sign;
      else if (text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else isQuoted = false;
    } else if (sign === '"' && cell === "") isQuoted = true;
    else if (sign === separator) endCell();
    else if (sign === "\n") endRow();
    else if (sign !== "\r" || text[at + 1] !== "\n") cell += sign;
  }
  if (at >= text.length && (cell || row.length)) endRow();
  return { rows, isCut: isCut || at < text.length };
}
