/**
 * The style page's fake server: fixed answers, and a socket that never opens. The components are
 * the product's own, so every request of theirs needs an answer. Imported before them.
 */

/**
 * @typedef {(path: string) => unknown} Answer returns the answer to a request for a path; undefined
 *   for 404
 */

/** @type {Answer} */
let answerTo = () => undefined;

/** @param {Answer} answer */
export function answerWith(answer) {
  answerTo = answer;
}

/** A socket that never finishes connecting. */
class SampleSocket extends EventTarget {
  static OPEN = 1;
  readyState = 0;
  send() {}
  close() {}
}

/** The original `fetch`, for the page's own files. */
const fetchFile = globalThis.fetch.bind(globalThis);

/** @param {RequestInfo|URL} input @param {RequestInit} [options] @returns {Promise<Response>} */
async function fetchSample(input, options) {
  const { pathname, search } = new URL(String(input), location.origin);
  if (pathname.startsWith("/static/")) return fetchFile(input, options);
  const answer = answerTo(`${pathname.replace(/^\/api\/v1/, "")}${search}`);
  if (typeof answer === "string") return new Response(answer);
  const [body, status] =
    answer === undefined ? [{ title: "This page only shows samples." }, 404] : [answer, 200];
  return new Response(JSON.stringify(body), {
    status,
    headers: { "Content-Type": "application/json" },
  });
}

Object.assign(globalThis, { WebSocket: SampleSocket, fetch: fetchSample });
