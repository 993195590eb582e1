// Envelopes by gRPC for Node: `grpc_client.mjs SIGNATURES PLACE ORIGIN [PROTO]`, with {jwk, from, to,
// content} on standard input. SIGNATURES is a module. Without PROTO the service is read by reflection.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import grpc from "@grpc/grpc-js";
import { fromJSON, loadFileDescriptorSetFromBuffer, loadSync } from "@grpc/proto-loader";

const [module, place, origin, proto] = process.argv.slice(2);
const { isSigned, signature } = await import(pathToFileURL(module));
const { jwk, from, to, content } = JSON.parse(readFileSync(0, "utf-8"));
const options = { keepCase: true };
const WINDOW = 2;

// What a client needs of grpc/reflection/v1/reflection.proto. A FileDescriptorResponse is, on the
// wire, the FileDescriptorSet that the loader reads.
const REFLECTION = {
  ServerReflection: {
    methods: {
      ServerReflectionInfo: {
        requestType: "Request",
        requestStream: true,
        responseType: "Response",
        responseStream: true,
      },
    },
  },
  Request: { fields: { file_containing_symbol: { type: "string", id: 4 } } },
  Response: { fields: { file_descriptor_response: { type: "bytes", id: 4 } } },
};

function serviceOf(definition, name) {
  return name
    .split(".")
    .reduce((scope, part) => scope[part], grpc.loadPackageDefinition(definition));
}

function clientOf(definition, name) {
  return new (serviceOf(definition, name))(place, grpc.credentials.createInsecure());
}

async function reflected(symbol) {
  const path = ["grpc", "reflection", "v1"];
  const root = path.reduceRight((nested, name) => ({ [name]: { nested } }), REFLECTION);
  const client = clientOf(
    fromJSON({ nested: root }, options),
    [...path, "ServerReflection"].join("."),
  );
  const call = client.ServerReflectionInfo();
  call.write({ file_containing_symbol: symbol });
  const [response] = await once(call, "data");
  call.end();
  await once(call, "end");
  client.close();
  return loadFileDescriptorSetFromBuffer(response.file_descriptor_response, options);
}

function envelope(members) {
  const unsigned = {
    id: `urn:uuid:${randomUUID()}`,
    ts: new Date().toISOString(),
    from,
    to: [to],
    ...members,
  };
  return { ...unsigned, sig: signature(unsigned, jwk) };
}

const record = (value) => ({ json: Buffer.from(JSON.stringify(value)) });

function send(client, value) {
  return new Promise((resolve) => {
    const request = { envelope: Buffer.from(JSON.stringify(value)) };
    client.Send(request, (error, receipt) => resolve({ error, receipt }));
  });
}

/** Ask; once the window is full, look for further deltas, then acknowledge each. */
async function answer(client, ask) {
  const call = client.Stream();
  call.write(record(ask));
  const deltas = [];
  let full;
  for await (const { json } of call) {
    const delta = JSON.parse(json);
    deltas.push(delta);
    if (deltas.length < WINDOW) continue;
    if (full === undefined) {
      const { receipt } = await send(client, ask);
      const { repeated_envelope: repeated, delta_window: window } = receipt;
      full = { repeated, window, waiting: call.readableLength };
    }
    const { stream_id, delta_seq } = delta;
    const ts = new Date().toISOString();
    call.write(
      record({ delta_seq: 0, stream_id, ts, type: "progress", payload: { ack: delta_seq } }),
    );
    if (delta.type === "done") call.end();
  }
  return { deltas, full };
}

function textOf(deltas) {
  let text = "";
  for (const { type, payload } of deltas) {
    if (type === "patch") text = payload.text;
    if (type === "chunk") text = [...text].slice(0, payload.offset).join("") + payload.text;
  }
  return text;
}

const definition = proto ? loadSync(proto, options) : await reflected("uamp.v1.Agent");
const client = clientOf(definition, "uamp.v1.Agent");
const body = { type: "text/plain", content };
const ask = envelope({ intent: "ask", body, stream_id: "str-node", delta_window: WINDOW });
const { deltas, full } = await answer(client, ask);
const signed = deltas.at(-1).payload.envelope;
const path = to.split(":").slice(3).join("/");
const document = await (await fetch(`${origin}/${path}/did.json`)).json();
const refused = await send(client, { ...ask, intent: "cancel" });
const [refusal] = refused.error.metadata.get("uamp-error-bin");
client.close();
console.log(
  JSON.stringify({
    methods: Object.values(serviceOf(definition, "uamp.v1.Agent").service).map((m) => m.path),
    numbers: deltas.map(({ delta_seq }) => delta_seq),
    end: deltas.at(-1).type,
    text: textOf(deltas),
    signed: { text: signed.body.content, reply_to: signed.reply_to === ask.id },
    verified: [isSigned(signed, document), isSigned({ ...signed, intent: "notify" }, document)],
    full,
    refused: [grpc.status[refused.error.code], JSON.parse(refusal).code],
  }),
);
