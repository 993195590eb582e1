/**
 * Verifies the signatures of agents on messages, and of the server on receipts, with WebCrypto
 * (docs/signatures.md): `checkAnswer` and `checkReceipt` correspond to `check_answer` and
 * `check_receipt` of `uamp.signatures` in Python.
 */

/**
 * @typedef {import("./types.js").SignatureState} SignatureState
 * @typedef {import("./types.js").RequestState} RequestState
 * @typedef {import("./types.js").HashedQuestion} HashedQuestion
 * @typedef {import("./types.js").SignedMessage} SignedMessage
 * @typedef {import("./types.js").Claims} Claims
 * @typedef {import("./types.js").SignedReceipt} SignedReceipt
 * @typedef {import("./types.js").ReceiptClaims} ReceiptClaims
 * @typedef {import("./types.js").PublishedKey} PublishedKey
 */

const TYPE = "response+jwt";
const RECEIPT_TYPE = "receipt+jwt";
/** The owner of the keys that sign receipts. */
const RECEIPTS = "receipts";
const MEMBERS = "alg,kid,typ";
const MAX_CHARS = 8192;
const RSA_BITS = 2048;
/**
 * How long after its recorded retirement, or before its recorded creation, a key may have signed:
 * other processes may use it a little longer, and a new key may sign before it is recorded.
 */
const LATE_SECONDS = 120;
const SHAPE = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;
const LONE_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/;
/** @type {Record<string, {key: any, sign: any}>} */
const ALGORITHMS = {
  RS256: {
    key: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
    sign: { name: "RSASSA-PKCS1-v1_5" },
  },
  ES256: { key: { name: "ECDSA", namedCurve: "P-256" }, sign: { name: "ECDSA", hash: "SHA-256" } },
  EdDSA: { key: { name: "Ed25519" }, sign: { name: "Ed25519" } },
};
const HASHES = ["response_hash", "output_hash", "request_hash"];
const STRINGS = ["iss", "sub", "agent", "chat_id", "jti", ...HASHES];
/** The members of a receipt that correspond to claims of the same name. */
const PAID = ["agent", "amount", "refunded", "fee", "currency", "paid_at"];
const RECEIPT_STRINGS = ["iss", "sub", "chat_id", "response_id", ...PAID];

class BadSignature extends Error {}
class UnknownKey extends BadSignature {}
class Unsupported extends Error {}

/**
 * The canonical form of JSON values (RFC 8785). Members are sorted by UTF-16 code units, as `sort`
 * does. Throws for values outside JSON: NaN, and lone surrogates.
 * @param {any} value
 * @returns {string}
 */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value && typeof value === "object") {
    const names = Object.keys(value)
      .filter((name) => value[name] !== undefined)
      .sort();
    return `{${names.map((name) => `${canonical(name)}:${canonical(value[name])}`).join(",")}}`;
  }
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError("no JSON number");
  if (typeof value === "string" && LONE_SURROGATE.test(value)) throw new TypeError("no text");
  return JSON.stringify(value);
}

/** The SHA-256 of a text in UTF-8, in lower-case hex. @param {string} text */
export async function sha256(text) {
  const digest = new Uint8Array(
    await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)),
  );
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Verify a message against its `signature`.
 * @param {SignedMessage} message
 * @param {PublishedKey[]} keys those of the server (`/.well-known/jwks.json`)
 * @param {{chatId?: string, question?: SignedMessage|null}} [about] the chat, and the message of
 *   `request_id`
 * @returns {Promise<import("./types.js").Verdict>}
 */
export async function checkAnswer(message, keys, { chatId, question } = {}) {
  const { signature } = message;
  if (signature === undefined || signature === null)
    return {
      // The server withholds the signature of a deleted answer.
      state: message.response_id && isErased(message) ? "erased" : "unsigned",
      request: "absent",
    };
  try {
    const opened = await open(signature, keys, TYPE, STRINGS);
    const { key } = opened;
    const claims = /** @type {Claims} */ (opened.claims);
    if (!couldSign(key, `agent:${claims.sub}`, claims.iat)) throw new UnknownKey();
    const request = question ? requestOf(claims, await hashedQuestion(question)) : "absent";
    const about = { claims, kid: key.kid, request };
    const state = await stateOf(claims, key, message, chatId);
    const part =
      state === "valid" || state === "rotated" ? changedPart(claims, message) : undefined;
    return part ? { ...about, state: "changed", part } : { ...about, state };
  } catch (error) {
    return { state: failure(error), request: "absent" };
  }
}

/**
 * The part of the stored response that differs from the signed one; other protocols read it.
 * @param {Claims} claims
 * @param {SignedMessage} message
 * @returns {"response"|"usage"|undefined}
 */
function changedPart({ output_hash, usage_hash }, message) {
  if ((message.stored_output_hash ?? output_hash) !== output_hash) return "response";
  if (usage_hash && (message.stored_usage_hash ?? usage_hash) !== usage_hash) return "usage";
}

/**
 * Verify a receipt against its `document`.
 * @param {SignedReceipt} receipt
 * @param {PublishedKey[]} keys those of the server
 * @param {{chatId?: string, message?: SignedMessage}} [about] the chat, and the answer that was
 *   paid: its price is compared where its key is among them
 * @returns {Promise<import("./types.js").ReceiptVerdict>}
 */
export async function checkReceipt(receipt, keys, { chatId, message } = {}) {
  const { document: signed } = receipt;
  if (signed === undefined || signed === null) return { state: "unsigned" };
  try {
    const { claims, key } = await open(signed, keys, RECEIPT_TYPE, RECEIPT_STRINGS);
    const paid = /** @type {ReceiptClaims} */ (claims);
    if (!couldSign(key, RECEIPTS, paid.iat)) throw new UnknownKey();
    const about = { claims: paid, kid: key.kid };
    const isSame =
      isSameReceipt(receipt, paid) &&
      (chatId === undefined || chatId === paid.chat_id) &&
      (!message || (await isReceiptOf(paid, message)));
    if (!isSame) return { ...about, state: "changed" };
    const price = message?.signature ? await signedPrice(message.signature, keys) : null;
    if (price && !isOfPrice(paid, price)) return { ...about, state: "changed", price };
    return { ...about, state: isTime(key.exp) ? "rotated" : "valid" };
  } catch (error) {
    return { state: failure(error) };
  }
}

/** @param {unknown} error @returns {SignatureState} Rethrows unrelated errors. */
function failure(error) {
  if (error instanceof UnknownKey) return "unknown_key";
  if (error instanceof BadSignature) return "changed";
  if (error instanceof Unsupported) return "unsupported";
  throw error;
}

/** @param {SignedReceipt} receipt @param {ReceiptClaims} claims */
function isSameReceipt(receipt, claims) {
  const members = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (receipt));
  return (
    PAID.every((name) => members[name] === claims[name]) &&
    canonical(receipt.transfers ?? null) === canonical(claims.transfers ?? []) &&
    (receipt.response_id ?? claims.response_id) === claims.response_id
  );
}

/** @param {ReceiptClaims} claims @param {SignedMessage} message */
async function isReceiptOf(claims, { id, response_id: responseId, signature }) {
  const signed = signature ? await sha256(signature) : undefined;
  return (
    responseId === claims.response_id && id === claims.message_id && signed === claims.answer_hash
  );
}

/** @param {ReceiptClaims} claims @param {{amount: string, currency: string}} price */
const isOfPrice = (claims, price) =>
  price.amount === claims.amount &&
  // A receipt over zero has the currency of the delegated work.
  (claims.amount === "0" || price.currency === claims.currency);

/**
 * The price in an answer's signature; null if it cannot be verified.
 * @param {string} signature
 * @param {PublishedKey[]} keys
 * @returns {Promise<{amount: string, currency: string}|null>}
 */
async function signedPrice(signature, keys) {
  try {
    return (await open(signature, keys, TYPE, STRINGS)).claims.price ?? null;
  } catch (error) {
    if (error instanceof BadSignature || error instanceof Unsupported) return null;
    throw error;
  }
}

/**
 * The id of the key that a signature refers to, unverified; "" if it has none.
 * @param {string} signature
 */
export function kidOf(signature) {
  try {
    return headerOf(signature, null).kid;
  } catch (error) {
    if (error instanceof BadSignature) return "";
    throw error;
  }
}

/**
 * @param {unknown} signature
 * @param {PublishedKey[]} keys
 * @param {string} typ
 * @param {string[]} strings claims that must be strings
 * @returns {Promise<{claims: Record<string, any>, key: PublishedKey}>}
 */
async function open(signature, keys, typ, strings) {
  const { alg, kid } = headerOf(signature, typ);
  const [head, body, tail] = String(signature).split(".");
  const bytes = bytesOf(tail);
  const claims = claimsOf(bytesOf(body), strings);
  const key = keys.find((entry) => entry.kid === kid);
  if (!key) throw new UnknownKey();
  if (key.alg !== alg || (key.use ?? "sig") !== "sig" || key.d !== undefined)
    throw new BadSignature();
  const signed = new TextEncoder().encode(`${head}.${body}`);
  if (!(await crypto.subtle.verify(ALGORITHMS[alg].sign, await imported(key, alg), bytes, signed)))
    throw new BadSignature();
  return { claims, key };
}

/** @param {PublishedKey} key @param {string} alg */
async function imported(key, alg) {
  // WebCrypto accepts only one name for the curve, and rejects contradictory members.
  const { kty, n, e, crv, x, y } = key;
  try {
    const cryptoKey = await crypto.subtle.importKey(
      "jwk",
      /** @type {JsonWebKey} */ (defined({ kty, n, e, crv, x, y })),
      ALGORITHMS[alg].key,
      false,
      ["verify"],
    );
    if (
      alg === "RS256" &&
      /** @type {RsaKeyAlgorithm} */ (cryptoKey.algorithm).modulusLength < RSA_BITS
    )
      throw new BadSignature();
    return cryptoKey;
  } catch (error) {
    if (error instanceof DOMException && error.name === "NotSupportedError")
      throw new Unsupported();
    throw new BadSignature();
  }
}

/** @param {Record<string, unknown>} members */
const defined = (members) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));

/**
 * @param {unknown} signature
 * @param {string|null} wanted its `typ`; null is any
 * @returns {{alg: string, kid: string}}
 */
function headerOf(signature, wanted) {
  if (typeof signature !== "string" || signature.length > MAX_CHARS || !SHAPE.test(signature))
    throw new BadSignature();
  const header = objectOf(bytesOf(signature.slice(0, signature.indexOf("."))));
  const { alg, kid, typ } = header;
  if (
    Object.keys(header).sort().join(",") !== MEMBERS ||
    (wanted !== null && typ !== wanted) ||
    typeof kid !== "string"
  )
    throw new BadSignature();
  if (typeof alg !== "string" || !Object.hasOwn(ALGORITHMS, alg)) throw new BadSignature();
  return { alg, kid };
}

/** @param {Uint8Array<ArrayBuffer>} bytes @param {string[]} strings */
function claimsOf(bytes, strings) {
  const claims = objectOf(bytes);
  if (strings.some((name) => typeof claims[name] !== "string") || !Number.isInteger(claims.iat))
    throw new BadSignature();
  return claims;
}

/**
 * Whether a key could sign for an owner at a time; keys in older exports have no owner.
 * @param {PublishedKey} key
 * @param {string} owner
 * @param {number} at
 */
function couldSign({ uamp_owner: named, iat, exp }, owner, at) {
  return (
    (named === undefined || named === owner) &&
    !(isTime(exp) && at > exp + LATE_SECONDS) &&
    !(isTime(iat) && at < iat - LATE_SECONDS)
  );
}

/** @param {unknown} value @returns {value is number} */
const isTime = (value) => typeof value === "number";

/** @param {Uint8Array<ArrayBuffer>} bytes @returns {Record<string, any>} */
function objectOf(bytes) {
  try {
    const value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (value && typeof value === "object" && !Array.isArray(value)) return value;
  } catch {
    // It is not a JSON object.
  }
  throw new BadSignature();
}

/** @param {string} part in its only canonical form @returns {Uint8Array<ArrayBuffer>} */
function bytesOf(part) {
  if (part.length % 4 === 1) throw new BadSignature();
  const text = atob(part.replaceAll("-", "+").replaceAll("_", "/"));
  if (btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "") !== part)
    throw new BadSignature();
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/**
 * @param {Claims} claims
 * @param {PublishedKey} key
 * @param {SignedMessage} message
 * @param {string} [chatId]
 * @returns {Promise<SignatureState>}
 */
async function stateOf(claims, key, message, chatId) {
  if (
    (message.role ?? "assistant") !== "assistant" ||
    (message.name ?? claims.agent) !== claims.agent
  )
    return "changed";
  if ((message.status || "completed") !== (claims.status ?? "completed")) return "changed";
  if (
    message.response_id !== claims.jti ||
    message.id !== claims.message_id ||
    (chatId !== undefined && chatId !== claims.chat_id)
  )
    return "changed";
  if (isErased(message)) return "erased";
  if (!(await isAsSigned(claims, message))) return "changed";
  return isTime(key.exp) ? "rotated" : "valid";
}

/** @param {Claims} claims @param {SignedMessage} message */
async function isAsSigned(claims, message) {
  const content = message.content ?? "";
  const items = message.content_items ?? [];
  const output = items.length ? items : content ? [{ type: "text", text: content }] : [];
  return (
    (await sha256(content)) === claims.response_hash &&
    (await hashOf(output)) === claims.output_hash
  );
}

/**
 * The SHA-256 of the canonical form of a value; null without one, which no signature covers.
 * @param {any} value
 */
async function hashOf(value) {
  try {
    return await sha256(canonical(value));
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

/** @param {SignedMessage} message */
const isErased = (message) =>
  Boolean(message.deleted_at) && !message.content && !message.content_items?.length;

/**
 * What the signatures of its answers cover of a question, as hashes.
 * @param {SignedMessage} question
 * @returns {Promise<HashedQuestion>}
 */
export async function hashedQuestion(question) {
  const { id, role = "", content, content_items: items, salt, edited_at: editedAt } = question;
  const request = { id, role, content: content ?? "", content_items: items ?? [] };
  // Servers of the release before salts sign without the salt, also while they are being updated.
  const forms = typeof salt === "string" && salt ? [{ ...request, salt }, request] : [request];
  const hashes = await Promise.all(forms.map(hashOf));
  return { id, hashes, isErased: isErased(question), isEdited: Boolean(editedAt) };
}

/** @param {Claims} claims @param {HashedQuestion} question @returns {RequestState} */
export function requestOf({ request_id: id, request_hash: hash }, question) {
  if (!id || question.id !== id) return "absent";
  if (question.isErased) return "erased";
  if (question.hashes.includes(hash)) return "same";
  return question.isEdited ? "edited" : "changed";
}
