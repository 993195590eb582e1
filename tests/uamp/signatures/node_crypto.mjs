/**
 * Verifies answers, receipts, agent cards, heads of logs and envelopes by docs/signatures.md,
 * docs/a2a.md, docs/log-chain.md and docs/envelopes.md, with the crypto of node alone: no code of this repository, and no library
 * of Python, takes part.
 *
 * It reads a JSON array of documents from standard input, and prints an array with true or false
 * for each.
 */

import { createHash, createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** RFC 8785. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`)
    .join(",")}}`;
}

/** Base64url in its one form. */
function decoded(text) {
  const bytes = Buffer.from(text, "base64url");
  if (bytes.toString("base64url") !== text) throw new Error("not base64url");
  return bytes;
}

const ALGORITHMS = {
  RS256: (key, text, signature) => verify("sha256", text, key, signature),
  ES256: (key, text, signature) =>
    verify("sha256", text, { key, dsaEncoding: "ieee-p1363" }, signature),
  EdDSA: (key, text, signature) => verify(null, text, key, signature),
};
const TYPES = { RS256: "rsa", ES256: "ec", EdDSA: "ed25519" };

/** The header and the payload of a compact JWS that the key of its `kid` has signed. */
function opened(jws, keys, { typ, payload, anyKey = false, more = [] }) {
  if (typeof jws !== "string") throw new Error("no JWS");
  const parts = jws.split(".");
  if (parts.length !== 3) throw new Error("no compact JWS");
  const header = JSON.parse(decoded(parts[0]).toString());
  if (!Object.hasOwn(ALGORITHMS, header.alg)) throw new Error("another algorithm");
  if (Object.keys(header).some((name) => !["alg", "kid", "typ", ...more].includes(name)))
    throw new Error("another header");
  if (!(anyKey && header.typ === undefined) && header.typ !== typ)
    throw new Error("another kind of token");
  const jwk = keys.find(
    ({ kid, alg }) =>
      (kid === header.kid || (anyKey && header.kid === undefined)) && alg === header.alg,
  );
  if (!jwk || (jwk.use ?? "sig") !== "sig" || "d" in jwk) throw new Error("no such key");
  const key = createPublicKey({ key: jwk, format: "jwk" });
  if (key.asymmetricKeyType !== TYPES[header.alg] || key.asymmetricKeyDetails.modulusLength < 2048)
    throw new Error("another key");
  const body = payload === undefined ? parts[1] : Buffer.from(payload).toString("base64url");
  if (payload !== undefined && parts[1] !== "" && parts[1] !== body)
    throw new Error("another payload");
  if (!ALGORITHMS[header.alg](key, Buffer.from(`${parts[0]}.${body}`), decoded(parts[2])))
    throw new Error("not signed");
  return { jwk, payload: decoded(body) };
}

const KINDS = {
  answer({ message, question, keys, chat_id: chatId }) {
    const { jwk, payload } = opened(message.signature, keys, { typ: "response+jwt" });
    const claims = JSON.parse(payload.toString());
    const items = message.content_items?.length
      ? message.content_items
      : message.content
        ? [{ type: "text", text: message.content }]
        : [];
    const { id, role, content, content_items: asked, salt } = question;
    const request = { id, role, content, content_items: asked ?? [], ...(salt && { salt }) };
    return (
      (jwk.uamp_owner ?? `agent:${claims.sub}`) === `agent:${claims.sub}` &&
      claims.jti === message.response_id &&
      claims.message_id === message.id &&
      claims.chat_id === chatId &&
      claims.response_hash === sha256(message.content) &&
      claims.output_hash === sha256(canonical(items)) &&
      claims.request_hash === sha256(canonical(request))
    );
  },
  receipt({ receipt, message, keys, chat_id: chatId }) {
    const { jwk, payload } = opened(receipt.document, keys, { typ: "receipt+jwt" });
    const claims = JSON.parse(payload.toString());
    return (
      jwk.uamp_owner === "receipts" &&
      claims.chat_id === chatId &&
      claims.message_id === message.id &&
      claims.answer_hash === sha256(message.signature) &&
      canonical(claims.transfers) === canonical(receipt.transfers) &&
      ["agent", "amount", "refunded", "fee", "currency", "paid_at"].every(
        (name) => claims[name] === receipt[name],
      )
    );
  },
  /** An agent card of A2A 1.0, without the members that ProtoJSON leaves out. */
  card({ card: { signatures, ...card }, keys }) {
    const { protected: head, signature } = signatures[0];
    const { jwk } = opened(`${head}..${signature}`, keys, {
      typ: "JOSE",
      payload: canonical(card),
      more: ["jku"],
    });
    return jwk.uamp_owner === "cards";
  },
  /** A signed note of C2SP. */
  head({ note, keys }) {
    const [text, signatures] = note.split("\n\n");
    const [, name, encoded] = /^\u2014 (\S+) (\S+)\n$/.exec(signatures);
    const raw = Buffer.from(encoded, "base64");
    return (
      name === text.split("\n")[0] &&
      keys.some((jwk) => {
        if (jwk.kty !== "OKP") return false;
        const id = createHash("sha256")
          .update(`${name}\n\x01`)
          .update(decoded(jwk.x))
          .digest()
          .subarray(0, 4);
        return (
          id.equals(raw.subarray(0, 4)) &&
          verify(
            null,
            Buffer.from(`${text}\n`),
            createPublicKey({ key: jwk, format: "jwk" }),
            raw.subarray(4),
          )
        );
      })
    );
  },
  envelope({ envelope: { sig, ...content }, keys }) {
    const payload = JSON.stringify({ sha256: sha256(canonical(content)) });
    const known = keys.filter(({ kid }) => kid.startsWith(`${content.from}#`));
    opened(sig, known, { typ: "uamp+jws", payload, anyKey: true });
    return true;
  },
};

const documents = JSON.parse(readFileSync(0, "utf-8"));
console.log(
  JSON.stringify(
    documents.map((one) => {
      try {
        return KINDS[one.kind](one);
      } catch {
        return false;
      }
    }),
  ),
);
