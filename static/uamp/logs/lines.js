/** Reads lines of JSON from a stream, a few at a time. */

/** How many lines are parsed at once. */
const BATCH = 50;

/**
 * Yield the parsed lines of a stream in batches. Throws SyntaxError for a line that is not JSON,
 * such as the last one of a stream that was cut off.
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} stream
 * @returns {AsyncGenerator<any[]>}
 */
export async function* batchesOf(stream) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const reader = stream.getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      const lines = (rest + decoder.decode(value, { stream: !done })).split("\n");
      rest = done ? "" : (lines.pop() ?? "");
      const texts = lines.filter(Boolean);
      for (let at = 0; at < texts.length; at += BATCH)
        yield texts.slice(at, at + BATCH).map((text) => JSON.parse(text));
      if (done) return;
    }
  } finally {
    await reader.cancel();
  }
}
