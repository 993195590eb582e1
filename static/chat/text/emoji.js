/** Emoji with the names to find them by and to write them as `:name:`. Knows no DOM. */

/** One emoji per line: the emoji, its name, and other search words. */
const LIST = `
👍 thumbs_up +1 like yes agree
👎 thumbs_down -1 dislike no
❤️ heart love
😂 joy laughing tears
🎉 party tada celebrate
👀 eyes look
✅ white_check_mark done yes
❌ x no wrong
🙏 pray thanks please
🔥 fire hot
🚀 rocket ship launch
💯 100 hundred perfect
😀 grinning happy
😄 smile happy
😁 grin
😅 sweat_smile relief
🤣 rofl laughing
😊 blush happy
🙂 slightly_smiling
😉 wink
😍 heart_eyes love
🥰 smiling_hearts love
😘 kiss
😎 sunglasses cool
🤩 star_struck wow
🥳 celebrating partying birthday
😏 smirk
😐 neutral
🙄 eye_roll
😬 grimacing
🤔 thinking hmm
🤨 raised_eyebrow
😮 open_mouth surprised wow
😲 astonished
😱 scream
😢 cry sad
😭 sob sad
😞 disappointed sad
😔 pensive sad
😟 worried
😕 confused
🙁 frowning sad
😤 huff
😠 angry
😡 rage
😴 sleeping tired
🥱 yawning tired
🤒 thermometer ill sick
🤧 sneezing cold
🤯 mind_blown
😇 innocent angel
🤖 robot agent bot
👻 ghost
💩 poop
👋 wave hello bye
🤚 raised_hand
✋ hand stop
👌 ok_hand
✌️ victory peace
🤞 fingers_crossed luck
👏 clap applause
🙌 raised_hands hooray
🤝 handshake deal
💪 muscle strong
✍️ writing
🙋 raising_hand question
🤷 shrug dunno
🤦 facepalm
👨‍👩‍👧 family
👶 baby
🐶 dog
🐱 cat
🐻 bear
🦊 fox
🐝 bee
🦋 butterfly
🌱 seedling plant
🌳 tree
🌸 blossom flower
🌹 rose flower
☀️ sun sunny
⛅ partly_cloudy
🌧️ rain
❄️ snowflake cold
🌈 rainbow
⭐ star
✨ sparkles
⚡ zap lightning
🌍 earth world
🍎 apple
🍌 banana
🍓 strawberry
🥕 carrot
🍞 bread
🧀 cheese
🍕 pizza
🍔 burger
🍝 spaghetti pasta
🍣 sushi
🍰 cake
🎂 birthday cake
🍪 cookie
🍫 chocolate
☕ coffee tea
🍺 beer
🍷 wine
🥂 cheers champagne
⚽ soccer football
🏀 basketball
🏆 trophy win
🥇 first gold
🎮 game
🎵 music note
🎸 guitar
🎨 art paint
🎬 movie
📷 camera photo
🚗 car
🚲 bike
🚆 train
✈️ airplane flight
🏠 house home
🏖️ beach holiday
🎁 gift present
🎈 balloon
💡 bulb idea
📌 pushpin pin
📎 paperclip attach
📅 calendar date
⏰ alarm clock time
⏳ hourglass wait
💰 money
💳 card pay
📈 chart_up growth
📉 chart_down
📝 memo note
📚 books
🔑 key
🔒 lock
🔧 wrench fix
🐛 bug
💻 laptop computer
📱 phone
📧 email mail
🔔 bell
❓ question
❗ exclamation
⚠️ warning
🚫 prohibited no
🆗 ok
➕ plus
➖ minus
🔁 repeat again
💔 broken_heart
💙 blue_heart
💚 green_heart
💛 yellow_heart
💜 purple_heart
🖤 black_heart`;

/** @typedef {{emoji: string, name: string, words: string}} Emoji */

/** @type {Emoji[]} */
export const EMOJI = LIST.trim()
  .split("\n")
  .map((line) => {
    const [emoji, ...names] = line.split(" ");
    return { emoji, name: names[0], words: names.join(" ") };
  });

const BY_NAME = new Map(
  EMOJI.flatMap(({ emoji, words }) =>
    words.split(" ").map((word) => /** @type {const} */ ([word, emoji])),
  ).reverse(),
);

/** The emoji that match a text; all for an empty one. @param {string} text */
export function emojiFor(text) {
  const words = text
    .trim()
    .toLowerCase()
    .replaceAll(":", "")
    .split(/[\s_]+/)
    .filter(Boolean);
  return EMOJI.filter(
    (one) => words.every((word) => one.words.includes(word)) || one.emoji === text.trim(),
  );
}

/**
 * Replace the `:name:` before the caret with its emoji; null if there is none.
 * @param {string} text @param {number} caret
 * @returns {{text: string, caret: number}|null}
 */
export function withEmoji(text, caret) {
  const match = /(?:^|[\s(])(:([a-z0-9_+-]{1,30}):)$/.exec(text.slice(0, caret));
  const emoji = match && BY_NAME.get(match[2]);
  if (!emoji) return null;
  const from = caret - match[1].length;
  return { text: text.slice(0, from) + emoji + text.slice(caret), caret: from + emoji.length };
}
