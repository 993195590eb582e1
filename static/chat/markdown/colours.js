/**
 * Highlights code in a worker: a grammar may take long for code written to exploit it, and the page
 * must stay responsive. The worker is loaded with the first code that has a language.
 */

const CHARS = 20_000;
const SECONDS = 2;
const KEPT = 200;

/** @type {Worker|null} */
let worker = null;
/** Whether the worker is loaded: over a slow network that takes longer than highlighting may. */
let isReady = false;
/**
 * @typedef {[string, string][]} Pieces texts, each with its class
 * @typedef {{key: string, code: string, language: string}} Job
 */

/** @type {Job|null} */
let running = null;
let timer = 0;
/** @type {Job[]} */
const waiting = [];
/**
 * @type {Map<string, Pieces|null>} pieces with their classes by code and language; null while they
 *   are being made, and for unhighlighted code
 */
const known = new Map();
/** @type {Map<string, Set<WeakRef<Element>>>} */
const places = new Map();

/** @param {Element} place that has the code as its text @param {string} language */
export function colour(place, language) {
  const code = place.textContent ?? "";
  if (!code.trim() || code.length > CHARS) return;
  const key = `${language}\n${code}`;
  const pieces = known.get(key);
  if (pieces) {
    paint(place, pieces);
    return;
  }
  if (known.has(key) && !places.has(key)) return;
  if (!places.has(key)) {
    places.set(key, new Set());
    known.set(key, null);
    if (known.size > KEPT) known.delete(known.keys().next().value ?? "");
    waiting.push({ key, code, language });
  }
  places.get(key)?.add(new WeakRef(place));
  next();
}

/** @param {Element} place @param {Pieces} pieces */
function paint(place, pieces) {
  place.replaceChildren(
    ...pieces.map(([text, kind]) => {
      if (!kind) return text;
      const span = document.createElement("span");
      span.className = kind;
      span.textContent = text;
      return span;
    }),
  );
}

function next() {
  if (running) return;
  const job = waiting.shift();
  if (!job) return;
  running = job;
  if (worker) {
    if (isReady) send();
    return;
  }
  isReady = false;
  worker = new Worker(new URL("./colour-worker.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }) => {
    if (isReady) return done(data);
    isReady = true;
    send();
  };
  worker.onerror = () => {
    end();
    done(null);
  };
}

/** Send the next code to the loaded worker. */
function send() {
  if (!running) return;
  worker?.postMessage({ code: running.code, language: running.language });
  timer = window.setTimeout(() => {
    end();
    done(null);
  }, SECONDS * 1000);
}

function end() {
  worker?.terminate();
  worker = null;
}

/** @param {Pieces|null} pieces */
function done(pieces) {
  clearTimeout(timer);
  if (!running) return;
  const { key, code } = running;
  running = null;
  if (known.has(key)) known.set(key, pieces);
  for (const reference of places.get(key) || []) {
    const place = reference.deref();
    if (pieces && place?.textContent === code) paint(place, pieces);
  }
  places.delete(key);
  next();
}
