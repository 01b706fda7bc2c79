// State of the Telegram simulator as the page knows it, updated by events.

export const state = empty();
const listeners = new Map();
const JOURNAL_MAX = 1000;

function empty() {
    return {
        id: null,
        last: 0,
        bot: { first_name: "", username: "" },
        profile: { commands: {} },
        kie: false,
        providers: false,
        dashboard: false,
        people: new Map(),
        chats: new Map(),
        faults: [],
        kinds: [],
        methods: [],
        journal: [],
        sounded: new Set(),
    };
}

/** Register a listener for a kind of change: reset, people, chats, message, edit, gone, answer, action, notification, faults, journal … */
export function on(kind, listener) {
    listeners.set(kind, [...(listeners.get(kind) ?? []), listener]);
}

function emit(kind, detail = {}) {
    for (const listener of listeners.get(kind) ?? []) listener(detail);
}

/** Replace the state by the answer of `GET /sim/page`. */
export function load(snapshot) {
    Object.assign(state, empty());
    Object.assign(state, {
        id: snapshot.world,
        last: snapshot.last,
        bot: snapshot.bot,
        profile: snapshot.profile,
        kie: snapshot.kie,
        providers: snapshot.providers,
        dashboard: snapshot.dashboard,
        faults: snapshot.faults,
        kinds: snapshot.kinds_of_faults,
        methods: snapshot.methods,
    });
    for (const person of snapshot.people) state.people.set(person.id, person);
    for (const chat of snapshot.chats) state.chats.set(chat.id, { ...chat, messages: new Map(chat.messages.map(keyed)) });
    for (const [person, chat, message] of snapshot.sounded) state.sounded.add(`${person}/${chat}/${message}`);
    for (const event of snapshot.journal) note(event);
    emit("reset");
}

const keyed = (view) => [view.message.message_id, flat(view)];

/** A message view as one flat object: the Bot API's fields and the page's own. */
const flat = ({ message, keyboard, paid, reactions, hidden_from: hidden }) => ({
    ...message,
    keyboard,
    paid,
    reactions,
    hidden_from: hidden ?? [],
});

/** Apply one event of the stream. Events that were already applied are skipped. */
export function apply(event) {
    if (event.number <= state.last) return;
    state.last = event.number;
    APPLIED[event.kind]?.(event);
}

const APPLIED = {
    person({ person, stars, deactivated, operator }) {
        const known = state.people.get(person.id) ?? { stars, operator };
        state.people.set(person.id, { ...known, ...person, deactivated });
        if (!state.chats.has(person.id)) {
            state.chats.set(person.id, { id: person.id, type: "private", members: [person.id], messages: new Map() });
        }
        emit("people", { person: person.id });
    },
    chat({ chat, members, bot_status }) {
        const known = state.chats.get(chat.id) ?? { messages: new Map() };
        state.chats.set(chat.id, {
            ...known,
            ...chat,
            members,
            bot_status: bot_status ?? known.bot_status ?? "member",
        });
        emit("chats", { chat: chat.id });
    },
    message(view) {
        const chat = state.chats.get(view.chat);
        if (!chat) return;
        const message = flat(view);
        chat.messages.set(message.message_id, message);
        emit("message", { chat: view.chat, message });
        if (message.migrate_to_chat_id) {
            chat.migrated_to = message.migrate_to_chat_id;
            emit("chats", { chat: view.chat });
        }
    },
    edit(view) {
        const known = state.chats.get(view.chat)?.messages.get(view.message.message_id);
        if (!known) return;
        const message = { ...flat(view), hidden_from: known.hidden_from };
        state.chats.get(view.chat).messages.set(message.message_id, message);
        emit("edit", { chat: view.chat, message });
    },
    delete({ chat, message_id: id }) {
        state.chats.get(chat)?.messages.delete(id);
        emit("gone", { chat, message: id });
    },
    hide({ chat, message_id: id, person }) {
        state.chats.get(chat)?.messages.get(id)?.hidden_from.push(person);
        emit("gone", { chat, message: id, person });
    },
    notification(event) {
        state.sounded.add(`${event.person}/${event.chat}/${event.message}`);
        const known = state.chats.get(event.chat)?.messages;
        if (known?.has(event.message)) known.set(event.message, { ...known.get(event.message) });
        emit("notification", event);
    },
    answer(event) {
        emit("answer", event);
    },
    action(event) {
        emit("action", event);
    },
    draft(event) {
        emit("draft", event);
    },
    reaction({ chat, message_id: id, person, reaction }) {
        const message = state.chats.get(chat)?.messages.get(id);
        if (!message) return;
        const { [person]: _, ...others } = message.reactions ?? {};
        const reactions = reaction.length ? { ...others, [person]: reaction[0].emoji } : others;
        state.chats.get(chat).messages.set(id, { ...message, reactions });
        emit("edit", { chat, message });
    },
    block({ person, blocked }) {
        Object.assign(state.people.get(person) ?? {}, { blocked });
        emit("people", { person });
    },
    stars({ person, stars }) {
        Object.assign(state.people.get(person) ?? {}, { stars });
        emit("people", { person });
    },
    payment({ person, stars }) {
        if (stars !== undefined) APPLIED.stars({ person, stars });
    },
    profile({ profile }) {
        state.profile = profile;
        emit("profile");
    },
    fault({ faults }) {
        state.faults = faults;
        emit("faults");
    },
    call: noted,
    update: noted,
    log: noted,
};

function noted(event) {
    emit("journal", note(event));
}

function note(event) {
    state.journal.push(event);
    if (state.journal.length > JOURNAL_MAX) state.journal.splice(0, state.journal.length - JOURNAL_MAX);
    return event;
}

// queries

/** The bot's commands for a user in a chat: from the narrowest scope that has some, in the user's language or the default. */
export function commandsFor(person, chat) {
    const spoken = state.people.get(person)?.language_code ?? "";
    const group = chat < 0;
    const scopes = [
        `chat_member/${chat}/${person}`,
        `chat/${chat}/`,
        group ? "all_group_chats//" : "all_private_chats//",
        "default//",
    ];
    const named = scopes.flatMap((scope) => [`${scope}/${spoken}`, `${scope}/`]);
    const found = named.find((name) => state.profile.commands[name]?.length);
    return found ? state.profile.commands[found] : [];
}

/** Name or description of the bot in the user's language. */
export function profileOf(field, person) {
    const spoken = state.people.get(person)?.language_code ?? "";
    return state.profile[`${field}/${spoken}`] || state.profile[`${field}/`] || "";
}

export const botName = (person) => profileOf("name", person) || state.bot.first_name;

export const userOf = (id) => state.people.get(id);

export const nameOf = (user) => [user?.first_name, user?.last_name].filter(Boolean).join(" ");

/** Chats of a user, the one with the newest message first; among those without messages, the one with the bot. */
export function chatsOf(person) {
    const mine = [...state.chats.values()].filter((chat) => chat.id === person || chat.members?.includes(person));
    const newest = new Map(mine.map((chat) => [chat, messagesOf(person, chat.id).at(-1)?.date ?? 0]));
    return mine
        .filter((chat) => !chat.migrated_to)
        .sort(
            (one, other) =>
                newest.get(other) - newest.get(one) || Number(other.id === person) - Number(one.id === person),
        );
}

/** Messages that a user sees in a chat, in order. */
export function messagesOf(person, chat) {
    const there = state.chats.get(chat)?.messages.values() ?? [];
    return [...there]
        .filter((message) => sees(person, message))
        .sort((one, other) => one.message_id - other.message_id);
}

export const sees = (person, message) => !message.hidden_from?.includes(person);

const KINDS = [
    ...["animation", "photo", "video", "audio", "voice", "document", "video_note", "sticker", "invoice", "text"],
    ...["paid_media", "venue", "location", "contact", "dice", "poll"],
];

export const kindOf = (message) => KINDS.find((kind) => kind in message) ?? "service";
