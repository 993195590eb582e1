import assert from "node:assert/strict";
import { test } from "node:test";
import { Api, ApiError } from "../../static/chat/api.js";
import { ChatStore } from "../../static/chat/chat-store.js";
import { people } from "../../static/chat/person/looks.js";

const ROW = {
  id: "chat_1",
  title: "Trip",
  rights: [],
  epoch: "e",
  last_seq: 10,
  latest_at: "2026-11-22T12:00:00Z",
  unread: 0,
  unread_replies: 0,
  preview: null,
  participants: [],
};

/** A client with a connection and no unsent turns. */
const idleClient = () =>
  Object.assign(new EventTarget(), {
    watch() {},
    state: { phase: "open" },
    outbox: { turns: [] },
  });

/** A store of one chat, what it read by REST, and the messages that arrived. */
async function opened(row = {}) {
  const client = idleClient();
  const reads = [];
  const api = {
    get: async (path) => {
      reads.push(path);
      return path.startsWith("/chats?") ? { data: [{ ...ROW, ...row }] } : { ...ROW, ...row };
    },
  };
  const store = new ChatStore(api, client, { id: "1" });
  const arrived = [];
  store.addEventListener("arrived", ({ detail }) => arrived.push(detail.message.id));
  await store.refresh();
  reads.length = 0;
  const send = (detail) =>
    client.dispatchEvent(new CustomEvent("activity", { detail: { chat_id: "chat_1", ...detail } }));
  const reply = (seq, more = {}) =>
    send({
      kind: "message.created",
      at_seq: seq,
      message: {
        id: `m${seq}`,
        role: "user",
        content: "x",
        name: "bob",
        sender_id: "2",
        sender_kind: "user",
        created_at: 0,
        thread: "m1",
        is_followed: true,
        ...more,
      },
    });
  const settled = () => new Promise((resolve) => setTimeout(resolve, 350));
  return {
    store,
    reads,
    arrived,
    reply,
    send,
    settled,
    unread: () => store.get("chat_1").unread_replies,
  };
}

test("replies are counted and read as the live events say, without another read of the chat", async () => {
  const { reads, arrived, reply, send, settled, unread } = await opened();
  for (const seq of [11, 12, 12, 13]) reply(seq);
  reply(14, { is_followed: undefined });
  reply(15, { also_in_chat: true, is_followed: undefined });
  assert.equal(unread(), 3);
  assert.deepEqual(arrived, ["m11", "m12", "m13", "m15"]);
  send({ kind: "message.read", at_seq: 16, message_id: "m12", thread: "m1", replies: 2 });
  assert.equal(unread(), 1);
  await settled();
  assert.deepEqual(reads, []);
});

test("where only the server knows the count the chat is read again, once", async () => {
  const { reads, reply, send, settled, unread } = await opened({ unread_replies: 100 });
  reply(11);
  assert.equal(unread(), 100);
  send({ kind: "message.read", at_seq: 12, message_id: "m11", thread: "m1", replies: 100 });
  reply(13, { version_of: "m11" });
  reply(14, { sender_id: "1", is_followed: undefined });
  await settled();
  assert.deepEqual(reads, ["/chats/chat_1"]);
});

test("an answer that was made again counts once: the chat is read again", async () => {
  const { store, reads, reply, settled } = await opened();
  const answer = {
    thread: undefined,
    is_followed: undefined,
    sender_kind: "agent",
    mentions: ["1"],
  };
  reply(11, answer);
  reply(12, { ...answer, version_of: "m11" });
  const { unread, unread_mentions: mentions } = store.get("chat_1");
  assert.deepEqual([unread, mentions], [1, 1]);
  await settled();
  assert.deepEqual(reads, ["/chats/chat_1"]);
});

/** A store whose reads are answered by hand, in any order. */
async function answeredByHand() {
  const client = idleClient();
  const reads = [];
  const api = {
    get: (path) =>
      new Promise((resolve) =>
        reads.push({
          path,
          answer: (rows) => resolve(path.startsWith("/chats?") ? { data: rows } : rows[0]),
        }),
      ),
  };
  const store = new ChatStore(api, client, { id: "1" });
  const live = (seq) =>
    client.dispatchEvent(
      new CustomEvent("activity", {
        detail: {
          chat_id: "chat_1",
          kind: "message.created",
          at_seq: seq,
          message: {
            id: `m${seq}`,
            role: "user",
            content: "x",
            name: "bob",
            sender_id: "2",
            sender_kind: "user",
            created_at: 0,
          },
        },
      }),
    );
  const person = (detail) => client.dispatchEvent(new CustomEvent("person", { detail }));
  const presence = (userId, type) =>
    client.dispatchEvent(new CustomEvent("presence", { detail: { type, user_id: userId } }));
  const profile = (userId, username, name) =>
    client.dispatchEvent(
      new CustomEvent("profile", {
        detail: { type: "profile.changed", user_id: userId, username, display_name: name },
      }),
    );
  return {
    store,
    reads,
    live,
    person,
    presence,
    profile,
    turn: () => new Promise((resolve) => setTimeout(resolve, 0)),
    later: () => new Promise((resolve) => setTimeout(resolve, 350)),
  };
}

test("what comes while the list is read is not lost with an answer that was made before it", async () => {
  const { store, reads, live, later, turn } = await answeredByHand();
  const first = store.refresh();
  reads[0].answer([ROW]);
  await first;
  const second = store.refresh();
  live(11);
  assert.equal(store.get("chat_1").unread, 1);
  reads[1].answer([ROW]);
  await second;
  await later();
  assert.deepEqual(
    reads.slice(2).map(({ path }) => path),
    ["/chats/chat_1"],
  );
  reads[2].answer([{ ...ROW, last_seq: 11, unread: 1 }]);
  await turn();
  assert.equal(store.get("chat_1").unread, 1);
});

test("who comes or goes while the list is read is shown as the live event said", async () => {
  const { store, reads, presence } = await answeredByHand();
  const rows = (bob, carol) => [
    {
      ...ROW,
      participants: [
        { kind: "user", id: "2", name: "bob", online: bob },
        { kind: "user", id: "3", name: "carol", online: carol },
      ],
    },
  ];
  const online = () => store.get("chat_1").participants.map((one) => one.online);
  const first = store.refresh();
  presence("2", "presence.online");
  presence("3", "presence.offline");
  reads[0].answer(rows(false, true));
  await first;
  assert.deepEqual(online(), [true, false]);
  // A read that begins later knows better than an event before it.
  const second = store.refresh();
  reads[1].answer(rows(false, true));
  await second;
  assert.deepEqual(online(), [false, true]);
});

test("whose profile changes while the list is read is shown as the live event said", async () => {
  const { store, reads, profile } = await answeredByHand();
  const rows = (name) => [
    {
      ...ROW,
      participants: [
        { kind: "user", id: "2", name: "bob", display_name: name },
        { kind: "agent", id: "agent_1", name: "robin", display_name: "" },
      ],
    },
  ];
  const names = () => [
    ...store.get("chat_1").participants.map((one) => one.display_name),
    people.nameOf("bob"),
  ];
  const first = store.refresh();
  profile("2", "bob", "Bob Builder");
  reads[0].answer(rows(""));
  await first;
  assert.deepEqual(names(), ["Bob Builder", "", "Bob Builder"]);
  profile("2", "bob", "Robert");
  assert.deepEqual(names(), ["Robert", "", "Robert"]);
  // A read that begins later knows better than an event before it.
  const second = store.refresh();
  reads[1].answer(rows("Rob"));
  await second;
  assert.deepEqual(names(), ["Rob", "", "Rob"]);
});

test("a read that began later is not replaced by an earlier one that ends after it", async () => {
  const { store, reads, live, later, turn } = await answeredByHand();
  const list = store.refresh();
  live(11);
  await later();
  reads[1].answer([{ ...ROW, last_seq: 11, unread: 1 }]);
  await turn();
  reads[0].answer([]);
  await list;
  assert.equal(store.get("chat_1").unread, 1);
});

test("a chat that one left does not come back with a list that was read before", async () => {
  const { store, reads, person } = await answeredByHand();
  const list = store.refresh();
  person({ subject: "chat_removed", chat_id: "chat_1" });
  reads[0].answer([ROW]);
  await list;
  assert.equal(store.get("chat_1"), undefined);
});

test("only an answer of the server, or none, is a load error; a fault of the page is thrown", async () => {
  const client = idleClient();
  const errors = [];
  let error = new ApiError(503);
  const store = new ChatStore({ get: () => Promise.reject(error) }, client, { id: "1" });
  store.addEventListener("load-error", ({ detail }) => errors.push(detail));
  await store.refresh();
  assert.deepEqual(errors, [error]);
  error = new TypeError("undefined is not a function");
  await assert.rejects(store.refresh(), error);
  assert.equal(errors.length, 1);
});

test("a server whose answer breaks off was not reached", async (t) => {
  const cut = new ReadableStream({ start: (body) => body.error(new TypeError("network error")) });
  t.mock.method(globalThis, "fetch", async () => new Response(cut));
  await assert.rejects(new Api("csrftoken").get("/chats"), { name: "ApiError", status: 0 });
});
