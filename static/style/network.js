/**
 * The server of the style page: answers that are always the same, and a socket that never opens.
 * The components are the product's own, so whatever they ask for has to be answered. Imported
 * before them.
 */

/**
 * @typedef {(path: string) => unknown} Answer what a request for a path is answered with; undefined
 *   for 404
 */

/** @type {Answer} */
let answerTo = () => undefined;

/** @param {Answer} answer */
export function answerWith(answer) {
  answerTo = answer;
}

/** A socket that is being connected for as long as the page is open. */
class SampleSocket extends EventTarget {
  static OPEN = 1;
  readyState = 0;
  send() {}
  close() {}
}

/** What the server of the page itself answers. */
const fetchFile = globalThis.fetch.bind(globalThis);

/** @param {RequestInfo|URL} input @param {RequestInit} [options] @returns {Promise<Response>} */
async function fetchSample(input, options) {
  const { pathname, search } = new URL(String(input), location.origin);
  if (pathname.startsWith("/static/")) return fetchFile(input, options);
  const found = answerTo(`${pathname.replace(/^\/api\/v1/, "")}${search}`);
  if (typeof found === "string") return new Response(found);
  const [body, status] =
    found === undefined ? [{ title: "This page only shows samples." }, 404] : [found, 200];
  return new Response(JSON.stringify(body), {
    status,
    headers: { "Content-Type": "application/json" },
  });
}

Object.assign(globalThis, { WebSocket: SampleSocket, fetch: fetchSample });
