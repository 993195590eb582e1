/** Reads newline-delimited JSON from a stream, a few lines at a time. */

/** How many lines are parsed at once. */
const BATCH = 50;

/** The stream broke off: its connection was lost, or its reader stopped it. */
export class LostStream extends Error {}

/**
 * Yield the parsed lines of a stream in batches. Throws SyntaxError for a line that is not JSON in
 * UTF-8, such as the last one of a stream that was cut off, and LostStream.
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} stream
 * @returns {AsyncGenerator<any[]>}
 */
export async function* batchesOf(stream) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const reader = stream.getReader();
  /** The parts of the line that has no end yet. @type {string[]} */
  let parts = [];
  try {
    for (;;) {
      const { value, done } = await reader.read().catch(lost);
      const text = decoded(decoder, value, !done);
      const end = done ? text.length : text.lastIndexOf("\n");
      parts.push(text.slice(0, end < 0 ? text.length : end));
      if (end < 0) continue;
      const texts = parts.join("").split("\n").filter(Boolean);
      parts = [text.slice(end + 1)];
      for (let at = 0; at < texts.length; at += BATCH)
        yield texts.slice(at, at + BATCH).map((line) => JSON.parse(line));
      if (done) return;
    }
  } finally {
    // A stream that broke off cannot be cancelled.
    await reader.cancel().catch(() => {});
  }
}

/** @param {unknown} cause @returns {never} */
function lost(cause) {
  throw new LostStream("The stream broke off.", { cause });
}

/**
 * @param {TextDecoder} decoder
 * @param {Uint8Array<ArrayBuffer>|undefined} bytes
 * @param {boolean} stream whether more bytes follow
 */
function decoded(decoder, bytes, stream) {
  try {
    return decoder.decode(bytes, { stream });
  } catch (error) {
    throw new SyntaxError("The stream is not UTF-8.", { cause: error });
  }
}
