// Locations, contacts, dice, polls and paid media, as lines of text.
import { node } from "./dom.js";
import { getText } from "./texts.js";

const LINES = {
    location: ({ latitude, longitude }) => [`${latitude}, ${longitude}`],
    venue: ({ title, address }) => [title, address],
    contact: ({ first_name: first, last_name: last, phone_number: phone }) => [
        [first, last].filter(Boolean).join(" "),
        phone,
    ],
    dice: ({ emoji, value }) => [`${emoji} ${value}`],
    poll: ({ question, options }) => [question, ...options.map(({ text }) => `○ ${text}`)],
    paid_media: ({ star_count: stars }) => [getText("pay_sum", { n: stars })],
};

export const isPlain = (kind) => kind in LINES;

/** The lines that describe the message, the first of them with its kind. */
export function plainOf(kind, message) {
    const [first, ...more] = LINES[kind](message[kind]);
    const lines = [`${getText(`kind_${kind}`)}: ${first}`, ...more];
    return node(
        "div",
        { class: "text" },
        lines.map((line) => node("div", {}, line)),
    );
}
