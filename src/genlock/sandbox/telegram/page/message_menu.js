// The context menu of a message.
import { edit, reply } from "./composer.js";
import { openForward } from "./forward.js";
import { fileUrl, react, remove } from "./actions.js";
import { ask, close, menu } from "./layers.js";
import { copy, node } from "./dom.js";
import { failed, toast } from "./notices.js";
import { view } from "./view.js";
import { kindOf } from "./state.js";
import { getText } from "./texts.js";

const EMOJI = ["👍", "❤️", "🔥", "🎉", "😁", "😢"];

/** Open the menu of a message. */
export function openMessageMenu(at, message) {
    const text = message.text ?? message.caption;
    const file = fileOf(message);
    const items = [
        reacting(message),
        null,
        { icon: "reply", text: getText("reply"), run: () => reply(message) },
        isEditable(message) && { icon: "pencil", text: getText("edit"), run: () => edit(message) },
        !message.has_protected_content && {
            icon: "forward",
            text: getText("forward"),
            run: () => openForward(message),
        },
        text && { icon: "copy", text: getText("copy"), run: () => copy(text).then(() => toast(getText("copied"))) },
        file && { icon: "download", text: getText("save"), run: () => node("a", file).click() },
        null,
        { icon: "trash", text: getText("delete"), danger: true, run: () => removeMessage(message) },
    ];
    menu(
        at,
        items.filter((item) => item === null || item),
    );
}

/** Telegram lets users edit their own texts and captions, but not what they forwarded. */
export const isEditable = (message) =>
    message.from.id === view.person && !message.forward_origin && !["sticker", "service"].includes(kindOf(message));

/** Set a reaction; choosing the same again removes it. */
function reacting(message) {
    const mine = message.reactions?.[view.person];
    const put = (emoji) => {
        close();
        react(view.person, message.chat.id, message.message_id, emoji === mine ? null : emoji).catch(failed);
    };
    const one = (emoji) =>
        node(
            "button",
            {
                type: "button",
                role: "menuitemcheckbox",
                "aria-checked": String(emoji === mine),
                on: { click: () => put(emoji) },
            },
            emoji,
        );
    return node("div", { class: "emoji", role: "group", "aria-label": getText("react") }, EMOJI.map(one));
}

function fileOf(message) {
    const media = message[kindOf(message)];
    const one = Array.isArray(media) ? media.at(-1) : media;
    if (!one?.file_id) return null;
    return { href: fileUrl(one.file_id), download: one.file_name ?? `${kindOf(message)}_${message.message_id}` };
}

async function removeMessage(message) {
    const both = await ask({
        title: getText("delete_title"),
        text: getText("delete_text"),
        choices: [
            { text: getText("delete_both"), value: true, look: "danger" },
            { text: getText("delete_mine"), value: false, look: "danger" },
        ],
    });
    if (both !== null) await remove(view.person, message.chat.id, message.message_id, both).catch(failed);
}
