// The header of a chat: title, status, and a menu of actions.
import { changeGroup, changeUser, clear } from "./actions.js";
import { icon, roundButton } from "./icons.js";
import { ask, menu } from "./layers.js";
import { find, hue, initials, node } from "./dom.js";
import { failed } from "./notices.js";
import { onPanel, panelOpen, togglePanel } from "./panel.js";
import { onSwitch, show, view } from "./view.js";
import { botName, on, userOf, state } from "./state.js";
import { getText } from "./texts.js";

const ACTION_SECONDS = 5.5;
const ACTIONS = {
    upload_photo: "action_photo",
    upload_video: "action_video",
    record_video: "action_video",
    upload_voice: "action_voice",
    record_voice: "action_voice",
    upload_document: "action_document",
};
const acting = new Map();

export function drawHead() {
    const chat = state.chats.get(view.chat);
    const open = panelOpen();
    const back = roundButton("back", getText("back"), () => show(view.person), "back");
    const label = getText(open ? "panel_close" : "panel_open");
    const aside = roundButton("panel", label, togglePanel, "aside", { "aria-expanded": String(open) });
    if (!chat) return find("#head").replaceChildren(back, node("div", { class: "who" }), aside);
    const title = titleOf(chat, view.person);
    const who = node(
        "div",
        { class: "who" },
        chatAvatar(chat, title),
        node("div", { style: { "min-width": "0" } }, node("h2", {}, title), statusOf(chat)),
    );
    const more = roundButton("dots", getText("more"), (event) => menu(event.currentTarget, choices(chat)), "more");
    return find("#head").replaceChildren(back, who, more, aside);
}

export const titleOf = (chat, person) => (chat.type === "private" ? botName(person) : chat.title);

export function chatAvatar(chat, title) {
    const bot = chat.type === "private";
    return node(
        "span",
        { class: bot ? "avatar bot" : "avatar", style: { "--hue": hue(chat.id) }, "aria-hidden": "true" },
        bot ? icon("bot") : initials(title),
    );
}

function statusOf(chat) {
    const action = acting.get(chat.id);
    if (action) return node("div", { class: "status busy" }, getText(ACTIONS[action] ?? "typing"));
    return node(
        "div",
        { class: "status" },
        chat.type === "private" ? getText("bot") : getText("members", { n: chat.members.length + 1 }),
    );
}

function choices(chat) {
    const wipe = { icon: "broom", text: getText("clear"), run: () => clearHistory(chat) };
    if (chat.type !== "private") {
        const member = ["member", "administrator"].includes(chat.bot_status);
        const upgrade = { icon: "group", text: getText("upgrade"), run: () => upgraded(chat) };
        const expel = {
            icon: "block",
            text: getText("expel"),
            danger: true,
            run: () => changeGroup(chat.id, { bot: "kicked" }).catch(failed),
        };
        const invite = {
            icon: "bot",
            text: getText("invite"),
            run: () => changeGroup(chat.id, { bot: "member" }).catch(failed),
        };
        return [wipe, chat.type === "group" && upgrade, null, member ? expel : invite].filter((one) => one !== false);
    }
    const { blocked } = userOf(view.person);
    const block = {
        icon: "block",
        text: getText(blocked ? "unblock_bot" : "block"),
        danger: !blocked,
        run: () => changeUser(view.person, { blocked: !blocked }).catch(failed),
    };
    return [wipe, null, block];
}

async function upgraded(chat) {
    try {
        const made = await changeGroup(chat.id, { migrate: true });
        show(view.person, made.id);
    } catch (error) {
        failed(error);
    }
}

async function clearHistory(chat) {
    const both = await ask({
        title: getText("clear_title"),
        text: getText("clear_text"),
        choices: [
            { text: getText("clear_both"), value: true, look: "danger" },
            { text: getText("clear_mine"), value: false, look: "danger" },
        ],
    });
    if (both !== null) await clear(view.person, chat.id, both).catch(failed);
}

on("action", ({ chat, action }) => {
    acting.set(chat, action);
    if (chat === view.chat) drawHead();
    setTimeout(() => quiet(chat, action), ACTION_SECONDS * 1000);
});
on("message", ({ chat, message }) => message.from?.is_bot && quiet(chat));

function quiet(chat, action) {
    if (!acting.has(chat) || (action && acting.get(chat) !== action)) return;
    acting.delete(chat);
    if (chat === view.chat) drawHead();
}

onSwitch(drawHead);
onPanel(drawHead);
for (const kind of ["reset", "people", "chats", "profile"]) on(kind, drawHead);
