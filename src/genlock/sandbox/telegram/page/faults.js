// Switches for what goes wrong at Telegram.
import { clearFault, switchFault } from "./hands.js";
import { button, node } from "./nodes.js";
import { failed } from "./notices.js";
import { on, world } from "./world.js";
import { say } from "./words.js";

const FIRST = [
    "sendMessage",
    "editMessageText",
    "editMessageMedia",
    "editMessageCaption",
    "sendPhoto",
    "sendVideo",
    "sendMediaGroup",
    "answerCallbackQuery",
    "deleteMessage",
    "getUpdates",
];
const aim = { method: "", times: "1", seconds: "3" };

export function drawFaults(body) {
    body.replaceChildren(
        aiming(),
        node(
            "ul",
            { class: "faults" },
            world.kinds.map((kind) => line(kind)),
        ),
    );
}

function aiming() {
    const methods = [...FIRST, ...world.methods.filter((name) => !FIRST.includes(name))];
    const method = node(
        "select",
        { on: { change: () => (aim.method = method.value) } },
        node("option", { value: "" }, say("all_methods")),
        methods.map((name) => node("option", { value: name }, name)),
    );
    method.value = aim.method;
    const seconds = node("input", {
        type: "number",
        min: "0",
        max: "600",
        step: "0.5",
        value: aim.seconds,
        on: { change: () => (aim.seconds = seconds.value) },
    });
    const marks = (value) => ({ data: { times: value }, "aria-pressed": String(aim.times === value) });
    const often = Object.entries({ 1: "once", all: "always" }).map(([value, word]) =>
        button("", () => choose(value), marks(value), say(word)),
    );
    const choose = (value) => {
        aim.times = value;
        for (const one of often) one.setAttribute("aria-pressed", String(one.dataset.times === value));
    };
    return node(
        "div",
        { class: "aim" },
        node("label", {}, say("for_method"), method),
        node("label", {}, say("seconds"), seconds),
        node(
            "div",
            { class: "wide-cell" },
            node("span", {}, say("how_often")),
            node("div", { class: "pick", role: "group", "aria-label": say("how_often") }, often),
        ),
    );
}

/** One fault with its switch. */
function line(kind) {
    const name = say(`fault_${kind}`);
    const marks = { role: "switch", data: { telegram: kind }, "aria-checked": String(isOn(kind)), "aria-label": name };
    const about = node("span", { class: "about" }, node("b", {}, name), node("small", {}, say(`about_${kind}`)));
    return node(
        "li",
        { class: "fault" },
        about,
        button("switch", () => turn(kind).catch(failed), marks),
    );
}

const isOn = (kind) => world.faults.some((one) => one.fault === kind);

async function turn(kind) {
    const mine = world.faults.filter((one) => one.fault === kind);
    if (mine.length) {
        for (const one of mine) await clearFault(one.id);
        return;
    }
    const times = aim.times === "all" ? null : Number(aim.times);
    await switchFault({ fault: kind, method: aim.method || null, times, seconds: Number(aim.seconds) || 0 });
}

on("faults", () => {
    for (const one of document.querySelectorAll("#panel .switch[data-telegram]")) {
        one.setAttribute("aria-checked", String(isOn(one.dataset.telegram)));
    }
});
