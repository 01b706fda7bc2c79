// What can be done with one message.
import { reply } from "./composer.js";
import { fileUrl, remove } from "./hands.js";
import { ask, menu } from "./layers.js";
import { copy, node } from "./nodes.js";
import { failed, toast } from "./notices.js";
import { view } from "./view.js";
import { kindOf } from "./world.js";
import { say } from "./words.js";

/** The menu of a message, at a place. */
export function openMessageMenu(at, message) {
  const text = message.text ?? message.caption;
  const file = fileOf(message);
  const items = [
    { icon: "reply", text: say("reply"), run: () => reply(message) },
    text && { icon: "copy", text: say("copy"), run: () => copy(text).then(() => toast(say("copied"))) },
    file && { icon: "download", text: say("save"), run: () => node("a", file).click() },
    null,
    { icon: "trash", text: say("delete"), danger: true, run: () => removeMessage(message) },
  ];
  menu(at, items.filter((item) => item === null || item));
}

function fileOf(message) {
  const media = message[kindOf(message)];
  const one = Array.isArray(media) ? media.at(-1) : media;
  if (!one?.file_id) return null;
  return { href: fileUrl(one.file_id), download: one.file_name ?? `${kindOf(message)}_${message.message_id}` };
}

async function removeMessage(message) {
  const both = await ask({
    title: say("delete_title"),
    text: say("delete_text"),
    choices: [
      { text: say("delete_both"), value: true, look: "danger" },
      { text: say("delete_mine"), value: false, look: "danger" },
    ],
  });
  if (both !== null) await remove(view.person, message.chat.id, message.message_id, both).catch(failed);
}
