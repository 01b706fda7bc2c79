// The message field: text, commands, reply keyboard, replies and edits; or the buttons Start and Unblock instead.
import { quoteOf } from "./bubble.js";
import { chooseFiles, offerFiles } from "./attach.js";
import { closeCommands, startCommands, suggest, toggleCommands, walkCommands } from "./commands.js";
import { planner } from "./frame_scheduler.js";
import { changeUser, edit as saveEdit, sendText, sendVoice } from "./actions.js";
import { icon, roundButton } from "./icons.js";
import { button, find, node } from "./dom.js";
import { failed } from "./notices.js";
import { startRecording } from "./recorder.js";
import { closeStickers, toggleStickers } from "./stickers.js";
import { jump } from "./thread.js";
import { onSwitch, view } from "./view.js";
import { commandsFor, kindOf, messagesOf, on, userOf, state } from "./state.js";
import { closeInline, suggestInline } from "./inline.js";
import { duration, getText } from "./texts.js";

const written = new Map();
const used = new Set();
const folded = new Set();
/** What the field is used for besides a new message: {kind: "reply" | "edit", message, text}, or null. */
let context = null;
/** The running recording with its place, or null. */
let recording = null;
let shape = "";
const plan = planner(draw);

const field = node("textarea", { rows: "1", dir: "auto", enterkeyhint: "send", autocomplete: "off" });
const sendButton = node("button", { class: "round send", type: "button" }, icon("plane"));
const micButton = node("button", { class: "round mic", type: "button" }, icon("mic"));
const place = () => `${view.person}/${view.chat}`;
const editing = () => context?.kind === "edit";

export function startComposer() {
    field.addEventListener("input", () => {
        if (editing()) context.text = field.value;
        else written.set(place(), field.value);
        fit();
        suggest(editing() ? "" : field.value);
        suggestInline(editing() ? "" : field.value, clearField);
    });
    field.addEventListener("keydown", typed);
    field.addEventListener("paste", (event) => {
        if (event.clipboardData.files.length) {
            event.preventDefault();
            offerFiles([...event.clipboardData.files], replyId());
        }
    });
    sendButton.addEventListener("click", () => submit());
    micButton.addEventListener("click", () => record());
    startCommands(sendWritten);
}

/** Send a text in the open chat; `onFailure` is called if that fails. */
export async function sendMessageText(text, onFailure = () => {}) {
    const words = text.trim();
    if (!words) return;
    try {
        await sendText(view.person, view.chat, words, takeReply());
    } catch (error) {
        failed(error);
        onFailure();
    }
}

const replyId = () => (context?.kind === "reply" ? context.message.message_id : null);

/** The id of the message replied to; the reply ends with it. */
function takeReply() {
    const quoted = replyId();
    if (quoted) setContext(null);
    return quoted;
}

export const reply = (message) => setContext({ kind: "reply", message });

/** Put the text or caption of an own message into the field, to change it. */
export const edit = (message) => setContext({ kind: "edit", message, text: message.text ?? message.caption ?? "" });

function setContext(wanted) {
    context = wanted && { ...wanted, place: place() };
    redrawComposer();
    if (wanted) field.focus();
}

function clearField() {
    field.value = "";
    written.delete(place());
    fit();
}

function submit() {
    const text = field.value;
    if (editing()) return saveChange(text.trim());
    return text.trim() && sendWritten(text);
}

/** Send a text that the field had, or a command that completes it. */
function sendWritten(text) {
    clearField();
    closeCommands();
    closeInline();
    const from = place();
    sendMessageText(text, () => putBack(from, text));
    field.focus();
}

/** Put a text that could not be sent into the field of its chat again, unless something was written there meanwhile. */
function putBack(where, text) {
    if (written.get(where)) return;
    written.set(where, text);
    redrawComposer();
}

function saveChange(text) {
    const { message } = context;
    if (!text && kindOf(message) === "text") return;
    setContext(null);
    field.focus();
    if (text !== (message.text ?? message.caption ?? ""))
        saveEdit(view.person, message.chat.id, message.message_id, text).catch(failed);
}

function fit() {
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight, 200)}px`;
    micButton.hidden = editing() || Boolean(field.value.trim());
    sendButton.hidden = !micButton.hidden;
}

function typed(event) {
    if (walkCommands(event)) return;
    if (event.key === "Escape") {
        if (context) setContext(null);
    } else if (event.key === "ArrowUp" && !field.value && !context) {
        editLast(event);
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        submit();
    }
}

/** The arrow up in an empty field edits the last own text, as Telegram's desktop client does. */
function editLast(event) {
    const mine = messagesOf(view.person, view.chat).filter(
        (one) => one.from.id === view.person && kindOf(one) === "text" && !one.forward_origin,
    );
    if (!mine.length) return;
    event.preventDefault();
    edit(mine.at(-1));
}

// voice

async function record() {
    const where = place();
    const started = await startRecording();
    if (where !== place()) return started.cancel();
    recording = { ...started, place: where };
    redrawComposer();
    return find(".recording .send").focus();
}

async function endRecording(send) {
    const ended = recording;
    const [person, chat, quoted] = [view.person, view.chat, send ? takeReply() : null];
    recording = null;
    redrawComposer();
    field.focus();
    try {
        if (send) await sendVoice(person, chat, await ended.stop(), quoted);
        else await ended.cancel();
    } catch (error) {
        failed(error);
    }
}

function recordingBar() {
    const clock = node("span", { class: "clock" }, duration(recording.seconds()));
    const timer = setInterval(() => {
        if (!clock.isConnected) clearInterval(timer);
        else clock.textContent = duration(recording?.seconds() ?? 0);
    }, 250);
    const text = node("span", { class: "about", role: "status" }, getText(recording.sample ? "record_sample" : "recording"));
    const away = roundButton("trash", getText("record_cancel"), () => endRecording(false));
    const go = roundButton("plane", getText("send"), () => endRecording(true), "send");
    const bar = node("div", { class: "write recording" }, away, node("span", { class: "dot" }), clock, text, go);
    bar.addEventListener("keydown", (event) => event.key === "Escape" && endRecording(false));
    return bar;
}

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
    const wanted = [place(), mode, keys?.message_id, open, commands, context?.kind, context?.message.message_id].join();
    if (wanted === shape) return;
    shape = wanted;
    const typing = document.activeElement === field;
    closeStickers();
    if (mode === "none") composer.replaceChildren();
    else if (mode === "write") composer.replaceChildren(...writing({ keys, open, commands }));
    else composer.replaceChildren(instead(mode));
    // A field that is put into the page again has lost the focus, and what is typed next would go nowhere.
    if (typing) field.focus();
    fit();
}

function instead(mode) {
    const run =
        mode === "start" ? () => sendMessageText("/start") : () => changeUser(view.person, { blocked: false }).catch(failed);
    return node("div", { class: "start" }, button("wide", run, {}, getText(mode === "start" ? "start" : "unblock")));
}

function writing({ keys, open, commands }) {
    const line = recording ? recordingBar() : fieldLine({ keys, open, commands });
    const above = context && node("div", { class: "answering" }, contextParts());
    return [node("div", { class: "composer-wrap" }, above, line), open ? keyboardNode(keys) : null].filter(Boolean);
}

function fieldLine({ keys, open, commands }) {
    const attach = !editing() && roundButton("attach", getText("attach"), () => chooseFiles(replyId()), "attach");
    const label = { "aria-label": getText("commands") };
    const menuButton =
        commands &&
        !editing() &&
        button("menu-button", toggleCommands, label, icon("lines"), node("span", {}, getText("menu")));
    const fold = () => {
        if (open) folded.add(keys.message_id);
        else folded.delete(keys.message_id);
        redrawComposer();
    };
    const toggle = keys && roundButton("keyboard", getText("keyboard"), fold, "fold", { "aria-expanded": String(open) });
    const stickers = () => toggleStickers(takeReply);
    const smile =
        !editing() &&
        roundButton("smile", getText("stickers"), stickers, "sticker-button", { "aria-expanded": "false" });
    field.placeholder = getText("message");
    field.setAttribute("aria-label", getText(editing() ? "editing" : "message"));
    sendButton.setAttribute("aria-label", getText(editing() ? "edit_save" : "send"));
    sendButton.replaceChildren(icon(editing() ? "check" : "plane"));
    micButton.setAttribute("aria-label", getText("record"));
    micButton.title = getText("record");
    const text = editing() ? context.text : (written.get(place()) ?? "");
    if (field.value !== text) field.value = text;
    return node("div", { class: "write" }, menuButton, attach, field, toggle, smile, micButton, sendButton);
}

function contextParts() {
    const [picture, label, title] = editing()
        ? ["pencil", "edit_cancel", getText("editing")]
        : ["reply", "reply_cancel", null];
    return [
        icon(picture),
        quoteOf(context.message, jump, title),
        roundButton("close", getText(label), () => setContext(null)),
    ];
}

/** Leaving the chat ends an edit, a reply and a recording. */
onSwitch(() => {
    if (context && context.place !== place()) context = null;
    if (recording && recording.place !== place()) {
        recording.cancel();
        recording = null;
        shape = "";
    }
    plan();
    closeCommands();
    closeInline();
});
on("gone", ({ chat, message }) => {
    if (context?.message.chat.id === chat && context.message.message_id === message) setContext(null);
});
for (const kind of ["reset", "people", "message", "gone", "profile", "chats"]) on(kind, plan);
