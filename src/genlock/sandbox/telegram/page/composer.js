// The message field: text, commands, reply keyboard and replies; or the buttons Start and Unblock instead.
import { quoteOf } from "./bubble.js";
import { chooseFiles, offerFiles } from "./attach.js";
import { planner } from "./frame_scheduler.js";
import { changeUser, sendText } from "./actions.js";
import { icon, roundButton } from "./icons.js";
import { button, find, node } from "./dom.js";
import { failed } from "./notices.js";
import { jump } from "./thread.js";
import { onSwitch, view } from "./view.js";
import { commandsFor, messagesOf, on, userOf, state } from "./state.js";
import { closeInline, suggestInline } from "./inline.js";
import { getText } from "./texts.js";

const written = new Map();
const used = new Set();
const folded = new Set();
let replying = null;
let shape = "";
let chosen = 0;
const plan = planner(draw);

const field = node("textarea", { rows: "1", dir: "auto", enterkeyhint: "send", autocomplete: "off" });
const sendButton = node("button", { class: "round send", type: "button" }, icon("plane"));
const place = () => `${view.person}/${view.chat}`;

export function startComposer() {
    field.addEventListener("input", () => {
        written.set(place(), field.value);
        fit();
        suggest(field.value);
        suggestInline(field.value, clearField);
    });
    field.addEventListener("keydown", typed);
    field.addEventListener("paste", (event) => {
        if (event.clipboardData.files.length) {
            event.preventDefault();
            offerFiles([...event.clipboardData.files], replyId());
        }
    });
    sendButton.addEventListener("click", () => submit());
}

/** Send a text in the open chat. */
export function sendMessageText(text) {
    const words = text.trim();
    if (!words) return;
    const quoted = replyId();
    reply(null);
    sendText(view.person, view.chat, words, quoted).catch(failed);
}

const replyId = () => replying?.message_id ?? null;

export function reply(message) {
    replying = message;
    redrawComposer();
    if (message) field.focus();
}

function clearField() {
    field.value = "";
    written.delete(place());
    fit();
}

function submit() {
    const text = field.value;
    clearField();
    suggest("");
    closeInline();
    sendMessageText(text);
    field.focus();
}

function fit() {
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight, 200)}px`;
    sendButton.disabled = !field.value.trim();
}

function typed(event) {
    const list = find(".commands");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (list && step) {
        event.preventDefault();
        choose(chosen + step);
    } else if (list && (event.key === "Enter" || event.key === "Tab") && !event.shiftKey) {
        event.preventDefault();
        list.children[chosen].click();
    } else if (event.key === "Escape") {
        if (list) suggest("");
        else if (replying) reply(null);
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        submit();
    }
}

// commands

function suggest(text) {
    find(".commands")?.remove();
    const asked = /^\/(\w*)$/u.exec(text);
    const all = commandsFor(view.person, view.chat);
    const fitting = asked ? all.filter(({ command }) => command.startsWith(asked[1])) : [];
    if (fitting.length) openCommands(fitting);
}

function openCommands(commands) {
    const list = node("div", { class: "commands", role: "listbox", "aria-label": getText("commands") });
    for (const { command, description } of commands) {
        const run = () => {
            list.remove();
            field.value = "";
            written.delete(place());
            fit();
            sendMessageText(view.chat < 0 ? `/${command}@${state.bot.username}` : `/${command}`);
            field.focus();
        };
        const words = [node("span", { class: "name" }, `/${command}`), node("span", { class: "about" }, description)];
        list.append(button("", run, { role: "option" }, words));
    }
    find(".composer-wrap").append(list);
    choose(0);
}

function choose(index) {
    const options = [...find(".commands").children];
    chosen = (index + options.length) % options.length;
    options.forEach((option, number) => option.setAttribute("aria-selected", String(number === chosen)));
    options[chosen].scrollIntoView({ block: "nearest" });
}

function toggleCommands() {
    if (find(".commands")) find(".commands").remove();
    else openCommands(commandsFor(view.person, view.chat));
}

document.addEventListener("pointerdown", (event) => {
    if (!event.target.closest(".commands, .menu-button, .write textarea")) find(".commands")?.remove();
});

// reply keyboard

/** The message with the current reply keyboard, or null. */
function keyboard() {
    const given = messagesOf(view.person, view.chat).filter((message) => message.keyboard && message.from.is_bot);
    const last = given.at(-1);
    if (!last?.keyboard.keyboard || (last.keyboard.one_time_keyboard && used.has(last.message_id))) return null;
    return last;
}

function keyboardNode(message) {
    const rows = message.keyboard.keyboard.map((row) =>
        row.map((button) => (typeof button === "string" ? { text: button } : button)),
    );
    const press = (text) => {
        used.add(message.message_id);
        sendMessageText(text);
        redrawComposer();
    };
    const key = ({ text }) => button("", () => press(text), {}, text);
    return node(
        "div",
        { class: "keyboard", "aria-label": getText("keyboard"), role: "group" },
        rows.map((row) => node("div", { class: "line" }, row.map(key))),
    );
}

// drawing

export function redrawComposer() {
    shape = "";
    draw();
}

function draw() {
    const composer = find("#composer");
    const person = userOf(view.person);
    const chat = state.chats.get(view.chat);
    const keys = chat ? keyboard() : null;
    const open = keys !== null && !folded.has(keys.message_id);
    const empty = chat?.type === "private" && !messagesOf(view.person, view.chat).length;
    const commands = chat ? commandsFor(view.person, view.chat).length > 0 : false;
    const mode = !chat ? "none" : chat.type === "private" && person.blocked ? "blocked" : empty ? "start" : "write";
    const wanted = [place(), mode, keys?.message_id, open, commands, replyId()].join();
    if (wanted === shape) return;
    shape = wanted;
    if (mode === "none") composer.replaceChildren();
    else if (mode === "write") composer.replaceChildren(...writing({ keys, open, commands }));
    else composer.replaceChildren(instead(mode));
    fit();
}

function instead(mode) {
    const run =
        mode === "start" ? () => sendMessageText("/start") : () => changeUser(view.person, { blocked: false }).catch(failed);
    return node("div", { class: "start" }, button("wide", run, {}, getText(mode === "start" ? "start" : "unblock")));
}

function writing({ keys, open, commands }) {
    const attach = roundButton("attach", getText("attach"), () => chooseFiles(replyId()), "attach");
    const label = { "aria-label": getText("commands") };
    const menuButton =
        commands && button("menu-button", toggleCommands, label, icon("lines"), node("span", {}, getText("menu")));
    const fold = () => {
        if (open) folded.add(keys.message_id);
        else folded.delete(keys.message_id);
        redrawComposer();
    };
    const toggle = keys && roundButton("keyboard", getText("keyboard"), fold, "fold", { "aria-expanded": String(open) });
    field.placeholder = getText("message");
    field.setAttribute("aria-label", getText("message"));
    sendButton.setAttribute("aria-label", getText("send"));
    field.value = written.get(place()) ?? "";
    const line = node("div", { class: "write" }, menuButton, attach, field, toggle, sendButton);
    const quoted =
        replying &&
        node(
            "div",
            { class: "answering" },
            icon("reply"),
            quoteOf(replying, jump),
            roundButton("close", getText("reply_cancel"), () => reply(null)),
        );
    return [node("div", { class: "composer-wrap" }, quoted, line), open ? keyboardNode(keys) : null].filter(Boolean);
}

onSwitch(() => {
    if (replying && replying.chat.id !== view.chat) replying = null;
    plan();
    find(".commands")?.remove();
    closeInline();
});
for (const kind of ["reset", "people", "message", "gone", "profile", "chats"]) on(kind, plan);
