/**
 * Signs envelopes by docs/envelopes.md with the crypto of node alone.
 *
 * It reads {"keys": [private JWK], "envelopes": [unsigned], "attached": bool} from standard input,
 * and prints an array of `sig`.
 */

import { createHash, createPrivateKey, sign } from "node:crypto";
import { readFileSync } from "node:fs";

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
const { keys, envelopes, attached } = JSON.parse(readFileSync(0, "utf-8"));
console.log(
  JSON.stringify(
    envelopes.map((envelope) => {
      const jwk = keys.find(({ kid }) => kid.startsWith(`${envelope.from}#`));
      const key = createPrivateKey({ key: jwk, format: "jwk" });
      const alg = jwk.kty === "OKP" ? "EdDSA" : "ES256";
      const header = encoded(JSON.stringify({ alg, kid: jwk.kid, typ: "uamp+jws" }));
      const sha256 = createHash("sha256").update(canonical(envelope)).digest("hex");
      const payload = encoded(JSON.stringify({ sha256 }));
      const text = Buffer.from(`${header}.${payload}`);
      const signature =
        alg === "EdDSA"
          ? sign(null, text, key)
          : sign("sha256", text, { key, dsaEncoding: "ieee-p1363" });
      return `${header}.${attached ? payload : ""}.${signature.toString("base64url")}`;
    }),
  ),
);
