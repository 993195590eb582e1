import assert from "node:assert/strict";
import { test } from "node:test";
import { OfflineChats, forgetOthers } from "../../static/chat/offline/offline-chats.js";

const ORIGIN = "https://chat.example";

/**
 * What the module uses of a browser's caches: a deleted one can be written to, and nothing reads
 * it.
 */
class Caches {
  constructor() {
    this._caches = new Map();
  }

  async open(name) {
    if (!this._caches.has(name)) {
      const entries = new Map();
      this._caches.set(name, {
        match: async (path) => entries.get(ORIGIN + path)?.clone(),
        put: async (path, response) => {
          entries.delete(ORIGIN + path);
          entries.set(ORIGIN + path, response);
        },
        delete: async (one) => entries.delete(typeof one === "string" ? ORIGIN + one : one.url),
        keys: async () => [...entries.keys()].map((url) => ({ url })),
      });
    }
    return this._caches.get(name);
  }

  keys = async () => [...this._caches.keys()];
  delete = async (name) => this._caches.delete(name);
}

class Storage {
  constructor(items) {
    this._items = new Map(Object.entries(items));
  }

  get length() {
    return this._items.size;
  }

  key = (index) => [...this._items.keys()][index] ?? null;
  removeItem = (key) => this._items.delete(key);
  keys = () => [...this._items.keys()];
}

const chat = (id) => ({ id, title: id, participants: [] });
const entries = (count, text = "") =>
  Array.from({ length: count }, (_, index) => ({ id: `m${index}`, seq: index + 1, content: text }));

test("a chat is kept with its newest messages, as many as there is room for", async () => {
  const kept = new OfflineChats("1", new Caches());
  assert.equal(await kept.chat("a"), undefined);
  await kept.keepChat({ chat: chat("a"), entries: entries(100), hasOlder: false });
  assert.deepEqual(
    [(await kept.chat("a")).entries.length, (await kept.chat("a")).hasOlder],
    [100, false],
  );
  await kept.keepChat({ chat: chat("a"), entries: entries(101), hasOlder: false });
  const read = await kept.chat("a");
  assert.deepEqual([read.entries.length, read.entries.at(-1).seq, read.hasOlder], [100, 101, true]);
  await kept.keepChat({
    chat: chat("b"),
    entries: entries(100, "x".repeat(20_000)),
    hasOlder: false,
  });
  const large = await kept.chat("b");
  assert.ok(JSON.stringify(large).length <= 500_000);
  assert.deepEqual([large.entries.at(-1).seq, large.hasOlder], [100, true]);
});

test("thirty chats are kept: those that were written last", async () => {
  const kept = new OfflineChats("1", new Caches());
  for (let number = 0; number < 30; number += 1)
    await kept.keepChat({ chat: chat(`c${number}`), entries: [], hasOlder: false });
  await kept.keepChat({ chat: chat("c0"), entries: [], hasOlder: false });
  await kept.keepChat({ chat: chat("c30"), entries: [], hasOlder: false });
  assert.deepEqual(
    [(await kept.chat("c0"))?.chat.id, await kept.chat("c1"), (await kept.chat("c30"))?.chat.id],
    ["c0", undefined, "c30"],
  );
});

test("a chat that the person is no longer in is not kept", async () => {
  const kept = new OfflineChats("1", new Caches());
  for (const id of ["a", "b", "c"])
    await kept.keepChat({ chat: chat(id), entries: [], hasOlder: false });
  await kept.drop("a");
  await kept.keepList([chat("b")]);
  assert.deepEqual(
    [await kept.chat("a"), (await kept.chat("b"))?.chat.id, await kept.chat("c")],
    [undefined, "b", undefined],
  );
  assert.deepEqual(
    (await kept.list()).map(({ id }) => id),
    ["b"],
  );
});

test("a page that is open after a sign-out keeps nothing that is read later", async () => {
  const caches = new Caches();
  const open = new OfflineChats("1", caches);
  await open.keepList([chat("a")]);
  await caches.delete("uamp.read.1");
  await open.keepChat({ chat: chat("a"), entries: entries(1, "secret"), hasOlder: false });
  assert.deepEqual(await caches.keys(), []);
  assert.equal(await new OfflineChats("1", caches).chat("a"), undefined);
});

test("what others left goes, and what is one's own stays", async () => {
  const caches = new Caches();
  for (const person of ["1", "11", "2"])
    await new OfflineChats(person, caches).keepList([chat(person)]);
  await caches.open("uamp.files.x");
  const storage = new Storage({
    "uamp.outbox.1": "",
    "uamp.outbox.11.k": "",
    "uamp.outbox.1.k": "",
    "uamp.drafts.2": "",
    "uamp.drafts.1": "",
    "uamp.last-chat.2": "",
    "uamp.checked-logs.1": "",
    "uamp.checked-logs.2": "",
    other: "",
  });
  await forgetOthers("1", { caches, storages: [storage] });
  assert.deepEqual(await caches.keys(), ["uamp.read.1", "uamp.files.x"]);
  assert.deepEqual(storage.keys(), [
    "uamp.outbox.1",
    "uamp.outbox.1.k",
    "uamp.drafts.1",
    "uamp.checked-logs.1",
    "other",
  ]);
  assert.equal((await new OfflineChats("1", caches).list())[0].id, "1");
});

test("where the address is not secure nothing is kept", async () => {
  const kept = new OfflineChats("1", undefined);
  await kept.keepList([chat("a")]);
  await kept.keepChat({ chat: chat("a"), entries: [], hasOlder: false });
  await kept.drop("a");
  assert.deepEqual([await kept.list(), await kept.chat("a")], [undefined, undefined]);
});

test("a cache that is deleted while it is used keeps nothing, and no other error is hidden", async () => {
  for (const [error, isExpected] of [
    [new DOMException("Entry was not found", "NotFoundError"), true],
    [new TypeError("a mistake"), false],
  ]) {
    const fail = async () => {
      throw error;
    };
    const kept = new OfflineChats("1", {
      open: async () => ({ match: fail, put: fail, delete: fail, keys: fail }),
    });
    const uses = [
      () => kept.list(),
      () => kept.chat("a"),
      () => kept.keepList([chat("a")]),
      () => kept.keepChat({ chat: chat("a"), entries: [], hasOlder: false }),
      () => kept.drop("a"),
    ];
    for (const use of uses) {
      if (isExpected) assert.equal(await use(), undefined);
      else await assert.rejects(use, error);
    }
  }
});
