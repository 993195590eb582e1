/** Registers the service worker, which shows the page while offline (`static/offline/`). */

/** As in `static/offline/service-worker.js`. */
const PAGE = "uamp.page";

/**
 * Register the worker, and have it store this page; with the next connection, retry whatever a bad
 * one prevented. Insecure addresses and some private windows have no service workers: the page
 * works without.
 * @param {import("../../uamp/client.js").UampClient} client
 */
export async function registerWorker(client) {
  if (!navigator.serviceWorker) return;
  client.addEventListener(
    "state",
    () => client.state.phase === "open" && register({ unlessKept: true }),
  );
  await register({ unlessKept: false });
}

/** @param {{unlessKept: boolean}} when */
async function register({ unlessKept }) {
  try {
    if (unlessKept && (await caches.match("/", { cacheName: PAGE, ignoreVary: true }))) return;
    await navigator.serviceWorker.register("/service-worker.js");
    const { active } = await navigator.serviceWorker.ready;
    active?.postMessage({ type: "keep-page" });
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof DOMException)) throw error;
  }
}

/** Messages between the tabs of a browser and its service worker. */
const signOuts = new BroadcastChannel("uamp.sign-out");

/**
 * @param {() => void} listener called when the user signs out in another tab, or on a page
 *   without this script
 */
export const onSignOut = (listener) => signOuts.addEventListener("message", listener);

/** Notify other tabs that the user signs out. */
export const tellSignOut = () => signOuts.postMessage(null);
