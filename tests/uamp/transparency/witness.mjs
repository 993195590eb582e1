// A witness of C2SP's tlog-witness in node, which shares no code with the server: it verifies the
// log's signature and the consistency proof, remembers one tree head, and cosigns.
// node witness.mjs <verifier key of the log> <name> <seed in hex>; prints its port.
import { createHash, createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { createServer } from "node:http";

const [logKey, name, seed] = process.argv.slice(2);
const sha256 = (...parts) =>
  createHash("sha256")
    .update(Buffer.concat(parts.map((part) => Buffer.from(part))))
    .digest();
const [origin, logId, encoded] = logKey.split("+", 2).concat(logKey.split("+").slice(2).join("+"));
const raw = Buffer.from(encoded, "base64").subarray(1);
const logPublic = createPublicKey({
  key: { kty: "OKP", crv: "Ed25519", x: raw.toString("base64url") },
  format: "jwk",
});
const pkcs8 = Buffer.concat([
  Buffer.from("302e020100300506032b657004220420", "hex"),
  Buffer.from(seed, "hex"),
]);
const own = createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" });
const ownPublic = Buffer.from(createPublicKey(own).export({ format: "jwk" }).x, "base64url");
const ownId = sha256(`${name}\n`, [4], ownPublic).subarray(0, 4);
let last = { size: 0, root: "" };

// RFC 9162 §2.1.4.2, step by step.
function continues(first, firstRoot, second, secondRoot, path) {
  if (first === second) return path.length === 0 && firstRoot === secondRoot;
  const hashes = Number.isInteger(Math.log2(first))
    ? [Buffer.from(firstRoot, "base64"), ...path]
    : [...path];
  let [fn, sn] = [first - 1, second - 1];
  while (fn % 2 === 1) [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
  let fr = hashes.shift();
  if (!fr) return false;
  let sr = fr;
  for (const hash of hashes) {
    if (sn === 0) return false;
    if (fn % 2 === 1 || fn === sn) {
      [fr, sr] = [sha256([1], hash, fr), sha256([1], hash, sr)];
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
    } else {
      sr = sha256([1], sr, hash);
    }
    [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
  }
  return sn === 0 && fr.toString("base64") === firstRoot && sr.toString("base64") === secondRoot;
}

function isSigned(text, lines) {
  return lines.some((line) => {
    const [, signer, signature] = line.split(" ");
    const bytes = Buffer.from(signature, "base64");
    return (
      signer === origin &&
      bytes.subarray(0, 4).toString("hex") === logId &&
      verify(null, Buffer.from(text), logPublic, bytes.subarray(4))
    );
  });
}

function answerTo(body) {
  const at = body.indexOf("\n\n");
  const [old, ...proof] = body.slice(0, at).split("\n");
  const [text, lines] = body.slice(at + 2).split("\n\n");
  const [noted, size, root] = text.split("\n");
  const before = Number(/^old (0|[1-9][0-9]*)$/.exec(old)[1]);
  if (noted !== origin) return [404, ""];
  if (!isSigned(`${text}\n`, lines.trimEnd().split("\n"))) return [403, ""];
  if (before > Number(size)) return [400, ""];
  const isOther = before === Number(size) && last.size === before && last.root !== root;
  if (before !== last.size || isOther) return [409, `${last.size}\n`];
  const path = proof.map((hash) => Buffer.from(hash, "base64"));
  const isProved =
    before === 0 ? path.length === 0 : continues(before, last.root, Number(size), root, path);
  if (!isProved) return [422, ""];
  last = { size: Number(size), root };
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 1000)));
  const signature = sign(
    null,
    Buffer.from(`cosignature/v1\ntime ${time.readBigUInt64BE()}\n${text}\n`),
    own,
  );
  return [200, `— ${name} ${Buffer.concat([ownId, time, signature]).toString("base64")}\n`];
}

const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  let [status, answer] = [404, ""];
  try {
    if (request.method === "POST" && request.url === "/add-checkpoint")
      [status, answer] = answerTo(body);
  } catch {
    status = 400;
  }
  response.writeHead(status, {
    "content-type": status === 409 ? "text/x.tlog.size" : "text/plain; charset=utf-8",
  });
  response.end(answer);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
