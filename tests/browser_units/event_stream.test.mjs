import assert from "node:assert/strict";
import { createServer } from "node:http";
import { afterEach, test } from "node:test";
import { EventStreamSocket, eventParser } from "../../static/uamp/event-stream.js";
import { Rest } from "../../static/uamp/program.js";

const realFetch = globalThis.fetch;

const sockets = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.close();
});

/** A server that answers each event with what `answer` says, and its streams. */
function server(answer) {
  const calls = [];
  const streams = new Map();
  globalThis.fetch = async (path, { body, headers, signal }) => {
    calls.push({ path, headers, frame: body && JSON.parse(body) });
    if (path.startsWith("/events/stream?")) {
      const stream = new TransformStream();
      const writer = stream.writable.getWriter();
      // As a browser does; else the timer of a silent stream would keep node for a minute.
      signal?.addEventListener("abort", () =>
        writer.abort(new DOMException("left", "AbortError")).catch(() => {}),
      );
      const id = new URLSearchParams(path.split("?")[1]).get("session_id");
      streams.set(id, {
        say: (frame) =>
          writer.write(new TextEncoder().encode(`id: e:1\ndata: ${JSON.stringify(frame)}\n\n`)),
        end: () => writer.close().catch(() => {}),
        signal,
      });
      return new Response(stream.readable, { status: 200 });
    }
    const { status = 202, ...said } = answer(JSON.parse(body));
    return new Response(JSON.stringify(said), { status });
  };
  return { calls, streams };
}

async function opened(answer, ticket = async () => "t1") {
  const known = server(answer);
  const socket = new EventStreamSocket(ticket);
  sockets.push(socket);
  const frames = [];
  const closes = [];
  const suspended = [];
  socket.onmessage = ({ data }) => frames.push(JSON.parse(data));
  socket.onclose = ({ code }) => closes.push(code);
  socket.onsuspend = (id) => suspended.push(id);
  await new Promise((resolve) => {
    socket.onopen = resolve;
    setTimeout(resolve, 20);
  });
  return {
    ...known,
    socket,
    frames,
    closes,
    suspended,
    settled: () => new Promise((resolve) => setTimeout(resolve, 20)),
  };
}

/** Wait for promises while `setTimeout` stands still. */
async function flushed() {
  for (let round = 0; round < 10; round += 1) await new Promise(setImmediate);
}

const session = ({ chat, type, event_id: id }) =>
  type === "session.create"
    ? { session_id: `s-${chat}`, events: [{ type: "session.created", event_id: `r-${id}` }] }
    : { session_id: "", events: [] };

test("the data of events is taken from pieces, without comments and ids", () => {
  const found = [];
  const parse = eventParser((data) => found.push(data));
  for (const piece of [": open\n\nid: e:1\nda", 'ta: {"a":1}\n', '\ndata: {"b":2}\n\nda'])
    parse(piece);
  assert.deepEqual(found, ['{"a":1}', '{"b":2}']);
});

test("a session is created, then its stream continues where the client is", async () => {
  const { socket, calls, frames, streams, settled } = await opened(session);
  socket.send(
    JSON.stringify({
      type: "session.create",
      event_id: "1",
      chat: "c1",
      resume: { epoch: "e", after: 7 },
    }),
  );
  socket.send(
    JSON.stringify({ type: "input.text", event_id: "2", session_id: "s-c1", text: "hi" }),
  );
  await settled();
  assert.deepEqual(
    calls.map(({ path, frame }) => frame?.type ?? path),
    ["session.create", "/events/stream?session_id=s-c1&ticket=t1", "input.text"],
  );
  assert.equal(calls[1].headers["Last-Event-ID"], "e:7");
  assert.equal(calls[2].headers["X-Session-ID"], "s-c1");
  // The stream has direct answers too: they are received once.
  await streams.get("s-c1").say({ type: "session.created", event_id: "r-1" });
  await streams.get("s-c1").say({ type: "response.delta", event_id: "9" });
  await settled();
  assert.deepEqual(
    frames.map(({ type }) => type),
    ["session.created", "response.delta"],
  );
});

test("no more than two sessions have a stream", async () => {
  const { socket, streams, suspended, settled } = await opened(session);
  for (const chat of ["a", "b", "c"])
    socket.send(JSON.stringify({ type: "session.create", event_id: chat, chat }));
  await settled();
  assert.deepEqual(suspended, ["s-a"]);
  assert.deepEqual(
    ["s-a", "s-b", "s-c"].map((id) => streams.get(id).signal.aborted),
    [true, false, false],
  );
});

test("a stream that ends closes the connection, one that is suspended does not", async () => {
  const { socket, streams, closes, settled } = await opened(session);
  for (const chat of ["a", "b", "c"])
    socket.send(JSON.stringify({ type: "session.create", event_id: chat, chat }));
  await settled();
  await streams.get("s-a").end();
  await settled();
  assert.deepEqual(closes, []);
  await streams.get("s-b").end();
  await settled();
  assert.deepEqual(closes, [1006]);
});

for (const { hanging, isHanging, ticket } of [
  { hanging: "the stream", isHanging: (path) => path.startsWith("/events/stream?") },
  { hanging: "the ticket", isHanging: () => false, ticket: () => new Promise(() => {}) },
]) {
  test(`a connection is lost when the server never answers: ${hanging}`, async (t) => {
    let isOpen = false;
    const { socket, closes, settled } = await opened(session, () =>
      isOpen && ticket ? ticket() : Promise.resolve("t1"),
    );
    isOpen = true;
    const answered = globalThis.fetch;
    globalThis.fetch = (path, options) =>
      isHanging(path)
        ? new Promise((_, reject) => {
            options.signal.addEventListener("abort", () => reject(options.signal.reason));
          })
        : answered(path, options);
    t.mock.timers.enable({ apis: ["setTimeout"] });
    socket.send(JSON.stringify({ type: "session.create", event_id: "1", chat: "c1" }));
    await flushed();
    t.mock.timers.tick(59_999);
    assert.deepEqual(closes, []);
    t.mock.timers.tick(1);
    t.mock.timers.reset();
    await settled();
    assert.deepEqual(closes, [1006]);
  });
}

test("a connection is lost when the server does not answer an event in time", async (t) => {
  const { socket, closes, settled } = await opened(session);
  const hangs = () => new Promise(() => {});
  globalThis.fetch = hangs;
  t.mock.timers.enable({ apis: ["setTimeout"] });
  socket.send(JSON.stringify({ type: "ping", event_id: "1" }));
  await flushed();
  t.mock.timers.tick(119_999);
  assert.deepEqual(closes, []);
  t.mock.timers.tick(1);
  t.mock.timers.reset();
  await settled();
  assert.deepEqual(closes, [1006]);

  const next = await opened(session);
  globalThis.fetch = async () => ({ ok: true, status: 202, json: hangs });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  next.socket.send(JSON.stringify({ type: "ping", event_id: "1" }));
  await flushed();
  t.mock.timers.tick(120_000);
  t.mock.timers.reset();
  assert.deepEqual(next.closes, [1006]);
});

test("a redirect takes no frame, ticket or request to another server", async () => {
  globalThis.fetch = realFetch;
  const received = [];
  const listening = async (answer) => {
    const made = createServer(answer);
    await new Promise((resolve) => made.listen(0, "127.0.0.1", resolve));
    return { made, origin: `http://127.0.0.1:${made.address().port}` };
  };
  const other = await listening((request, response) => {
    received.push(request.url);
    response.end("{}");
  });
  let redirects = () => true;
  const first = await listening((request, response) => {
    if (redirects(request))
      response.writeHead(307, { Location: `${other.origin}${request.url}` }).end();
    else
      response
        .writeHead(202, { "Content-Type": "application/json" })
        .end('{"session_id": "s", "events": []}');
  });
  const closed = () =>
    new Promise((resolve) => {
      const socket = new EventStreamSocket(async () => "t", { origin: first.origin });
      sockets.push(socket);
      socket.onclose = ({ code }) => resolve(code);
      socket.onopen = () =>
        socket.send('{"type": "session.create", "event_id": "1", "token": "secret"}');
    });
  try {
    assert.equal(await closed(), 1006);
    redirects = ({ url }) => url.startsWith("/events/stream");
    assert.equal(await closed(), 1006);
    redirects = () => true;
    const rest = new Rest(first.origin, "uak_1");
    await assert.rejects(rest.request("/api/v1/tickets", { method: "POST", body: {} }), TypeError);
    assert.deepEqual(received, []);
  } finally {
    for (const { made } of [first, other]) {
      made.closeAllConnections();
      made.close();
    }
  }
});

test("a connection is lost when the server issues no ticket in time", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const socket = new EventStreamSocket(() => new Promise(() => {}));
  const closes = [];
  socket.onclose = ({ code }) => closes.push(code);
  await flushed();
  t.mock.timers.tick(120_000);
  t.mock.timers.reset();
  assert.deepEqual(closes, [1006]);
});

test("a stream is lost when it is silent, not while the server sends something", async (t) => {
  const { socket, streams, closes, settled } = await opened(session);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  socket.send(JSON.stringify({ type: "session.create", event_id: "1", chat: "c1" }));
  await flushed();
  t.mock.timers.tick(59_999);
  await streams.get("s-c1").say({ type: "response.delta", event_id: "9" });
  await flushed();
  t.mock.timers.tick(59_999);
  await flushed();
  assert.deepEqual(closes, []);
  t.mock.timers.tick(1);
  t.mock.timers.reset();
  await settled();
  assert.deepEqual(closes, [1006]);
});

test("a refused event is an event; one who is signed out has another code than a server that is away", async () => {
  const refused = {
    status: 429,
    event: { type: "session.error", error: { code: "rate_limited" } },
  };
  const { socket, frames, closes, settled } = await opened(() => refused);
  socket.send(JSON.stringify({ type: "ping" }));
  await settled();
  assert.deepEqual(
    frames.map(({ error }) => error.code),
    ["rate_limited"],
  );
  assert.deepEqual(closes, []);
  const reject = (status) => () => Promise.reject(Object.assign(new Error("no"), { status }));
  assert.deepEqual((await opened(session, reject(403))).closes, [4401]);
  assert.deepEqual((await opened(session, reject(0))).closes, [1006]);
});

test("a client goes on over HTTP where no WebSocket ever opened, and not where one did", async () => {
  const { UampClient } = await import("../../static/uamp/client.js");
  const made = [];
  globalThis.location = { protocol: "http:", host: "h" };
  globalThis.WebSocket = class {
    constructor() {
      made.push(this);
    }
    close() {}
  };
  server(session);
  const client = new UampClient({
    storage: { getItem: () => null, setItem() {}, removeItem() {} },
    ticket: async () => "t",
  });
  const attempts = [];
  client.addEventListener(
    "state",
    ({ detail: { phase, transport } }) => phase === "connecting" && attempts.push(transport),
  );
  const fail = () => {
    made.at(-1).onclose({ code: 1006 });
    client.retryNow();
  };
  client.connect();
  fail();
  fail();
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual([attempts, client.state.phase], [["websocket", "websocket", "sse"], "open"]);
  client.close();
  attempts.length = 0;
  client.connect();
  made.at(-1).onopen();
  for (let count = 0; count < 4; count += 1) fail();
  assert.deepEqual(attempts, Array(5).fill("websocket"));
  client.close();
});
