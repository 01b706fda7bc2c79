// What this tab shows: whose eyes, which chat, and what has been read. The address keeps the first two.
import { chatsOf, messagesOf, on, world } from "./world.js";

export const view = { person: null, chat: null, screen: "list" };
const listeners = [];

/** Called when another chat or person is shown. */
export const onSwitch = (listener) => listeners.push(listener);

export function show(person, chat = null) {
    const address = `#${person}${chat === null ? "" : `/${chat}`}`;
    if (location.hash === address) follow();
    else location.hash = address;
}

const asked = () => location.hash.slice(1).split("/").map(Number);

/** Take what the address says; without one, the first person and, where both fit, their chat with the bot. */
export function follow() {
    const [person, chat] = asked();
    const first = world.people.keys().next().value ?? null;
    view.person = world.people.has(person) ? person : first;
    const mine = chatsOf(view.person);
    const chosen = mine.some((one) => one.id === chat) ? chat : null;
    view.chat = chosen ?? mine[0]?.id ?? null;
    view.screen = chosen === null ? "list" : "chat";
    document.getElementById("app").dataset.screen = view.screen;
    for (const listener of listeners) listener();
}

addEventListener("hashchange", follow);

/** Whether somebody looks at this chat here and now. */
export function looking(person, chat) {
    const narrow = matchMedia("(max-width: 720px)").matches;
    const shown = view.person === person && view.chat === chat && (!narrow || view.screen === "chat");
    return shown && document.visibilityState === "visible";
}

// what has been read, shared by all tabs

const key = (person, chat) => `read ${world.id} ${person} ${chat}`;

export function markRead(person, chat) {
    const last = messagesOf(person, chat).at(-1)?.message_id ?? 0;
    if (last > readUpTo(person, chat)) {
        localStorage.setItem(key(person, chat), last);
        for (const listener of readers) listener();
    }
}

export const readUpTo = (person, chat) => Number(localStorage.getItem(key(person, chat)) ?? 0);

/** How many messages made a sound and have not been read. */
export function unread(person, chat) {
    const read = readUpTo(person, chat);
    const fresh = (message) => message.message_id > read && message.from?.id !== person;
    return messagesOf(person, chat).filter(
        (one) => fresh(one) && world.sounded.has(`${person}/${chat}/${one.message_id}`),
    ).length;
}

export const unreadOf = (person) => chatsOf(person).reduce((sum, chat) => sum + unread(person, chat.id), 0);

const readers = [];
export const onRead = (listener) => readers.push(listener);
addEventListener("storage", (event) => {
    if (event.key?.startsWith("read ")) for (const listener of readers) listener();
});

/** Worlds that are gone leave nothing behind. */
on("reset", () => {
    for (const name of Object.keys(localStorage)) {
        if (name.startsWith("read ") && !name.startsWith(`read ${world.id} `)) localStorage.removeItem(name);
    }
    follow();
});

/** A group that became another one is left for it. */
on("chats", ({ chat }) => {
    const moved = world.chats.get(chat)?.migrated_to;
    if (moved && view.chat === chat) show(view.person, moved);
    catchUp();
});
on("people", catchUp);

/** The address may name somebody of whom the news come later than the answer to the call that made them. */
function catchUp() {
    const [person, chat] = asked();
    const late = person !== view.person && world.people.has(person);
    if (late || (chat && chat !== view.chat && chatsOf(person).some((one) => one.id === chat))) follow();
}
