// Switches for the faults of the Telegram simulator.
import { clearFault, switchFault } from "./actions.js";
import { button, node } from "./dom.js";
import { failed } from "./notices.js";
import { on, state } from "./state.js";
import { getText } from "./texts.js";

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
const options = { method: "", times: "1", seconds: "3" };

export function drawFaults(body) {
    body.replaceChildren(
        optionsForm(),
        node(
            "ul",
            { class: "faults" },
            state.kinds.map((kind) => faultRow(kind)),
        ),
    );
}

function optionsForm() {
    const methods = [...FIRST, ...state.methods.filter((name) => !FIRST.includes(name))];
    const method = node(
        "select",
        { on: { change: () => (options.method = method.value) } },
        node("option", { value: "" }, getText("all_methods")),
        methods.map((name) => node("option", { value: name }, name)),
    );
    method.value = options.method;
    const seconds = node("input", {
        type: "number",
        min: "0",
        max: "600",
        step: "0.5",
        value: options.seconds,
        on: { change: () => (options.seconds = seconds.value) },
    });
    const marks = (value) => ({ data: { times: value }, "aria-pressed": String(options.times === value) });
    const often = Object.entries({ 1: "once", all: "always" }).map(([value, word]) =>
        button("", () => choose(value), marks(value), getText(word)),
    );
    const choose = (value) => {
        options.times = value;
        for (const one of often) one.setAttribute("aria-pressed", String(one.dataset.times === value));
    };
    return node(
        "div",
        { class: "aim" },
        node("label", {}, getText("for_method"), method),
        node("label", {}, getText("seconds"), seconds),
        node(
            "div",
            { class: "wide-cell" },
            node("span", {}, getText("how_often")),
            node("div", { class: "pick", role: "group", "aria-label": getText("how_often") }, often),
        ),
    );
}

/** One fault with its switch. */
function faultRow(kind) {
    const name = getText(`fault_${kind}`);
    const marks = { role: "switch", data: { telegram: kind }, "aria-checked": String(isOn(kind)), "aria-label": name };
    const about = node("span", { class: "about" }, node("b", {}, name), node("small", {}, getText(`about_${kind}`)));
    return node(
        "li",
        { class: "fault" },
        about,
        button("switch", () => turn(kind).catch(failed), marks),
    );
}

const isOn = (kind) => state.faults.some((one) => one.fault === kind);

async function turn(kind) {
    const mine = state.faults.filter((one) => one.fault === kind);
    if (mine.length) {
        for (const one of mine) await clearFault(one.id);
        return;
    }
    const times = options.times === "all" ? null : Number(options.times);
    await switchFault({ fault: kind, method: options.method || null, times, seconds: Number(options.seconds) || 0 });
}

on("faults", () => {
    for (const one of document.querySelectorAll("#panel .switch[data-telegram]")) {
        one.setAttribute("aria-checked", String(isOn(one.dataset.telegram)));
    }
});
