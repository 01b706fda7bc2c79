// Paying an invoice with Stars.
import { pay } from "./hands.js";
import { star } from "./icons.js";
import { dialog } from "./layers.js";
import { node } from "./nodes.js";
import { toast } from "./notices.js";
import { view } from "./view.js";
import { botName, personOf } from "./world.js";
import { number, say } from "./words.js";

export function openPayment(message) {
    const { title, total_amount: amount } = message.invoice;
    const [person, chat] = [view.person, message.chat.id];
    const have = personOf(person).stars;
    const words = say("pay_text", { sum: say("pay_sum", { n: amount }), title, bot: botName(person) });
    const text = node("p", { class: "sum" }, words);
    const button = node("button", { class: "wide", type: "button", disabled: have < amount }, ...buttonWords(amount));
    const balance = node("span", { class: "have" }, star(), say("pay_have", { n: have }));
    const content = [star("coin"), node("h3", {}, say("pay_title")), text, balance, button];
    if (have < amount) content.splice(4, 0, node("p", { class: "trouble" }, say("pay_lack")));
    const made = dialog(content, { extra: "paying", label: say("pay_title") });
    button.addEventListener("click", async () => {
        button.disabled = true;
        button.replaceChildren(node("span", { class: "spinner" }), say("pay_waiting"));
        try {
            const { ok, reason } = await pay(person, chat, message.message_id);
            if (!ok) throw new Error(reason);
            made.close();
            toast(say("pay_done"));
        } catch (error) {
            text.textContent = error.message;
            text.className = "trouble";
            button.disabled = false;
            button.replaceChildren(...buttonWords(amount));
        }
    });
}

const buttonWords = (amount) =>
    [
        ...say("pay_button", { n: "\u0000" })
            .split("\u0000")
            .flatMap((part, place) => (place ? [star(), number(amount), part] : [part])),
    ].filter(Boolean);
