/**
 * Notifications of this browser while no page is open (Web Push): the server sends them, and the
 * service worker (`static/offline/service-worker.js`) shows them.
 */

import { isApiError } from "../api.js";
import { permission } from "./notifier.js";

const OFF = "uamp.push.off";
const ID = "uamp.push.id";

/**
 * @typedef {{id: string, device: string, created_at: string, sent_at: string|null, failures:
 *   number}} Device
 */

/**
 * Whether this browser can receive Web Push: it needs a secure address, and the user's permission.
 */
export const canPush = () =>
  "PushManager" in window && Boolean(navigator.serviceWorker) && permission() === "granted";

/** Whether the user removed this browser from the list. */
export const isOff = () => localStorage.getItem(OFF) === "1";

/** The id of this browser in the list of devices; "" for none. */
export const ownId = () => localStorage.getItem(ID) ?? "";

/**
 * Subscribe now and whenever the user allows notifications; fires `push-devices` on the window.
 * @param {import("../api.js").Api} api
 */
export function beNotified(api) {
  const subscribe = async () => {
    try {
      if (await keepSubscribed(api)) dispatchEvent(new Event("push-devices"));
    } catch (error) {
      // The next page tries again.
      if (!isApiError(error)) throw error;
    }
  };
  addEventListener("notification-permission", subscribe);
  return subscribe();
}

/**
 * Have the server send notifications to this browser, if the user has granted permission.
 * @param {import("../api.js").Api} api
 * @returns {Promise<boolean>} whether it does
 */
export async function keepSubscribed(api) {
  if (!canPush() || isOff()) return false;
  const registration = await navigator.serviceWorker.getRegistration();
  if (!registration?.active) return false;
  const { key } = await api.get("/me/push-key");
  try {
    const { endpoint, keys } = (await subscriptionWith(registration.pushManager, key)).toJSON();
    const { id } = await api.post("/me/push-subscriptions", {
      endpoint,
      p256dh: keys?.p256dh,
      auth: keys?.auth,
    });
    localStorage.setItem(ID, id);
    return true;
  } catch (error) {
    // The browser's push service cannot be reached, or there is none.
    if (!(error instanceof DOMException)) throw error;
    return false;
  }
}

/** Resume notifications in this browser after `remove`. @param {import("../api.js").Api} api */
export async function turnOn(api) {
  localStorage.removeItem(OFF);
  await keepSubscribed(api);
}

/** @param {import("../api.js").Api} api @returns {Promise<Device[]>} newest first */
export async function devices(api) {
  return (await api.get("/me/push-subscriptions")).data;
}

/**
 * Stop sending notifications to a browser; this one stays off until `turnOn`.
 * @param {import("../api.js").Api} api
 * @param {string} id
 */
export async function remove(api, id) {
  await api.send("DELETE", `/me/push-subscriptions/${id}`);
  if (id !== ownId()) return;
  localStorage.setItem(OFF, "1");
  localStorage.removeItem(ID);
  const registration = await navigator.serviceWorker?.getRegistration();
  await (await registration?.pushManager?.getSubscription())?.unsubscribe();
}

/**
 * @param {PushManager} manager
 * @param {string} key of the server
 * @returns {Promise<PushSubscription>}
 */
async function subscriptionWith(manager, key) {
  const current = await manager.getSubscription();
  if (current && base64url(current.options.applicationServerKey) === key) return current;
  // The server's key has changed.
  await current?.unsubscribe();
  return manager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
}

/** @param {ArrayBuffer|null} buffer */
const base64url = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer ?? new ArrayBuffer(0))))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
