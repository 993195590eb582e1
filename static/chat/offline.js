/** Registers the service worker, which shows the page while there is no connection (`static/offline/`). */

/** Addresses that are not secure, and some private windows, have no service workers: the page works without. */
export async function registerWorker() {
  try {
    await navigator.serviceWorker?.register("/service-worker.js");
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof DOMException)) throw error;
  }
}
