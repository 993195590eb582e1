/**
 * The service worker: keeps the files of one release, and shows a page in place of a browser's error while there is no
 * connection. `chat_app.browser.installation` puts `RELEASE` before it: an id, and the addresses of the bundle.
 *
 * It answers for pages and for files whose address changes with their text. It never sees an answer of the API.
 */

"use strict";

/** @typedef {{id: string, files: string[]}} Release */

const FILES = "uamp.files.";
const OFFLINE = "/offline";
/** A file at such an address is never another one. */
const UNCHANGING = /^\/static\/(?:[0-9a-f]{12}\/.*|dist\/[\w-]+-[0-9A-Z]{8}\.(?:css|js))$/;

addEventListener("install", (event) => event.waitUntil(install()));
addEventListener("activate", (event) => event.waitUntil(activate()));
addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (url.origin !== location.origin) return;
  if (request.mode === "navigate" && request.method === "GET") event.respondWith(page(event));
  else if (request.method === "GET" && isUnchanging(url)) event.respondWith(file(request));
});

async function install() {
  const files = await caches.open(FILES + RELEASE.id);
  await files.addAll(RELEASE.files);
  await files.put(OFFLINE, await read(OFFLINE));
  await skipWaiting();
}

/** Pages of the release before still load their later parts: its files go with the next one. */
async function activate() {
  const names = (await caches.keys()).filter((name) => name.startsWith(FILES));
  await Promise.all(names.slice(0, -2).map((name) => caches.delete(name)));
  await registration.navigationPreload?.enable();
}

/** @param {URL} url */
function isUnchanging({ pathname, searchParams }) {
  return UNCHANGING.test(pathname) || (pathname.startsWith("/jsi18n/") && searchParams.has("release"));
}

/** Read a page as a browser does. @param {string} path @returns {Promise<Response>} */
async function read(path) {
  const response = await fetch(path, { headers: { Accept: "text/html" }, redirect: "manual" });
  if (response.type !== "opaqueredirect" && !response.ok) throw new Error(`${path}: ${response.status}`);
  return response;
}

/** @param {any} event */
async function page(event) {
  try {
    return (await event.preloadResponse) ?? (await fetch(event.request));
  } catch (error) {
    return (await caches.match(OFFLINE)) ?? Promise.reject(error);
  }
}

/** @param {Request} request of a file that is never another one @returns {Promise<Response>} */
async function file(request) {
  const kept = await caches.match(request);
  if (kept) return kept;
  return fetch(request);
}
