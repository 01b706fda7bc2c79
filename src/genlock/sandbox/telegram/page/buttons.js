// Inline buttons: pressing them, waiting for the bot's answer, and showing it.
import { press } from "./actions.js";
import { icon } from "./icons.js";
import { alert, ask } from "./layers.js";
import { followed } from "./links.js";
import { copy, node } from "./dom.js";
import { failed, toast } from "./notices.js";
import { openPayment, priceLabel } from "./pay.js";
import { view } from "./view.js";
import { on } from "./state.js";
import { getText } from "./texts.js";

/** How long Telegram shows that it waits for the answer. */
const ANSWER_TIMEOUT_MS = 15_000;
const waiting = new Map();
const answers = new Map();

/** The keyboard of a message, or null. */
export function keysOf(message) {
    const rows = rowsOf(message);
    if (!rows.length) return null;
    return node(
        "div",
        { class: "keys" },
        rows.map((row) =>
            node(
                "div",
                { class: "line" },
                row.map((button) => keyOf(button, message)),
            ),
        ),
    );
}

function rowsOf(message) {
    const rows = message.reply_markup?.inline_keyboard ?? [];
    const pays = rows.flat().some((button) => button.pay);
    return message.invoice && !pays ? [[{ text: getText("pay"), pay: true }], ...rows] : rows;
}

function keyOf(button, message) {
    const [kind, run] = whatItDoes(button, message);
    const made = node("button", {
        class: `key ${kind}`,
        type: "button",
        data: { message: message.message_id, button: button.callback_data ?? button.text },
        on: { click: () => run(made) },
    });
    if (button.pay) made.append(...(message.paid ? [getText("pay_done")] : priceLabel(message.invoice.total_amount)));
    else made.append(button.text);
    if (kind === "url") made.append(icon("link", "corner"));
    if (kind === "copy") made.append(icon("copy", "corner"));
    if (waiting.has(keyName(message, button))) made.classList.add("waiting");
    return made;
}

const keyName = (message, button) =>
    `${view.person}/${message.chat.id}/${message.message_id}/${button.callback_data ?? button.text}`;

function whatItDoes(button, message) {
    if (button.pay) return [message.paid ? "pay paid" : "pay", () => !message.paid && openPayment(message)];
    if (button.url) return ["url", () => openLink(button.url)];
    if (button.copy_text) return ["copy", () => copyText(button.copy_text.text)];
    return ["data", (made) => pressed(made, button, message)];
}

async function openLink(url) {
    if (followed(url)) return;
    const yes = await ask({ text: getText("open_link", { url }), choices: [{ text: getText("open"), value: true }] });
    if (yes && /^https?:/iu.test(url)) window.open(url, "_blank", "noopener,noreferrer");
}

async function copyText(text) {
    await copy(text);
    toast(getText("copied"));
}

async function pressed(made, button, message) {
    const name = keyName(message, button);
    made.classList.add("waiting");
    waiting.set(name, made);
    const end = () => {
        waiting.delete(name);
        for (const one of document.querySelectorAll(".key.waiting")) {
            if (one.dataset.message === made.dataset.message && one.dataset.button === made.dataset.button)
                one.classList.remove("waiting");
        }
    };
    const timer = setTimeout(end, ANSWER_TIMEOUT_MS);
    try {
        const reply = await press(view.person, message.chat.id, message.message_id, button.callback_data ?? button.text);
        if (reply.press) await new Promise((resolve) => waitForAnswer(reply.press, resolve, timer));
    } catch (error) {
        failed(error);
    }
    clearTimeout(timer);
    end();
}

/** The answer event may arrive before the press call returns. */
function waitForAnswer(id, resolve) {
    setTimeout(resolve, ANSWER_TIMEOUT_MS);
    if (answers.get(id) === "came") resolve();
    else answers.set(id, resolve);
}

on("answer", ({ person, press: id, text, alert: loud, url }) => {
    const resolve = answers.get(id);
    answers.set(id, "came");
    if (typeof resolve === "function") resolve();
    if (answers.size > 100) answers.delete(answers.keys().next().value);
    if (person !== view.person) return;
    if (url) followed(url);
    if (!text) return;
    if (loud) alert(text);
    else toast(text, { seconds: 3.5 });
});
