// Paying an invoice with Stars.
import { changePerson, pay } from "./hands.js";
import { star } from "./icons.js";
import { dialog } from "./layers.js";
import { button, node } from "./nodes.js";
import { failed, toast } from "./notices.js";
import { view } from "./view.js";
import { botName, personOf } from "./world.js";
import { number, say } from "./words.js";

const GIFT = 1000;

export function openPayment(message) {
    const { title, total_amount: amount } = message.invoice;
    const person = personOf(view.person);
    const words = say("pay_text", { sum: say("pay_sum", { n: amount }), title, bot: botName(person.id) });
    const text = node("p", { class: "sum" }, words);
    const balance = node("span", { class: "have" }, star(), say("pay_have", { n: person.stars }));
    const action = person.stars < amount ? topUp(message) : payButton(message, text);
    const lack = person.stars < amount && node("p", { class: "trouble" }, say("pay_lack"));
    const content = [star("coin"), node("h3", {}, say("pay_title")), text, balance, lack, action];
    dialog(content.filter(Boolean), { extra: "paying", label: say("pay_title") });
}

/** What the pay button says. */
export const priceWords = (amount) => [say("pay"), star(), number(amount)];

function payButton(message, text) {
    const [person, words] = [view.person, priceWords(message.invoice.total_amount)];
    const made = button("wide", run, {}, words);
    async function run() {
        made.disabled = true;
        made.replaceChildren(node("span", { class: "spinner" }), say("pay_waiting"));
        try {
            const { ok, reason } = await pay(person, message.chat.id, message.message_id);
            if (!ok) throw new Error(reason);
            made.closest("dialog").close();
            toast(say("pay_done"));
        } catch (error) {
            text.textContent = error.message;
            text.className = "trouble";
            made.disabled = false;
            made.replaceChildren(...words);
        }
    }
    return made;
}

/** In this world Stars cost nothing. */
function topUp(message) {
    const give = async () => {
        try {
            const { id, stars } = personOf(view.person);
            await changePerson(id, { stars: stars + Math.max(GIFT, message.invoice.total_amount) });
            made.closest("dialog").close();
        } catch (error) {
            failed(error);
        }
    };
    const made = button("wide", give, {}, star(), say("top_up"), node("span", { class: "sr" }, say("top_up_label")));
    return made;
}
