// What the page knows of the simulated Telegram, kept current event by event.

export const world = empty();
const listeners = new Map();
const JOURNAL_MAX = 1000;

function empty() {
    return {
        id: null,
        last: 0,
        bot: { first_name: "", username: "" },
        profile: { commands: {} },
        kie: false,
        people: new Map(),
        chats: new Map(),
        faults: [],
        kinds: [],
        methods: [],
        journal: [],
        sounded: new Set(),
    };
}

/** Call back on a kind of change: reset, people, chats, message, edit, gone, answer, action, notification, faults, journal … */
export function on(kind, listener) {
    listeners.set(kind, [...(listeners.get(kind) ?? []), listener]);
}

function tell(kind, detail = {}) {
    for (const listener of listeners.get(kind) ?? []) listener(detail);
}

/** All anew, from `GET /sim/page`. */
export function load(state) {
    Object.assign(world, empty());
    Object.assign(world, {
        id: state.world,
        last: state.last,
        bot: state.bot,
        profile: state.profile,
        kie: state.kie,
        faults: state.faults,
        kinds: state.kinds_of_faults,
        methods: state.methods,
    });
    for (const person of state.people) world.people.set(person.id, person);
    for (const chat of state.chats) world.chats.set(chat.id, { ...chat, messages: new Map(chat.messages.map(keyed)) });
    for (const [person, chat, message] of state.sounded) world.sounded.add(`${person}/${chat}/${message}`);
    for (const event of state.journal) note(event);
    tell("reset");
}

const keyed = (view) => [view.message.message_id, flat(view)];

/** A view of a message as one object: the Bot API's fields, and what only the page is told. */
const flat = ({ message, keyboard, paid, reactions, hidden_from: hidden }) => ({
    ...message,
    keyboard,
    paid,
    reactions,
    hidden_from: hidden ?? [],
});

/** One event of the stream. An event that was seen already changes nothing. */
export function apply(event) {
    if (event.number <= world.last) return;
    world.last = event.number;
    APPLIED[event.kind]?.(event);
}

const APPLIED = {
    person({ person, stars, deactivated }) {
        const known = world.people.get(person.id) ?? { stars };
        world.people.set(person.id, { ...known, ...person, deactivated });
        if (!world.chats.has(person.id)) {
            world.chats.set(person.id, { id: person.id, type: "private", members: [person.id], messages: new Map() });
        }
        tell("people", { person: person.id });
    },
    chat({ chat, members, bot_status }) {
        const known = world.chats.get(chat.id) ?? { messages: new Map() };
        world.chats.set(chat.id, {
            ...known,
            ...chat,
            members,
            bot_status: bot_status ?? known.bot_status ?? "member",
        });
        tell("chats", { chat: chat.id });
    },
    message(view) {
        const chat = world.chats.get(view.chat);
        if (!chat) return;
        const message = flat(view);
        chat.messages.set(message.message_id, message);
        tell("message", { chat: view.chat, message });
        if (message.migrate_to_chat_id) {
            chat.migrated_to = message.migrate_to_chat_id;
            tell("chats", { chat: view.chat });
        }
    },
    edit(view) {
        const known = world.chats.get(view.chat)?.messages.get(view.message.message_id);
        if (!known) return;
        const message = { ...flat(view), hidden_from: known.hidden_from };
        world.chats.get(view.chat).messages.set(message.message_id, message);
        tell("edit", { chat: view.chat, message });
    },
    delete({ chat, message_id: id }) {
        world.chats.get(chat)?.messages.delete(id);
        tell("gone", { chat, message: id });
    },
    hide({ chat, message_id: id, person }) {
        world.chats.get(chat)?.messages.get(id)?.hidden_from.push(person);
        tell("gone", { chat, message: id, person });
    },
    notification(event) {
        world.sounded.add(`${event.person}/${event.chat}/${event.message}`);
        const known = world.chats.get(event.chat)?.messages;
        if (known?.has(event.message)) known.set(event.message, { ...known.get(event.message) });
        tell("notification", event);
    },
    answer(event) {
        tell("answer", event);
    },
    action(event) {
        tell("action", event);
    },
    draft(event) {
        tell("draft", event);
    },
    reaction({ chat, message_id: id, person, reaction }) {
        const message = world.chats.get(chat)?.messages.get(id);
        if (!message) return;
        const { [person]: _, ...others } = message.reactions ?? {};
        const reactions = reaction.length ? { ...others, [person]: reaction[0].emoji } : others;
        world.chats.get(chat).messages.set(id, { ...message, reactions });
        tell("edit", { chat, message });
    },
    block({ person, blocked }) {
        Object.assign(world.people.get(person) ?? {}, { blocked });
        tell("people", { person });
    },
    stars({ person, stars }) {
        Object.assign(world.people.get(person) ?? {}, { stars });
        tell("people", { person });
    },
    payment({ person, stars }) {
        if (stars !== undefined) APPLIED.stars({ person, stars });
    },
    profile({ profile }) {
        world.profile = profile;
        tell("profile");
    },
    fault({ faults }) {
        world.faults = faults;
        tell("faults");
    },
    call: noted,
    update: noted,
    log: noted,
};

function noted(event) {
    tell("journal", note(event));
}

function note(event) {
    world.journal.push(event);
    if (world.journal.length > JOURNAL_MAX) world.journal.splice(0, world.journal.length - JOURNAL_MAX);
    return event;
}

// questions

/** The bot's commands for a person in a chat: the nearest scope that has some, in their language or in none. */
export function commandsFor(person, chat) {
    const spoken = world.people.get(person)?.language_code ?? "";
    const group = chat < 0;
    const scopes = [
        `chat_member/${chat}/${person}`,
        `chat/${chat}/`,
        group ? "all_group_chats//" : "all_private_chats//",
        "default//",
    ];
    const named = scopes.flatMap((scope) => [`${scope}/${spoken}`, `${scope}/`]);
    const found = named.find((name) => world.profile.commands[name]?.length);
    return found ? world.profile.commands[found] : [];
}

/** What the bot says about itself, in a person's language. */
export function profileOf(field, person) {
    const spoken = world.people.get(person)?.language_code ?? "";
    return world.profile[`${field}/${spoken}`] || world.profile[`${field}/`] || "";
}

export const botName = (person) => profileOf("name", person) || world.bot.first_name;

export const personOf = (id) => world.people.get(id);

export const nameOf = (user) => [user?.first_name, user?.last_name].filter(Boolean).join(" ");

/** The chats that a person has: the one with the bot, and the groups they are in. */
export function chatsOf(person) {
    const mine = [...world.chats.values()].filter((chat) => chat.id === person || chat.members?.includes(person));
    return mine
        .filter((chat) => !chat.migrated_to)
        .sort((one, other) => Number(other.id === person) - Number(one.id === person));
}

/** What a person sees in a chat, in order. */
export function messagesOf(person, chat) {
    const there = world.chats.get(chat)?.messages.values() ?? [];
    return [...there]
        .filter((message) => sees(person, message))
        .sort((one, other) => one.message_id - other.message_id);
}

export const sees = (person, message) => !message.hidden_from?.includes(person);

const KINDS = ["animation", "photo", "video", "audio", "voice", "document", "invoice", "text"];

export const kindOf = (message) => KINDS.find((kind) => kind in message) ?? "service";
