// The messages of the open chat. Only changed rows are redrawn; the view stays at the bottom unless scrolled up.
import { avatar, current, rowOf } from "./bubble.js";
import { planner } from "./frame_scheduler.js";
import { icon } from "./icons.js";
import { find, node } from "./dom.js";
import { looking, markRead, onSwitch, view } from "./view.js";
import { botName, kindOf, messagesOf, on, profileOf, state } from "./state.js";
import { day, midnight, getText } from "./texts.js";

const STEP = 150;
const TOGETHER = 300;
const NEAR = 90;

const scroller = find("#thread");
const down = find("#down");
const rows = node("div", { class: "rows" });
const drafts = new Map();
let drawn = new Map();
let limit = STEP;
let pinned = true;
let gliding = 0;
let top = 0;
let fresh = 0;
let place = "";
let handlers = { run() {}, open() {} };
const plan = planner(draw);

export function startThread(given) {
    handlers = { ...given, jump };
    scroller.append(rows);
    down.append(node("span", { class: "count" }), icon("down"));
    down.addEventListener("click", () => toEnd(true));
    scroller.addEventListener("scroll", scrolled, { passive: true });
    scroller.addEventListener("keydown", walk);
    new ResizeObserver(() => pinned && !gliding && toEnd(false)).observe(rows);
    new ResizeObserver(() => pinned && toEnd(false)).observe(scroller);
    document.addEventListener("visibilitychange", plan);
}

/** Redraw everything, for another chat or language. */
export function redraw() {
    drawn = new Map();
    rows.replaceChildren();
    limit = STEP;
    [pinned, fresh, place] = [true, 0, ""];
    draw();
}

onSwitch(() => {
    if (place !== `${view.person}/${view.chat}`) redraw();
});
on("reset", redraw);
on("profile", plan);
for (const kind of ["edit", "gone", "notification"]) on(kind, ({ chat }) => chat === view.chat && plan());
on("message", ({ chat, message }) => {
    drafts.delete(chat);
    if (chat !== view.chat) return;
    if (message.from?.id === view.person) pinned = true;
    else if (!pinned) fresh += 1;
    plan();
});
on("draft", ({ chat, text }) => {
    drafts.set(chat, text);
    if (chat === view.chat) plan();
});

function draw() {
    const first = place === "";
    place = `${view.person}/${view.chat}`;
    const all = messagesOf(view.person, view.chat);
    if (drafts.has(view.chat)) all.push(draftOf(drafts.get(view.chat)));
    const wanted = wantedRows(all);
    const before = scroller.scrollHeight;
    const kept = new Map();
    let previous = null;
    for (const one of wanted) {
        const old = drawn.get(one.key);
        const row = old && same(old, one) ? old.row : made(one, old, first);
        kept.set(one.key, { ...one, row });
        const next = previous ? previous.nextSibling : rows.firstChild;
        if (next !== row) rows.insertBefore(row, next);
        previous = row;
    }
    for (const [key, { row }] of drawn) if (!kept.has(key)) row.remove();
    drawn = kept;
    settle(first, before);
}

/** The rows to show, each with the parts it depends on. */
function wantedRows(all) {
    if (!all.length) return [{ key: "empty", parts: [view.chat, state.profile], make: emptyChat }];
    const shown = all.slice(-limit);
    const wanted = [];
    if (all.length > shown.length) wanted.push({ key: "earlier", parts: [], make: earlier });
    const groups = grouped(shown);
    groups.forEach((messages, index) => {
        const [one, before, after] = [messages[0], groups[index - 1]?.at(-1), groups[index + 1]?.[0]];
        if (!before || dayOf(before) !== dayOf(one))
            wanted.push({ key: `day ${dayOf(one)}`, parts: [], make: () => dayPill(one) });
        const flags = `${follows(before, one) ? "" : "first"} ${follows(messages.at(-1), after) ? "" : "last"}`;
        const quoted = one.reply_to_message && current(one.reply_to_message);
        wanted.push({ key: keyOf(one), parts: messages, quoted, flags, make: () => rowOf(messages, handlers) });
    });
    return wanted;
}

const keyOf = (message) =>
    message.media_group_id ? `album ${message.media_group_id}` : `message ${message.message_id}`;
const dayOf = (message) => midnight(new Date(message.date * 1000));

/** Group the messages of an album. */
function grouped(messages) {
    const groups = [];
    for (const message of messages) {
        const last = groups.at(-1);
        if (message.media_group_id && last?.[0].media_group_id === message.media_group_id) last.push(message);
        else groups.push([message]);
    }
    return groups;
}

/** Whether two messages belong to one block: same sender, same day, shortly after each other. */
function follows(before, after) {
    if (!before || !after || kindOf(before) === "service" || kindOf(after) === "service") return false;
    return before.from.id === after.from.id && after.date - before.date < TOGETHER && dayOf(before) === dayOf(after);
}

function same(old, one) {
    return (
        old.parts.length === one.parts.length &&
        old.parts.every((part, index) => part === one.parts[index]) &&
        old.quoted === one.quoted &&
        flag(old, one)
    );
}

/** Position within a block only changes classes, so the row is kept. */
function flag(old, one) {
    if (old.flags !== one.flags) mark(old.row, one.flags);
    return true;
}

function mark(row, flags) {
    if (flags === undefined || row.classList.contains("service")) return;
    row.classList.toggle("first", flags.includes("first"));
    row.classList.toggle("last", flags.includes("last"));
}

function made(one, old, first) {
    const row = one.make();
    row.dataset.key = one.key;
    if (one.parts[0]?.message_id) row.dataset.message = one.parts[0].message_id;
    mark(row, one.flags);
    if (!old && !first && one.flags !== undefined) row.classList.add("new");
    if (old) takeOver(old.row, row);
    return row;
}

/** Keep players and the focus when a row is replaced. */
function takeOver(old, row) {
    for (const media of row.querySelectorAll("[data-file]")) {
        const known = [...old.querySelectorAll("[data-file]")].find((one) => one.dataset.file === media.dataset.file);
        if (!known) continue;
        known.style.cssText = media.style.cssText;
        media.replaceWith(known);
    }
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    old.replaceWith(row);
    if (!focused) return;
    const again = [...row.querySelectorAll(".key")].find((key) => key.dataset.button === focused.dataset.button);
    (again ?? row).focus({ preventScroll: true });
}

function dayPill(message) {
    return node("div", { class: "pill day" }, day(message.date));
}

function earlier() {
    const more = () => {
        limit += STEP;
        const below = scroller.scrollHeight - scroller.scrollTop;
        draw();
        scroller.scrollTop = scroller.scrollHeight - below;
    };
    return node("button", { class: "pill earlier", type: "button", on: { click: more } }, getText("earlier"));
}

function emptyChat() {
    if (view.chat === null) return node("div", { class: "empty" }, node("p", {}, getText("no_chat")));
    if (view.chat < 0) return node("div", { class: "empty" }, node("p", {}, getText("empty_group")));
    const about = profileOf("description", view.person);
    const title = about ? getText("empty_title") : botName(view.person);
    return node(
        "div",
        { class: "empty" },
        avatar(state.bot),
        node("h3", {}, title),
        node("p", {}, about || getText("empty_bot")),
    );
}

function draftOf(text) {
    const chat = state.chats.get(view.chat);
    return {
        message_id: Number.MAX_SAFE_INTEGER,
        from: state.bot,
        chat,
        date: Date.now() / 1000,
        text,
        hidden_from: [],
    };
}

// scrolling

const left = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;

function settle(first, before) {
    if (pinned) toEnd(!first && scroller.scrollHeight - before < scroller.clientHeight);
    updateDownButton();
    if (looking(view.person, view.chat) && pinned) markRead(view.person, view.chat);
}

function toEnd(smooth) {
    pinned = true;
    fresh = 0;
    if (left() > 1) scroller.scrollTo({ top: scroller.scrollHeight, behavior: smooth ? "smooth" : "instant" });
    if (smooth) {
        clearTimeout(gliding);
        gliding = setTimeout(arrived, 500);
    }
    updateDownButton();
}

/** After smooth scrolling: go to the bottom if the content grew meanwhile. */
function arrived() {
    gliding = 0;
    if (pinned && left() > 1) toEnd(false);
}

function scrolled() {
    const up = scroller.scrollTop < top - 1;
    top = scroller.scrollTop;
    if (up) gliding = 0;
    if (!gliding) pinned = left() < NEAR;
    if (pinned) {
        fresh = 0;
        if (looking(view.person, view.chat)) markRead(view.person, view.chat);
    }
    updateDownButton();
}

function updateDownButton() {
    down.hidden = pinned;
    down.setAttribute("aria-label", fresh ? getText("new_messages", { n: fresh }) : getText("to_end"));
    find(".count", down).textContent = fresh ? getText("new_messages", { n: fresh }) : "";
}

/** Scroll to a quoted message. */
export function jump(id) {
    const row = [...drawn.values()].find((one) => one.parts.some((message) => message?.message_id === id))?.row;
    if (!row) return;
    row.scrollIntoView({ behavior: "smooth", block: "center" });
    row.classList.remove("lit");
    requestAnimationFrame(() => row.classList.add("lit"));
}

/** Arrow keys move between messages, Enter opens the menu. */
function walk(event) {
    const all = [...rows.querySelectorAll("article.row")];
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!["ARTICLE", "DIV"].includes(event.target.tagName) || event.target.matches(".media")) return;
    const now = all.indexOf(document.activeElement);
    if (step && all.length) {
        event.preventDefault();
        all[now < 0 ? all.length - 1 : Math.max(0, Math.min(all.length - 1, now + step))].focus();
    } else if ((event.key === "Enter" || event.key === "ContextMenu") && now >= 0) {
        event.preventDefault();
        find(".grip", all[now]).click();
    }
}
