/**
 * The service worker: shows the chats while offline, from one release, for one user.
 *
 * It serves pages, and files whose address changes with their content, and never handles the API.
 * It caches the files of a release, and the signed-in user's page; the page itself stores what that
 * user has read (`static/chat/offline/`). Signing out, the login page, and sign-in by another
 * person delete everything but the files. `chat_app.browser.installation` prepends `RELEASE`: an
 * id, the addresses of the bundle, and the address of the icon.
 *
 * It also shows the notifications that `chat_app.push` sends.
 */

"use strict";

const FILES = "uamp.files.";
const PAGE = "uamp.page";
/** As in `static/chat/offline/offline-chats.js`. */
const READ = "uamp.read.";
const HOME = "/";
const OFFLINE = "/offline";
const STILL_SIGNED_IN = "/offline?sign-out";
/** Files at these addresses never change. */
const UNCHANGING = /^\/static\/(?:[0-9a-f]{12}\/.*|dist\/[\w-]+-[0-9A-Z]{8}\.(?:css|js))$/;
const SIGN_IN = /^\/(?:admin\/)?login\/?$/;
const SIGN_OUT = /^\/(?:admin\/)?logout\/?$/;
const CHATS = /^\/(?:chats\/[^/]+)?$/;

/** As in `static/chat/notifications/notifier.js`. */
const pushes = new BroadcastChannel("uamp.pushes");
/** As in `static/chat/offline/worker.js`. */
const signOuts = new BroadcastChannel("uamp.sign-out");
/** Counts deletions: data read before one must not be stored after it. */
let deletions = 0;

addEventListener("install", (event) => event.waitUntil(install()));
addEventListener("activate", (event) => event.waitUntil(activate()));
addEventListener("message", (event) => {
  if (event.data?.type === "keep-page") event.waitUntil(keepPage());
});
addEventListener("push", (event) => event.waitUntil(notify(event.data)));
addEventListener("notificationclick", (event) => event.waitUntil(open(event.notification)));
addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (url.origin !== location.origin) return;
  if (request.mode === "navigate" && request.method === "GET") event.respondWith(page(event, url));
  else if (request.mode === "navigate" && SIGN_OUT.test(url.pathname))
    event.respondWith(signOut(request));
  else if (request.method === "GET" && isUnchanging(url)) event.respondWith(file(request));
});

async function install() {
  const files = await caches.open(FILES + RELEASE.id);
  await files.addAll(RELEASE.files);
  for (const path of [OFFLINE, STILL_SIGNED_IN]) await files.put(path, await read(path));
  // The previous release's page needs that release's files, which stay as long as it does.
  if (await caches.has(PAGE)) await keepPage();
  await skipWaiting();
}

/**
 * Open pages of the previous release still load their later parts: its files are deleted with the
 * next release.
 */
async function activate() {
  const names = (await caches.keys()).filter((name) => name.startsWith(FILES));
  await Promise.all(names.slice(0, -2).map((name) => caches.delete(name)));
  const cached = await keptPage();
  if (cached && !names.slice(-2).includes(FILES + ownerOf(cached)[0])) await caches.delete(PAGE);
  await registration.navigationPreload?.enable();
}

/** @param {URL} url */
function isUnchanging({ pathname, searchParams }) {
  return (
    UNCHANGING.test(pathname) || (pathname.startsWith("/jsi18n/") && searchParams.has("release"))
  );
}

/** Fetch a page as a browser does. @param {string} path @returns {Promise<Response>} */
async function read(path) {
  const response = await fetch(path, {
    headers: { Accept: "text/html" },
    redirect: "manual",
    cache: "no-store",
  });
  if (response.type !== "opaqueredirect" && !response.ok)
    throw new TypeError(`${path}: ${response.status}`);
  return response;
}

/** The release and the user of a page. @param {Response} response @returns {[string, string]} */
function ownerOf(response) {
  const [release = "", person = ""] = (response.headers.get("X-Page") ?? "").split(".");
  return [release, person];
}

/** The cached page of the chats. @returns {Promise<Response|undefined>} */
const keptPage = () => caches.match(HOME, { cacheName: PAGE, ignoreVary: true });

/** Cache the signed-in user's page, with all files that it refers to. */
async function keepPage() {
  const before = deletions;
  const response = await read(HOME);
  if (response.type === "opaqueredirect") {
    await deleteAll();
    return;
  }
  const [release, person] = ownerOf(response);
  await deleteOthers(person);
  // Another release brings its own worker, which caches its page.
  if (release !== RELEASE.id || RELEASE.files.length === 0) return;
  const files = await caches.open(FILES + RELEASE.id);
  const addresses = [...(await response.clone().text()).matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(
    ([, address]) => address.replaceAll("&amp;", "&"),
  );
  for (const address of new Set(addresses)) {
    if (isUnchanging(new URL(address, location.origin)) && !(await files.match(address)))
      await files.add(address);
  }
  if (before === deletions) await (await caches.open(PAGE)).put(HOME, response);
  // A sign-out in the meantime had nothing to delete yet.
  if (before !== deletions) await caches.delete(PAGE);
}

/** Delete what users have read, and the page that identifies them. */
async function deleteAll() {
  deletions += 1;
  const names = await caches.keys();
  await Promise.all(
    names
      .filter((name) => name === PAGE || name.startsWith(READ))
      .map((name) => caches.delete(name)),
  );
  for (const shown of await registration.getNotifications()) shown.close();
  // This contacts the push service. The server has already forgotten this browser.
  registration.pushManager
    ?.getSubscription()
    .then((current) => current?.unsubscribe())
    .catch(() => {});
}

/** Delete the data of anyone else. @param {string} person */
async function deleteOthers(person) {
  const cached = await keptPage();
  const names = await caches.keys();
  const isOther = (/** @type {string} */ name) => name.startsWith(READ) && name !== READ + person;
  if ((cached && ownerOf(cached)[1] !== person) || names.some(isOther)) {
    deletions += 1;
    if (cached && ownerOf(cached)[1] !== person) await caches.delete(PAGE);
    await Promise.all(names.filter(isOther).map((name) => caches.delete(name)));
  }
}

/**
 * Return the server's answer, or the cached page while offline.
 * @param {any} event
 * @param {URL} url
 */
async function page(event, url) {
  let response;
  try {
    response = (await event.preloadResponse) ?? (await fetch(event.request));
  } catch (error) {
    const cached = CHATS.test(url.pathname) && (await keptPage());
    return cached || ((await caches.match(OFFLINE, { ignoreVary: true })) ?? Promise.reject(error));
  }
  // The server redirects signed-in users away from it.
  if (SIGN_IN.test(url.pathname) && response.ok) await deleteAll();
  const [, person] = ownerOf(response);
  if (person) await deleteOthers(person);
  return response;
}

/** @param {Request} request @returns {Promise<Response>} */
async function signOut(request) {
  await deleteAll();
  // Open pages must not store their content or drafts when they close.
  signOuts.postMessage(null);
  try {
    return await fetch(request);
  } catch (error) {
    return (await caches.match(STILL_SIGNED_IN)) ?? Promise.reject(error);
  }
}

/** The open pages of chats. @returns {Promise<readonly any[]>} */
async function chatPages() {
  const pages = await clients.matchAll({ type: "window", includeUncontrolled: true });
  return pages.filter(({ url }) => CHATS.test(new URL(url).pathname));
}

/** Show a message of `chat_app.push`, unless the person sees its chat. @param {any} data */
async function notify(data) {
  const { title, body, chat, message, thread, is_silent: isSilent } = data.json();
  const { held = [] } = await navigator.locks.query();
  // As in `static/chat/notifications/notifier.js`: the page that shows the chat has this lock.
  if (held.some(({ name }) => name.startsWith("uamp.viewing.") && name.endsWith(`.${chat}`)))
    return;
  const pages = await chatPages();
  // An open page has notified already: this replaces its notification.
  pushes.postMessage(message);
  await registration.showNotification(title, {
    body,
    tag: thread ? `thread ${thread}` : `chat ${chat}`,
    renotify: pages.length === 0,
    silent: isSilent || pages.length > 0,
    icon: RELEASE.icon,
    data: { chatId: chat, messageId: message, threadId: thread ?? "" },
  });
}

/** Show the chat of a notification in an open page, or in a new one. @param {any} shown */
async function open(shown) {
  shown.close();
  const pages = await chatPages();
  const path = `/chats/${encodeURIComponent(shown.data.chatId)}`;
  const page = pages.find(({ url }) => new URL(url).pathname === path) ?? pages[0];
  if (!page) {
    await clients.openWindow(path);
    return;
  }
  await page.focus();
  page.postMessage({ type: "open-message", ...shown.data });
}

/** @param {Request} request for an immutable file @returns {Promise<Response>} */
async function file(request) {
  return (await caches.match(request, { ignoreVary: true })) ?? fetch(request);
}
