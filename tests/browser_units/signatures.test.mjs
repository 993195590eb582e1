import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  canonical,
  checkAnswer,
  checkReceipt,
  kidOf,
  sha256,
} from "../../static/uamp/signatures.js";

// Answers that the server's own code signed (tests/uamp/signatures/test_vectors.py writes and
// checks them).
const { algorithms, keys, question, answer } = JSON.parse(
  readFileSync(new URL("../uamp/signatures/vectors.json", import.meta.url), "utf-8"),
);
const signatures = Object.entries(algorithms);
const signed = (more = {}) => ({ ...answer, signature: algorithms.EdDSA, ...more });
const stateOf = async (message, more) => (await checkAnswer(message, keys, more)).state;

test("the canonical form is that of RFC 8785", () => {
  const value = { é: 1, a: [true, null, 1.0, 1e21, "\u20ac$\n"], "\u{1f600}": 0, "\ufb33": -0 };
  assert.equal(
    canonical(value),
    '{"a":[true,null,1,1e+21,"€$\\n"],"é":1,"\u{1f600}":0,"\ufb33":0}',
  );
  assert.throws(() => canonical([Number.NaN]), TypeError);
  assert.throws(() => canonical(["\ud800"]), TypeError);
});

test("what Python signed is valid in the browser, with each algorithm", async () => {
  for (const [algorithm, signature] of signatures) {
    const verdict = await checkAnswer(signed({ signature }), keys, { chatId: "chat_1", question });
    assert.deepEqual(
      [verdict.state, verdict.request, verdict.claims.jti],
      ["valid", "same", "resp_1"],
      algorithm,
    );
    assert.equal(verdict.kid, kidOf(signature));
  }
});

test("every altered character of a signature shows", async () => {
  const { EdDSA: signature } = algorithms;
  for (let at = 0; at < signature.length; at += 1) {
    const other = signature[at] === "A" ? "B" : "A";
    const state = await stateOf(
      signed({ signature: signature.slice(0, at) + other + signature.slice(at + 1) }),
    );
    assert.ok(["changed", "unknown_key"].includes(state), `${at}: ${state}`);
  }
});

test("signatures of other shapes, algorithms and encodings are refused", async () => {
  const [head, body, tail] = algorithms.EdDSA.split(".");
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const { kid } = JSON.parse(Buffer.from(head, "base64url").toString());
  const headers = [
    { alg: "none" },
    { alg: "HS256" },
    { alg: "RS256" },
    { alg: "toString" },
    { typ: "JWT" },
    { kid: 7 },
    { crit: ["b64"] },
    { jwk: keys[0] },
  ];
  const wrong = [
    7,
    "",
    "..",
    `${head}.${body}`,
    `${head}.${body}.${tail}.${tail}`,
    `${head}.${body}.${tail}=`,
    `${head}.${body}.${tail.slice(1)}`,
    `${head}.${body}.${tail.slice(0, -1)}${String.fromCharCode(
      tail.charCodeAt(tail.length - 1) + 1,
    )}`,
    "A".repeat(9000),
    `${part([])}.${body}.${tail}`,
    ...headers.map(
      (header) => `${part({ alg: "EdDSA", kid, typ: "response+jwt", ...header })}.${body}.${tail}`,
    ),
  ];
  for (const signature of wrong)
    assert.equal(await stateOf(signed({ signature })), "changed", String(signature).slice(0, 80));
});

test("a key that does not fit is refused, and one that is not there is unknown", async () => {
  const key = keys.find(({ alg }) => alg === "EdDSA");
  for (const wrong of [
    { ...key, alg: "ES256" },
    { ...key, use: "enc" },
    { ...key, x: "AAAA" },
    { ...key, d: "AAAA" },
    { kid: key.kid, alg: "EdDSA" },
  ]) {
    assert.equal((await checkAnswer(signed(), [wrong])).state, "changed");
  }
  assert.equal((await checkAnswer(signed(), [])).state, "unknown_key");
});

test("a changed message shows, whatever was changed", async () => {
  const changes = [
    { content: `${answer.content}.` },
    { content: "" },
    { content: null },
    { content_items: [{ type: "text", text: "other" }] },
    { content: "\ud800" },
    { id: "msg_b" },
    { response_id: "resp_2" },
  ];
  for (const change of changes)
    assert.equal(await stateOf(signed(change)), "changed", JSON.stringify(change));
  assert.equal(await stateOf(signed(), { chatId: "chat_2" }), "changed");
});

test("a stored response that is not the signed one shows, and is not mistaken for the message", async () => {
  const { claims } = await checkAnswer(signed(), keys);
  for (const stored of [undefined, null, claims.output_hash]) {
    assert.equal((await checkAnswer(signed({ stored_output_hash: stored }), keys)).part, undefined);
    assert.equal(await stateOf(signed({ stored_output_hash: stored })), "valid");
  }
  for (const stored of ["", "0".repeat(64), 7]) {
    const verdict = await checkAnswer(signed({ stored_output_hash: stored }), keys);
    assert.deepEqual([verdict.state, verdict.part], ["changed", "response"], String(stored));
  }
  const message = await checkAnswer(signed({ content: "other", stored_output_hash: "0" }), keys);
  assert.deepEqual([message.state, message.part], ["changed", undefined]);
});

test("a stored usage that is not the signed one shows", async () => {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const { claims } = await checkAnswer(signed(), keys);
  const key = {
    ...publicKey.export({ format: "jwk" }),
    kid: "k",
    alg: "EdDSA",
    use: "sig",
    uamp_owner: `agent:${claims.sub}`,
    iat: 0,
  };
  const usage_hash = await sha256(canonical({ total_tokens: 7 }));
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "EdDSA", kid: "k", typ: "response+jwt" })}.${part({ ...claims, usage_hash })}`;
  const signature = `${text}.${sign(null, Buffer.from(text), privateKey).toString("base64url")}`;
  for (const stored of [undefined, null, usage_hash]) {
    const verdict = await checkAnswer({ ...answer, signature, stored_usage_hash: stored }, [key]);
    assert.deepEqual([verdict.state, verdict.part], ["valid", undefined]);
  }
  for (const stored of ["", "0".repeat(64), 7]) {
    const verdict = await checkAnswer({ ...answer, signature, stored_usage_hash: stored }, [key]);
    assert.deepEqual([verdict.state, verdict.part], ["changed", "usage"], String(stored));
    // Signatures of earlier servers do not cover it.
    assert.equal(await stateOf(signed({ stored_usage_hash: stored })), "valid");
  }
});

test("unsigned, erased and rotated answers are called so", async () => {
  assert.equal(await stateOf(answer), "unsigned");
  const erased = { content: "", content_items: [], deleted_at: 1 };
  assert.equal(await stateOf(signed(erased)), "erased");
  // The server withholds the signature of a deleted answer.
  assert.equal(await stateOf({ ...answer, ...erased }), "erased");
  assert.equal(await stateOf({ ...answer, ...erased, response_id: null }), "unsigned");
  assert.equal(
    await stateOf(signed({ content: "other", content_items: [], deleted_at: 1 })),
    "changed",
  );
  const retired = (exp) => keys.map((key) => ({ ...key, exp }));
  assert.equal((await checkAnswer(signed(), retired(1010))).state, "rotated");
  assert.equal((await checkAnswer(signed(), retired(500))).state, "unknown_key");
});

test("the question is compared too", async () => {
  const requestOf = async (other) =>
    (await checkAnswer(signed(), keys, { question: other && { ...question, ...other } })).request;
  assert.equal(await requestOf(null), "absent");
  assert.equal(await requestOf({ id: "msg_other" }), "absent");
  assert.equal(await requestOf({ content: "Wann?" }), "changed");
  // A text without a canonical form cannot have been signed.
  assert.equal(await requestOf({ content: "\ud800" }), "changed");
  assert.equal(await requestOf({ content: "Wann?", edited_at: 1 }), "edited");
  assert.equal(await requestOf({ content: "", deleted_at: 1 }), "erased");
  assert.equal(await requestOf({}), "same");
  assert.equal(await requestOf({ salt: "another" }), "changed");
  // As messages of earlier servers have it.
  for (const salt of [undefined, null, "", 7]) assert.equal(await requestOf({ salt }), "changed");
});

const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

/**
 * A key of an owner that signs claims, as the server does.
 * @param {string} kid
 * @param {string} owner
 */
async function signer(kid, owner) {
  const { privateKey, publicKey } = await crypto.subtle.generateKey({ name: "Ed25519" }, true, [
    "sign",
    "verify",
  ]);
  const { kty, crv, x } = await crypto.subtle.exportKey("jwk", publicKey);
  const sign = async (typ, claims) => {
    const first = `${part({ alg: "EdDSA", kid, typ })}.${part(claims)}`;
    return `${first}.${Buffer.from(
      await crypto.subtle.sign("Ed25519", privateKey, Buffer.from(first)),
    ).toString("base64url")}`;
  };
  return { jwk: { kty, crv, x, kid, alg: "EdDSA", use: "sig", uamp_owner: owner }, sign };
}

const claimsOf = async (more) => ({
  iss: "https://chat.example.org",
  sub: "agent_1",
  agent: "clock",
  chat_id: "chat_1",
  jti: "resp_1",
  iat: 1000,
  message_id: "msg_a",
  response_hash: await sha256("Half"),
  output_hash: await sha256(canonical([{ type: "text", text: "Half" }])),
  request_hash: "00",
  ...more,
});

test("a question with a salt may be signed without it", async () => {
  const agent = await signer("k1", "agent:agent_1");
  const asked = { id: "msg_q", role: "user", content: "When?", content_items: [] };
  const claims = { request_id: "msg_q", request_hash: await sha256(canonical(asked)) };
  const message = {
    id: "msg_a",
    role: "assistant",
    name: "clock",
    content: "Half",
    response_id: "resp_1",
    signature: await agent.sign("response+jwt", await claimsOf(claims)),
  };
  const requestOf = async (other) =>
    (await checkAnswer(message, [agent.jwk], { question: { ...asked, ...other } })).request;
  assert.equal(await requestOf({ salt: "qXq1Vd0vN5x2bV9Jm3Yw7A" }), "same");
  assert.equal(await requestOf({ salt: "qXq1Vd0vN5x2bV9Jm3Yw7A", content: "Why?" }), "changed");
});

test("an answer that was stopped is valid as such, and not as a whole one", async () => {
  const agent = await signer("k1", "agent:agent_1");
  const signature = await agent.sign("response+jwt", await claimsOf({ status: "cancelled" }));
  const message = {
    id: "msg_a",
    role: "assistant",
    name: "clock",
    content: "Half",
    response_id: "resp_1",
    signature,
  };
  for (const [status, found] of [
    ["cancelled", "valid"],
    ["completed", "changed"],
    [undefined, "changed"],
    ["failed", "changed"],
  ]) {
    assert.equal((await checkAnswer({ ...message, status }, [agent.jwk])).state, found, status);
  }
});

test("a receipt has the price that the agent signed with the answer", async () => {
  const agent = await signer("k1", "agent:agent_1");
  const server = await signer("k2", "receipts");
  const shown = {
    agent: "clock",
    amount: "0.25",
    refunded: "0",
    fee: "0.01",
    currency: "USD",
    paid_at: "2026-11-25T12:00:00Z",
    transfers: [],
    response_id: "resp_1",
  };
  for (const [price, found] of [
    [{ amount: "0.25", currency: "USD" }, "valid"],
    [{ amount: "0.24", currency: "USD" }, "changed"],
    [{ amount: "0.25", currency: "EUR" }, "changed"],
  ]) {
    const signature = await agent.sign("response+jwt", await claimsOf({ price }));
    const named = {
      iss: "https://chat.example.org",
      sub: "agent_1",
      chat_id: "chat_1",
      message_id: "msg_a",
      iat: 1000,
      answer_hash: await sha256(signature),
    };
    const receipt = {
      ...shown,
      document: await server.sign("receipt+jwt", { ...shown, ...named }),
    };
    const message = { id: "msg_a", response_id: "resp_1", signature };
    const keys = [agent.jwk, server.jwk];
    const verdict = await checkReceipt(receipt, keys, { chatId: "chat_1", message });
    assert.equal(verdict.state, found);
    assert.deepEqual(verdict.price, found === "changed" ? price : undefined);
    // Without the agent's key the price is not known: that is said of the answer.
    assert.equal((await checkReceipt(receipt, [server.jwk], { message })).state, "valid");
  }
});

test("a digest is lower-case hex", async () => {
  assert.equal(
    await sha256(""),
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  );
});
