/**
 * Signs envelopes: it reads {"keys": [private JWK], "envelopes": [unsigned], "attached": bool} from
 * standard input, and prints an array of `sig`.
 */

import { readFileSync } from "node:fs";
import { signature } from "./signatures.mjs";

const { keys, envelopes, attached } = JSON.parse(readFileSync(0, "utf-8"));
console.log(
  JSON.stringify(
    envelopes.map((envelope) => {
      const jwk = keys.find(({ kid }) => kid.startsWith(`${envelope.from}#`));
      return signature(envelope, jwk, { attached });
    }),
  ),
);
