// A message or an album as one row of the thread.
import { keysOf } from "./buttons.js";
import { formatted, onlyEmoji } from "./entities.js";
import { icon, star } from "./icons.js";
import { albumOf, isVisual, mediaOf, thumbnailOf } from "./media.js";
import { isPlain, plainOf } from "./plain.js";
import { hue, initials, node } from "./dom.js";
import { view } from "./view.js";
import { botName, kindOf, nameOf, state } from "./state.js";
import { clock, number, getText } from "./texts.js";

/** The row for one message, or for all messages of an album. */
export function rowOf(messages, { run, open, jump }) {
    const first = messages[0];
    if (kindOf(first) === "service") return service(first);
    const bubble = bubbleOf(messages, { run, jump });
    bubble.append(
        node(
            "button",
            {
                class: "grip",
                type: "button",
                tabindex: "-1",
                "aria-label": getText("more"),
                on: { click: (event) => open(event.currentTarget, first) },
            },
            icon("down"),
        ),
    );
    const body = node("div", { class: "body" }, bubble, keysOf(messages.at(-1)));
    const group = first.chat.type !== "private";
    const mine = first.from.id === view.person;
    const face = group && !mine ? node("div", { class: "face" }, avatar(first.from)) : null;
    const made = node(
        "article",
        { class: `row ${mine ? "mine" : ""}`, tabindex: "-1", "aria-label": labelOf(first, mine) },
        face,
        body,
    );
    made.addEventListener("contextmenu", (event) => {
        if (event.target.closest("a, video, .keys") || !getSelection().isCollapsed) return;
        event.preventDefault();
        open([event.clientX, event.clientY], first);
    });
    return made;
}

function labelOf(message, mine) {
    const who = mine ? getText("you") : nameOf(message.from);
    return `${who}, ${clock(message.date)}: ${previewOf(message)}`;
}

function bubbleOf(messages, { run, jump }) {
    const first = messages[0];
    const kind = kindOf(first);
    const group = first.chat.type !== "private";
    const parts = [];
    if (group && first.from.id !== view.person) parts.push(senderOf(first.from));
    if (first.forward_origin)
        parts.push(
            node("div", { class: "forwarded" }, getText("forwarded", { name: nameOf(first.forward_origin.sender_user) })),
        );
    if (first.via_bot)
        parts.push(node("div", { class: "forwarded" }, getText("via", { name: first.via_bot.username })));
    if (first.reply_to_message) parts.push(quoteOf(first.reply_to_message, jump));
    const named =
        parts.length === 1 &&
        group &&
        first.from.id !== view.person &&
        !first.reply_to_message &&
        !first.forward_origin;
    const topped = parts.length > 0 && !named;
    const withText = messages.find((message) => message.caption ?? message.text);
    const media = messages.length > 1 ? albumOf(messages) : [mediaOf(first)];
    const above = withText?.show_caption_above_media;
    if (kind === "invoice") parts.push(invoiceOf(first.invoice));
    else if (isPlain(kind)) parts.push(plainOf(kind, first));
    else if (kind !== "text" && !above) parts.push(...media);
    const last = messages.at(-1);
    const bare = isVisual(first) && !withText;
    if (bare && kind === "sticker") media[0].append(metaOf(last, "over"));
    else if (bare) parts.push(metaOf(last, "over"));
    else if (!withText) parts.push(metaOf(last, "beside"));
    else parts.push(textOf(withText, last, run));
    if (above) parts.push(...media);
    if (Object.keys(last.reactions ?? {}).length) parts.push(reactionsOf(last));
    const look = [
        isVisual(first) ? "visual" : "",
        bare ? "media-only" : "captioned",
        kind === "sticker" ? "sticker-only" : "",
        topped ? "topped" : "",
        named ? "named" : "",
    ].join(" ");
    return node("div", { class: `bubble ${look}` }, parts.filter(Boolean));
}

function senderOf(user) {
    return node("div", { class: "sender", style: { "--hue": hue(user.id) } }, nameOf(user));
}

export function avatar(user) {
    const bot = user.is_bot;
    return node(
        "span",
        { class: bot ? "avatar bot" : "avatar", style: { "--hue": hue(user.id) }, "aria-hidden": "true" },
        bot ? icon("bot") : initials(nameOf(user)),
    );
}

/** The quoted message as it is now: it may have changed since the reply was written. */
export const current = (message) => state.chats.get(message.chat.id)?.messages.get(message.message_id) ?? message;

export function quoteOf(quoted, jump, title = null) {
    const message = current(quoted);
    const who = message.from.id === view.person ? getText("you") : nameOf(message.from);
    return node(
        "button",
        { class: "quote", type: "button", on: { click: () => jump(message.message_id) } },
        thumbnailOf(message),
        node("span", { class: "lines" }, node("b", {}, title ?? who), node("span", {}, previewOf(message))),
    );
}

function textOf(withText, last, run) {
    const text = withText?.text ?? withText?.caption ?? "";
    const entities = withText?.entities ?? withText?.caption_entities ?? [];
    const look = onlyEmoji(text) && !entities.length ? "text big" : "text";
    return node("div", { class: look, dir: "auto" }, formatted(text, entities, run), metaOf(last));
}

function metaOf(message, extra = "") {
    const mine = message.from.id === view.person;
    const sounded = state.sounded.has(`${view.person}/${message.chat.id}/${message.message_id}`);
    const bell =
        sounded && !mine && !message.edit_date
            ? node(
                  "span",
                  { title: getText("made_sound"), "aria-label": getText("made_sound"), role: "img" },
                  icon("bell", "bell"),
              )
            : null;
    const time = node("time", { datetime: new Date(message.date * 1000).toISOString() }, clock(message.date));
    const edited = message.edit_date ? node("span", { class: "edited" }, getText("edited")) : null;
    return node("span", { class: `meta ${extra}` }, bell, edited, time, mine ? icon("checks") : null);
}

/** Each emoji once, with its count. */
function reactionsOf(message) {
    const counts = new Map();
    for (const emoji of Object.values(message.reactions)) counts.set(emoji, (counts.get(emoji) ?? 0) + 1);
    const mine = message.reactions[view.person];
    return node(
        "div",
        { class: "reactions" },
        [...counts].map(([emoji, count]) =>
            node("span", { class: emoji === mine ? "mine" : "" }, count > 1 ? `${emoji} ${count}` : emoji),
        ),
    );
}

function invoiceOf(invoice) {
    const price = node("span", { class: "price" }, star(), number(invoice.total_amount));
    return node("div", { class: "invoice" }, node("h3", {}, invoice.title), node("p", {}, invoice.description), price);
}

function service(message) {
    return node("div", { class: "row pill service" }, serviceText(message));
}

function serviceText(message) {
    const bot = botName(view.person);
    const sum = (payment) => getText("pay_sum", { n: payment.total_amount });
    if (message.successful_payment) return getText("paid", { sum: sum(message.successful_payment), bot });
    if (message.refunded_payment) return getText("refunded", { sum: sum(message.refunded_payment), bot });
    if (message.new_chat_members) return getText("joined", { name: message.new_chat_members.map(nameOf).join(", ") });
    if (message.left_chat_member) return getText("left_group", { name: nameOf(message.left_chat_member) });
    if (message.migrate_to_chat_id || message.migrate_from_chat_id) return getText("migrated");
    if (message.forum_topic_created) return message.forum_topic_created.name;
    return getText("service");
}

/** A short preview of a message, for lists and quotes. */
export function previewOf(message) {
    if (!message) return "";
    const kind = kindOf(message);
    if (kind === "service") return serviceText(message);
    if (kind === "text") return message.text.replace(/\s+/gu, " ");
    const what = kind === "document" ? (message.document.file_name ?? getText("kind_document")) : getText(`kind_${kind}`);
    if (kind === "sticker") return `${message.sticker.emoji ?? ""} ${what}`.trim();
    const more = kind === "invoice" ? message.invoice.title : message.caption;
    return more ? `${what}, ${more.replace(/\s+/gu, " ")}` : what;
}
