import assert from "node:assert/strict";
import { test } from "node:test";
import { SignatureKeys } from "../../static/chat/signature-keys.js";

const KEYS = [
  { kid: "a", uamp_owner: "agent:1" },
  { kid: "l", uamp_owner: "log" },
  { kid: "t", uamp_owner: "tree" },
];

/** Keys, and the requests for them. */
function watched() {
  const requests = [];
  const keys = new SignatureKeys(async (path, options = {}) => {
    requests.push([path, options.cache]);
    return { keys: KEYS };
  });
  return { keys, requests };
}

test("the keys of logs and of their tree are read from the server each time", async () => {
  const { keys, requests } = watched();
  assert.deepEqual(await keys.ofLogs(), [KEYS[1]]);
  assert.deepEqual(await keys.ofLogs(), [KEYS[1]]);
  assert.deepEqual(await keys.ofTree(), [KEYS[2]]);
  const request = ["/.well-known/jwks.json", "no-cache"];
  assert.deepEqual(requests, [request, request, request]);
});

test("keys of the same task are requested together, and then known", async () => {
  const { keys, requests } = watched();
  assert.deepEqual(await Promise.all([keys.of("a"), keys.of("b")]), [[KEYS[0]], []]);
  assert.deepEqual(await keys.of("a"), [KEYS[0]]);
  assert.deepEqual(requests, [["/.well-known/jwks.json?kid=a&kid=b", undefined]]);
});
