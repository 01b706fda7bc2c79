// What this tab shows: the selected user and chat (kept in the URL hash), and what has been read.
import { chatsOf, messagesOf, on, state } from "./state.js";
import { language } from "./texts.js";

export const view = { person: null, chat: null, screen: "list" };
const listeners = [];

/** The listener is called when another chat or user is selected. */
export const onSwitch = (listener) => listeners.push(listener);

export function show(person, chat = null) {
    const address = `#${person}${chat === null ? "" : `/${chat}`}`;
    if (location.hash === address) follow();
    else location.hash = address;
}

const asked = () => location.hash.slice(1).split("/").map(Number);

/** The first user who speaks the page's language, else the first one. */
function defaultUser() {
    const all = [...state.people.values()];
    return (all.find((one) => one.language_code === language()) ?? all[0])?.id ?? null;
}

/** Select user and chat from the URL hash; without one, a user with the page's language and the chat with the bot. */
export function follow() {
    const [person, chat] = asked();
    view.person = state.people.has(person) ? person : (state.people.has(view.person) ? view.person : defaultUser());
    const chosen = chatsOf(view.person).some((one) => one.id === chat) ? chat : null;
    view.chat = chosen ?? view.person;
    view.screen = chosen === null ? "list" : "chat";
    document.getElementById("app").dataset.screen = view.screen;
    for (const listener of listeners) listener();
}

addEventListener("hashchange", follow);

/** Whether this tab shows the chat and is visible. */
export function looking(person, chat) {
    const narrow = matchMedia("(max-width: 720px)").matches;
    const shown = view.person === person && view.chat === chat && (!narrow || view.screen === "chat");
    return shown && document.visibilityState === "visible";
}

// what has been read, shared by all tabs

const key = (person, chat) => `read ${state.id} ${person} ${chat}`;

export function markRead(person, chat) {
    const last = messagesOf(person, chat).at(-1)?.message_id ?? 0;
    if (last > readUpTo(person, chat)) {
        localStorage.setItem(key(person, chat), last);
        for (const listener of readers) listener();
    }
}

export const readUpTo = (person, chat) => Number(localStorage.getItem(key(person, chat)) ?? 0);

/** Number of unread messages that caused a notification. */
export function unread(person, chat) {
    const read = readUpTo(person, chat);
    const fresh = (message) => message.message_id > read && message.from?.id !== person;
    return messagesOf(person, chat).filter(
        (one) => fresh(one) && state.sounded.has(`${person}/${chat}/${one.message_id}`),
    ).length;
}

export const unreadOf = (person) => chatsOf(person).reduce((sum, chat) => sum + unread(person, chat.id), 0);

const readers = [];
export const onRead = (listener) => readers.push(listener);
addEventListener("storage", (event) => {
    if (event.key?.startsWith("read ")) for (const listener of readers) listener();
});

/** Remove read marks of earlier simulator runs. */
on("reset", () => {
    for (const name of Object.keys(localStorage)) {
        if (name.startsWith("read ") && !name.startsWith(`read ${state.id} `)) localStorage.removeItem(name);
    }
    follow();
});

/** Switch to the supergroup when the open group was migrated. */
on("chats", ({ chat }) => {
    const moved = state.chats.get(chat)?.migrated_to;
    if (moved && view.chat === chat) show(view.person, moved);
    catchUp();
});
on("people", catchUp);

/** The hash may name a user or chat whose event arrives after the answer of the call that created it. */
function catchUp() {
    const [person, chat] = asked();
    const late = person !== view.person && state.people.has(person);
    if (late || (chat && chat !== view.chat && chatsOf(person).some((one) => one.id === chat))) follow();
}
