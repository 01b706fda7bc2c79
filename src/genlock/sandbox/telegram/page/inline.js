// Inline mode: "@bot some words" in the message field asks the bot, and shows what it offers to share.
import { askInline, fileUrl, shareInline } from "./actions.js";
import { followed } from "./links.js";
import { button, find, node } from "./dom.js";
import { failed } from "./notices.js";
import { view } from "./view.js";
import { state } from "./state.js";
import { getText } from "./texts.js";

const PAUSE = 250;
let timer = 0;
let newest = 0;

/** Ask the bot while its name and a text are typed; `clear` empties the field when something was chosen. */
export function suggestInline(text, clear) {
    clearTimeout(timer);
    newest += 1;
    const asked = new RegExp(`^@${state.bot.username}\\s(.*)$`, "isu").exec(text);
    if (!asked) {
        closeInline();
        return;
    }
    const number = newest;
    timer = setTimeout(() => ask(asked[1], number, clear), PAUSE);
}

export function closeInline() {
    find(".inline-results")?.remove();
}

async function ask(text, number, clear) {
    const { person, chat } = view;
    const answer = await askInline(person, chat, text).catch(failed);
    if (!answer || number !== newest || view.chat !== chat) return;
    closeInline();
    const choose = (act) => () => {
        closeInline();
        clear();
        act();
    };
    const open = choose(() => followed(`t.me/${state.bot.username}?start=${answer.button.start_parameter}`));
    const share = (result) => choose(() => shareInline(person, chat, answer.id, result.id).catch(failed));
    const rows = [
        answer.button && button("inline-button", open, {}, answer.button.text),
        node(
            "div",
            { class: "inline-list" },
            answer.results.map((result) => button("inline-result", share(result), { title: result.title ?? "" }, preview(result))),
        ),
    ];
    find(".composer-wrap").append(
        node("div", { class: "inline-results", role: "group", "aria-label": getText("inline") }, rows.filter(Boolean)),
    );
}

function preview(result) {
    if (result.type === "photo") return node("img", { src: fileUrl(result.photo_file_id), alt: result.title ?? "" });
    return node("span", { class: "inline-title" }, result.title ?? getText("inline"));
}
