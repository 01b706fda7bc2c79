// Actions of a simulated user, as calls to the simulator's control API.
import { call } from "./connection.js";

const userAction = (person, name, body) => call("POST", `/sim/people/${person}/${name}`, body);

export const addUser = (name, language) =>
    call("POST", "/sim/people", { name, language, stars: 1000, started: false });
export const changeUser = (person, change) => call("POST", `/sim/people/${person}`, change);
export const sendText = (person, chat, text, replyTo) =>
    userAction(person, "say", { chat, text, ...(replyTo ? { reply_to: replyTo } : {}) });
export const press = (person, chat, message, button) => userAction(person, "press", { chat, message, button });
export const pay = (person, chat, message) => userAction(person, "pay", { chat, message });
export const askInline = (person, chat, text) => userAction(person, "inline", { chat, text });
export const shareInline = (person, chat, query, result) => userAction(person, "share", { chat, query, result });
export const remove = (person, chat, message, both) => userAction(person, "delete", { chat, message, for_both: both });
export const react = (person, chat, message, emoji) => userAction(person, "react", { chat, message, emoji });
export const clear = (person, chat, both) => userAction(person, "clear", { chat, for_both: both });
export const addGroup = (title, members) => call("POST", "/sim/groups", { title, members });
export const changeGroup = (chat, change) => call("POST", `/sim/groups/${chat}`, change);

/** Send one file, or several as an album. Each is {kind, file}. */
export function send(person, chat, things, { caption = "", replyTo = null } = {}) {
    const form = new FormData();
    form.append("chat", chat);
    form.append("caption", caption);
    if (replyTo) form.append("reply_to", replyTo);
    for (const { kind, file } of things) {
        form.append("kind", kind);
        form.append("file", file, file.name);
    }
    return userAction(person, "send", form);
}

/** Send a recorded voice message; without a recording, the simulator's sample voice. */
export function sendVoice(person, chat, recording, replyTo) {
    const form = new FormData();
    form.append("chat", chat);
    if (replyTo) form.append("reply_to", replyTo);
    if (recording) form.append("file", recording, "recording");
    return userAction(person, "voice", form);
}

export const sendSticker = (person, chat, sticker, replyTo) =>
    userAction(person, "sticker", { chat, sticker, ...(replyTo ? { reply_to: replyTo } : {}) });
export const edit = (person, chat, message, text) => userAction(person, "edit", { chat, message, text });
export const forward = (person, chat, messages, to) => userAction(person, "forward", { chat, messages, to });
export const stickers = () => call("GET", "/sim/stickers");
export const stickerUrl = (emoji) => `/sim/stickers/${encodeURIComponent(emoji)}`;

export const fileUrl = (id) => `/sim/files/${encodeURIComponent(id)}`;

export const switchFault = (fault) => call("POST", "/sim/faults", fault);
export const clearFault = (id) => call("DELETE", `/sim/faults/${id}`);
export const clearFaults = () => call("DELETE", "/sim/faults");
export const providers = (change) => (change ? call("POST", "/sim/providers", change) : call("GET", "/sim/providers"));
export const kie = (change) => (change ? call("POST", "/sim/kie", change) : call("GET", "/sim/kie"));
