// What the page knows of the simulated Telegram, kept current event by event.

export const world = empty();
const listeners = new Map();
const JOURNAL_MAX = 1000;

function empty() {
  return {
    id: null,
    last: 0,
    bot: { first_name: "", username: "" },
    commands: [],
    description: "",
    kie: false,
    people: new Map(),
    chats: new Map(),
    faults: [],
    journal: [],
    sounded: new Set(),
    waiting: new Map(),
  };
}

/** Call back on a kind of change: reset, people, chats, message, edit, gone, answer, action, notification, faults, journal … */
export function on(kind, listener) {
  listeners.set(kind, [...(listeners.get(kind) ?? []), listener]);
}

function tell(kind, detail = {}) {
  for (const listener of listeners.get(kind) ?? []) listener(detail);
}

/** All anew, from `GET /sim/state`. */
export function load(state) {
  Object.assign(world, empty(), { waiting: world.waiting });
  Object.assign(world, {
    id: state.world,
    last: state.last,
    bot: state.bot,
    commands: state.commands,
    description: state.description,
    kie: state.kie,
    faults: state.faults,
  });
  for (const person of state.people) world.people.set(person.id, person);
  for (const chat of state.chats) world.chats.set(chat.id, { ...chat, messages: new Map(chat.messages.map(keyed)) });
  for (const [chat, message] of state.sounded) world.sounded.add(`${chat}/${message}`);
  for (const event of state.journal) note(event);
  tell("reset");
}

const keyed = (message) => [message.message_id, message];

/** One event of the stream. An event that was seen already changes nothing. */
export function apply(event) {
  if (event.number <= world.last) return;
  world.last = event.number;
  APPLIED[event.kind]?.(event);
}

const APPLIED = {
  person({ person }) {
    world.people.set(person.id, { ...world.people.get(person.id), ...person });
    tell("people", { person: person.id });
  },
  chat({ chat }) {
    const known = world.chats.get(chat.id);
    world.chats.set(chat.id, { ...chat, messages: known?.messages ?? new Map() });
    tell("chats", { chat: chat.id });
  },
  message({ chat, message, at }) {
    world.chats.get(chat)?.messages.set(message.message_id, message);
    tell("message", { chat, message, at });
  },
  edit({ chat, message }) {
    const known = world.chats.get(chat)?.messages;
    if (!known?.has(message.message_id)) return;
    known.set(message.message_id, message);
    tell("edit", { chat, message });
  },
  delete({ chat, message_id: id }) {
    world.chats.get(chat)?.messages.delete(id);
    tell("gone", { chat, message: id });
  },
  hide({ chat, message_id: id, person }) {
    const message = world.chats.get(chat)?.messages.get(id);
    if (message) (message.hidden_from ??= []).push(person);
    tell("gone", { chat, message: id, person });
  },
  notification(event) {
    world.sounded.add(`${event.chat}/${event.message}`);
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
  reaction({ chat, message_id: id, reaction }) {
    const message = world.chats.get(chat)?.messages.get(id);
    if (!message) return;
    message.reaction = reaction;
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
  payment(event) {
    tell("payment", event);
  },
  profile({ commands, bot, description }) {
    Object.assign(world, { commands: commands ?? world.commands, bot: bot ?? world.bot });
    world.description = description ?? world.description;
    tell("profile");
  },
  faults({ faults }) {
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

export const personOf = (id) => world.people.get(id);

export const nameOf = (user) => [user?.first_name, user?.last_name].filter(Boolean).join(" ");

/** The chats that a person has: the one with the bot, and the groups they are in. */
export function chatsOf(person) {
  const mine = [...world.chats.values()].filter((chat) => chat.id === person || chat.members?.includes(person));
  return mine.filter((chat) => !chat.migrated_to).sort((one, other) => Number(other.id === person) - Number(one.id === person));
}

/** What a person sees in a chat, in order. */
export function messagesOf(person, chat) {
  const there = world.chats.get(chat)?.messages.values() ?? [];
  return [...there].filter((message) => sees(person, message)).sort((one, other) => one.message_id - other.message_id);
}

export const sees = (person, message) => !message.hidden_from?.includes(person);

const KINDS = ["animation", "photo", "video", "audio", "voice", "document", "invoice", "text"];

export const kindOf = (message) => KINDS.find((kind) => kind in message) ?? "service";
