/** Signatures of envelopes by docs/envelopes.md, with the crypto of node alone. */

import { createHash, createPrivateKey, createPublicKey, sign, verify } from "node:crypto";

/** RFC 8785. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`)
    .join(",")}}`;
}

const encoded = (text) => Buffer.from(text).toString("base64url");

function payloadOf(envelope) {
  const sha256 = createHash("sha256").update(canonical(envelope)).digest("hex");
  return encoded(JSON.stringify({ sha256 }));
}

/** The `sig` of an unsigned envelope. */
export function signature(envelope, jwk, { attached = false } = {}) {
  const key = createPrivateKey({ key: jwk, format: "jwk" });
  const alg = jwk.kty === "OKP" ? "EdDSA" : "ES256";
  const header = encoded(JSON.stringify({ alg, kid: jwk.kid, typ: "uamp+jws" }));
  const payload = payloadOf(envelope);
  const text = Buffer.from(`${header}.${payload}`);
  const bytes =
    alg === "EdDSA"
      ? sign(null, text, key)
      : sign("sha256", text, { key, dsaEncoding: "ieee-p1363" });
  return `${header}.${attached ? payload : ""}.${bytes.toString("base64url")}`;
}

/** Whether an Ed25519 key of a DID document has signed an envelope. */
export function isSigned({ sig, ...envelope }, document) {
  const [header, , bytes] = sig.split(".");
  const { alg, kid } = JSON.parse(Buffer.from(header, "base64url").toString());
  const method = document.verificationMethod.find(({ id }) => id === kid);
  if (alg !== "EdDSA" || method === undefined || envelope.from !== document.id) return false;
  const key = createPublicKey({ key: method.publicKeyJwk, format: "jwk" });
  const text = Buffer.from(`${header}.${payloadOf(envelope)}`);
  return verify(null, text, key, Buffer.from(bytes, "base64url"));
}
