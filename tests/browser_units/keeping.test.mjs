import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { keepWhatIsRead } from "../../static/chat/offline/keeping.js";
import { emptyChat } from "../../static/chat/store/open-chat.js";
import { Store } from "../../static/chat/store/store.js";

globalThis.document = new EventTarget();
globalThis.window = globalThis;

const message = (seq) => ({ id: `m${seq}`, seq });

/** An open chat, the list of chats, and what was kept of both. */
function opened() {
  mock.timers.enable({ apis: ["setTimeout"] });
  const page = new Store(emptyChat("1", "a", "", "alice"), {
    state: (state, { type, ...changes }) => ({ ...state, ...changes }),
  });
  const list = Object.assign(new EventTarget(), {
    loaded: true,
    list: [{ id: "a" }],
    get: (id) => list.list.find((one) => one.id === id),
  });
  const chats = [];
  const lists = [];
  keepWhatIsRead(
    {
      keepChat: ({ chat, entries }) => chats.push([chat.id, entries.length]),
      keepList: (all) => lists.push(all.length),
      drop: () => {},
    },
    list,
    page,
  );
  const show = (changes) => page.dispatch({ type: "state", ...changes });
  return {
    list,
    chats,
    lists,
    show,
    wait: () => mock.timers.tick(1000),
    end: () => mock.timers.reset(),
  };
}

test("messages that came live before the page of the chat was loaded are kept with it", () => {
  const { show, wait, chats, end } = opened();
  const entries = [message(1)];
  show({ entries });
  wait();
  assert.deepEqual(chats, []);
  show({ loaded: true });
  wait();
  assert.deepEqual(chats, [["a", 1]]);
  show({ hasOlder: true });
  wait();
  assert.equal(chats.length, 1);
  end();
});

test("a chat that is not yet in the list is kept once it is", () => {
  const { show, wait, chats, lists, list, end } = opened();
  const [a] = list.list.splice(0);
  show({ entries: [message(1)], loaded: true });
  wait();
  assert.deepEqual(chats, []);
  list.list.push(a);
  list.dispatchEvent(new Event("change"));
  wait();
  assert.deepEqual([chats, lists], [[["a", 1]], [1]]);
  end();
});

test("the chat that is left is kept before the next one", () => {
  const { show, wait, chats, list, end } = opened();
  list.list.push({ id: "b" });
  show({ entries: [message(1)], loaded: true });
  show({ chatId: "b", entries: [], loaded: false });
  assert.deepEqual(chats, [["a", 1]]);
  show({ entries: [message(1), message(2)], loaded: true });
  wait();
  assert.deepEqual(chats, [
    ["a", 1],
    ["b", 2],
  ]);
  end();
});
