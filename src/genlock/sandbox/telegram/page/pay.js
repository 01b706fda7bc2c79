// Paying an invoice with Stars.
import { changeUser, pay } from "./actions.js";
import { star } from "./icons.js";
import { dialog } from "./layers.js";
import { button, node } from "./dom.js";
import { failed, toast } from "./notices.js";
import { view } from "./view.js";
import { botName, userOf } from "./state.js";
import { number, getText } from "./texts.js";

const GIFT = 1000;

export function openPayment(message) {
    const { title, total_amount: amount } = message.invoice;
    const person = userOf(view.person);
    const words = getText("pay_text", { sum: getText("pay_sum", { n: amount }), title, bot: botName(person.id) });
    const text = node("p", { class: "sum" }, words);
    const balance = node("span", { class: "have" }, star(), getText("pay_have", { n: person.stars }));
    const action = person.stars < amount ? topUp(message) : payButton(message, text);
    const lack = person.stars < amount && node("p", { class: "trouble" }, getText("pay_lack"));
    const content = [star("coin"), node("h3", {}, getText("pay_title")), text, balance, lack, action];
    dialog(content.filter(Boolean), { extra: "paying", label: getText("pay_title") });
}

/** Label of the pay button. */
export const priceLabel = (amount) => [getText("pay"), star(), number(amount)];

function payButton(message, text) {
    const [person, words] = [view.person, priceLabel(message.invoice.total_amount)];
    const made = button("wide", run, {}, words);
    async function run() {
        made.disabled = true;
        made.replaceChildren(node("span", { class: "spinner" }), getText("pay_waiting"));
        try {
            const { ok, reason } = await pay(person, message.chat.id, message.message_id);
            if (!ok) throw new Error(reason);
            made.closest("dialog").close();
            toast(getText("pay_done"));
        } catch (error) {
            text.textContent = error.message;
            text.className = "trouble";
            made.disabled = false;
            made.replaceChildren(...words);
        }
    }
    return made;
}

/** A button that gives the user enough Stars; in the sandbox they cost nothing. */
function topUp(message) {
    const give = async () => {
        try {
            const { id, stars } = userOf(view.person);
            await changeUser(id, { stars: stars + Math.max(GIFT, message.invoice.total_amount) });
            made.closest("dialog").close();
        } catch (error) {
            failed(error);
        }
    };
    const made = button("wide", give, {}, star(), getText("top_up"), node("span", { class: "sr" }, getText("top_up_label")));
    return made;
}
