/**
 * Forms that a passkey fills in: `data-passkey="add"` creates one, `data-passkey="use"` signs in or
 * confirms with one.
 *
 * The server's options are in the form, or at the address in `data-options`; the authenticator's
 * answer goes into the field `credential`. Browsers without passkeys do not show the buttons.
 */

import { gettext } from "../chat/words.js";

/**
 * @typedef {{ parseCreationOptionsFromJSON: (options: any) => any, parseRequestOptionsFromJSON:
 *   (options: any) => any }} Parsers
 */

const Credentials = /** @type {(typeof PublicKeyCredential & Parsers) | undefined} */ (
  globalThis.PublicKeyCredential
);

/** The options of a form. @param {HTMLFormElement} form @returns {Promise<any>} */
async function optionsOf(form) {
  const address = form.dataset.options;
  if (address === undefined)
    return JSON.parse(form.querySelector('script[type="application/json"]')?.textContent ?? "{}")
      .publicKey;
  const answer = await fetch(address, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return (await answer.json()).request_options.publicKey;
}

/**
 * Ask the authenticator for a credential.
 * @param {HTMLFormElement} form
 * @param {Parsers} parsers
 * @returns {Promise<any>}
 */
async function credentialOf(form, parsers) {
  const options = await optionsOf(form);
  return form.dataset.passkey === "add"
    ? navigator.credentials.create({ publicKey: parsers.parseCreationOptionsFromJSON(options) })
    : navigator.credentials.get({ publicKey: parsers.parseRequestOptionsFromJSON(options) });
}

/** The explanation of a failure, for the user. @param {unknown} error */
function explanation(error) {
  const name = error instanceof DOMException ? error.name : "";
  if (name === "NotAllowedError")
    return gettext("Nothing was changed: the request was cancelled or timed out.");
  if (name === "InvalidStateError")
    return gettext("This device already has a passkey for your account.");
  if (name === "SecurityError")
    return gettext("Passkeys don't work at this address. Open the server at its public address.");
  return gettext("That didn't work. Try again.");
}

/** @param {HTMLFormElement} form @param {Parsers} parsers */
function prepare(form, parsers) {
  const field = /** @type {HTMLInputElement} */ (form.elements.namedItem("credential"));
  const button = /** @type {HTMLButtonElement} */ (form.querySelector("button"));
  const alert = /** @type {HTMLElement} */ (form.querySelector("p[role=alert][hidden]"));
  button.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    alert.hidden = true;
    try {
      field.value = JSON.stringify(await credentialOf(form, parsers));
      form.submit();
    } catch (error) {
      alert.textContent = explanation(error);
      alert.hidden = false;
      button.disabled = false;
    }
  });
}

if (Credentials && "parseRequestOptionsFromJSON" in Credentials) {
  for (const form of /** @type {NodeListOf<HTMLFormElement>} */ (
    document.querySelectorAll("form[data-passkey]")
  ))
    prepare(form, Credentials);
}
