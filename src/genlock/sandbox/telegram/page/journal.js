// The live journal: Bot API calls, updates, and log events of the instances.
import { planner } from "./frame_scheduler.js";
import { icon, roundButton } from "./icons.js";
import { button, find, hue, node } from "./dom.js";
import { described, onRedescribe } from "./journal_entries.js";
import { on, state } from "./state.js";
import { getText } from "./texts.js";

const SHOWN = 400;
const NEAR = 60;
const KINDS = ["call", "update", "log"];
const PICTURES = { call: "call", update: "update", log: "event" };

const filters = { kinds: new Set(KINDS), text: "", job: null, paused: false, from: 0 };
let held = 0;
let list = null;
let stuck = true;
let top = 0;

export function drawJournal(body) {
    list = node("div", { class: "journal", role: "log", "aria-label": getText("tab_journal"), tabindex: "0" });
    const waiting = button("paused", () => pause(false), { hidden: true });
    body.replaceChildren(searchBar(), kindButtons(), waiting, list);
    list.addEventListener("scroll", scrolled, { passive: true });
    new ResizeObserver(stick).observe(list);
    [held, stuck, top] = [0, true, 0];
    fill();
}

function fill() {
    const offset = list.scrollTop;
    const rows = state.journal
        .filter((event) => event.number > filters.from)
        .map(described)
        .filter(fits)
        .sort((one, other) => one.at - other.at)
        .slice(-SHOWN);
    list.replaceChildren(...rows.map(rowOf));
    if (!rows.length) list.append(node("div", { class: "hint" }, getText("journal_empty")));
    list.scrollTop = offset;
    stick();
}

/** Only scrolling up stops following the newest line: layout changes also cause scroll events, with a delay. */
function scrolled() {
    const near = list.scrollHeight - list.scrollTop - list.clientHeight < NEAR;
    if (near) stuck = true;
    else if (list.scrollTop < top - 1) stuck = false;
    top = list.scrollTop;
}

/** Follow the newest line until the user scrolls up. */
function stick() {
    if (stuck) list.scrollTop = list.scrollHeight;
}

const planFill = planner(() => list?.isConnected && !filters.paused && fill());
onRedescribe(planFill);

on("journal", (event) => {
    const one = described(event);
    if (!list?.isConnected || !fits(one)) return;
    if (filters.paused) {
        held += 1;
        showPaused();
        return;
    }
    find(".hint", list)?.remove();
    const row = rowOf(one);
    row.classList.add("fresh");
    later(one.at).before(row);
    while (list.childElementCount > SHOWN) list.firstElementChild.remove();
    stick();
});

/** Where to insert a line with this time: lines of other processes arrive a little late. */
function later(at) {
    let place = null;
    for (let row = list.lastElementChild; row && Number(row.dataset.at) > at; row = row.previousElementSibling)
        place = row;
    return place ?? { before: (row) => list.append(row) };
}

// filters

function searchBar() {
    const field = node("input", {
        type: "search",
        placeholder: getText("filter"),
        "aria-label": getText("filter"),
        value: filters.text,
    });
    field.addEventListener("input", () => {
        filters.text = field.value;
        fill();
    });
    const pressed = { "aria-pressed": String(filters.paused) };
    const stop = roundButton(
        filters.paused ? "playing" : "pause",
        getText("hold"),
        () => pause(!filters.paused),
        "pause",
        pressed,
    );
    const wipe = () => {
        filters.from = state.last;
        fill();
    };
    const clear = roundButton("eraser", getText("wipe"), wipe);
    return node("div", { class: "sieve" }, field, stop, clear);
}

function kindButtons() {
    const toggle = (kind) => {
        if (!filters.kinds.delete(kind)) filters.kinds.add(kind);
        redrawKinds();
    };
    const marks = (kind) => ({ data: { kind }, "aria-pressed": String(filters.kinds.has(kind)) });
    const kinds = KINDS.map((kind) => button("", () => toggle(kind), marks(kind), getText(`kinds_${kind}`)));
    const look = { style: { "--hue": hue(filters.job) }, "aria-label": getText("all_jobs"), title: getText("all_jobs") };
    const job = filters.job && button("job", () => onlyJob(null), look, short(filters.job), " ×");
    return node("div", { class: "kinds" }, kinds, job);
}

function redrawKinds() {
    find("#panel .kinds").replaceWith(kindButtons());
    fill();
}

function onlyJob(job) {
    filters.job = job;
    redrawKinds();
}

function pause(yes) {
    filters.paused = yes;
    held = 0;
    const stop = find("#panel .sieve .pause");
    stop.setAttribute("aria-pressed", String(yes));
    stop.replaceChildren(icon(yes ? "playing" : "pause"));
    showPaused();
    if (!yes) fill();
}

function showPaused() {
    const waiting = find("#panel .paused");
    waiting.hidden = !filters.paused;
    waiting.textContent = getText("held", { n: held });
}

function fits(one) {
    if (!filters.kinds.has(one.kind) || (filters.job && one.job !== filters.job)) return false;
    const text = filters.text.trim().toLowerCase();
    return !text || `${one.name} ${one.facts} ${one.end?.text ?? ""} ${one.job ?? ""}`.toLowerCase().includes(text);
}

// one line

const short = (job) => (job.length > 10 ? `…${job.slice(-8)}` : job);

function rowOf(one) {
    const time = new Date(one.at * 1000);
    const stamp = [time.getHours(), time.getMinutes(), time.getSeconds()]
        .map((part) => String(part).padStart(2, "0"))
        .join(":");
    const choose = (event) => {
        event.stopPropagation();
        onlyJob(one.job);
    };
    const tag = one.job && node("span", { class: "jobtag", title: one.job, on: { click: choose } }, short(one.job));
    const end = node(
        "span",
        { class: "marks" },
        tag,
        one.end && node("span", { class: `end ${one.end.look}` }, one.end.text),
    );
    const name = node("span", { class: "name" }, icon(PICTURES[one.kind]), one.name);
    const facts = node("span", { class: "facts" }, one.facts);
    const unfold = () => toggleDetails(made, one.details);
    const head = button("", unfold, { "aria-expanded": "false" }, node("time", {}, stamp), name, end, facts);
    const marks = one.job
        ? { data: { at: one.at, job: one.job }, style: { "--hue": hue(one.job) } }
        : { data: { at: one.at } };
    const made = node("div", { class: `note ${one.kind === "log" ? "event" : one.kind} ${one.look}`, ...marks }, head);
    return made;
}

function toggleDetails(note, details) {
    const open = find(".details", note);
    note.firstChild.setAttribute("aria-expanded", String(!open));
    if (open) return open.remove();
    note.append(node("div", { class: "details" }, node("pre", {}, JSON.stringify(details, null, 2))));
    return note.scrollIntoView({ block: "nearest" });
}
