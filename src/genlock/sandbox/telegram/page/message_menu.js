// What can be done with one message.
import { reply } from "./composer.js";
import { fileUrl, react, remove } from "./hands.js";
import { ask, close, menu } from "./layers.js";
import { copy, node } from "./nodes.js";
import { failed, toast } from "./notices.js";
import { view } from "./view.js";
import { kindOf } from "./world.js";
import { say } from "./words.js";

const EMOJI = ["👍", "❤️", "🔥", "🎉", "😁", "😢"];

/** The menu of a message, at a place. */
export function openMessageMenu(at, message) {
    const text = message.text ?? message.caption;
    const file = fileOf(message);
    const items = [
        reacting(message),
        null,
        { icon: "reply", text: say("reply"), run: () => reply(message) },
        text && { icon: "copy", text: say("copy"), run: () => copy(text).then(() => toast(say("copied"))) },
        file && { icon: "download", text: say("save"), run: () => node("a", file).click() },
        null,
        { icon: "trash", text: say("delete"), danger: true, run: () => removeMessage(message) },
    ];
    menu(
        at,
        items.filter((item) => item === null || item),
    );
}

/** A tap puts a reaction, the same once more takes it back. */
function reacting(message) {
    const mine = message.reactions?.[view.person];
    const put = (emoji) => {
        close();
        react(view.person, message.chat.id, message.message_id, emoji === mine ? null : emoji).catch(failed);
    };
    const one = (emoji) =>
        node(
            "button",
            { type: "button", "aria-pressed": String(emoji === mine), on: { click: () => put(emoji) } },
            emoji,
        );
    return node("div", { class: "emoji", role: "group", "aria-label": say("react") }, EMOJI.map(one));
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
