/** Where the blocks of a growing markdown text end. Knows no DOM. */

const FENCE = /^ {0,3}(`{3,}|~{3,})([^\n`]*)(?:\n|$)/;

/**
 * The fence that a text begins with.
 * @param {string} text
 * @returns {{length: number, language: string}|null}
 */
export function fenceOf(text) {
  const fence = FENCE.exec(text);
  return fence && { length: fence[0].length, language: fence[2].trim().split(/\s/)[0] };
}

/**
 * Where the last finished block of a text ends: behind a blank line or before a fence, never inside
 * a fenced block.
 * @param {string} text @param {number} from start of a block
 */
export function finishedUntil(text, from) {
  let end = from;
  let fence = "";
  let at = from;
  while (at < text.length) {
    const newline = text.indexOf("\n", at);
    if (newline === -1) break;
    const line = text.slice(at, newline);
    const mark = FENCE.exec(line)?.[1];
    if (fence) {
      if (mark?.startsWith(fence) && line.trim() === mark) {
        fence = "";
        end = newline + 1;
      }
    } else if (mark) {
      fence = mark;
      end = at;
    } else if (!line.trim()) end = newline + 1;
    at = newline + 1;
  }
  return end;
}
