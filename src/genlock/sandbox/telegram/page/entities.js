// Text with its entities as DOM nodes. Offsets are in UTF-16 units, as in JavaScript strings.
import { followed } from "./links.js";
import { copy, node } from "./dom.js";
import { getText } from "./texts.js";
import { toast } from "./notices.js";

/** Block elements: the line breaks around them are not shown. */
const BLOCKS = new Set(["pre", "blockquote", "expandable_blockquote"]);
const SAFE = /^(https?:|tg:|mailto:|tel:)/iu;

/** Nodes for a text. `run` is called with a bot command that the user taps. */
export function formatted(text, entities = [], run = () => {}) {
    const sorted = [...entities].sort((one, other) => one.offset - other.offset || other.length - one.length);
    return inside(text, 0, text.length, sorted, run);
}

function inside(text, start, end, entities, run) {
    const nodes = [];
    let place = start;
    for (let index = 0; index < entities.length; index += 1) {
        const entity = entities[index];
        const stop = Math.min(entity.offset + entity.length, end);
        if (entity.offset < place || entity.offset >= end) continue;
        const block = BLOCKS.has(entity.type);
        if (entity.offset > place)
            nodes.push(
                text.slice(place, block && text[entity.offset - 1] === "\n" ? entity.offset - 1 : entity.offset),
            );
        const nested = entities
            .slice(index + 1)
            .filter((one) => one.offset >= entity.offset && one.offset + one.length <= stop);
        nodes.push(
            wrapped(entity, text.slice(entity.offset, stop), inside(text, entity.offset, stop, nested, run), run),
        );
        place = block && text[stop] === "\n" ? stop + 1 : stop;
    }
    if (place < end) nodes.push(text.slice(place, end));
    return nodes;
}

const TAGS = { bold: "b", italic: "i", underline: "u", strikethrough: "s" };

function wrapped(entity, text, children, run) {
    if (entity.type in TAGS) return node(TAGS[entity.type], {}, children);
    return SPECIAL[entity.type]?.(entity, text, children, run) ?? node("span", {}, children);
}

const SPECIAL = {
    code: (_, text, children) => node("code", { on: { click: () => copied(text) } }, children),
    pre: (entity, text, children) =>
        node(
            "pre",
            { data: entity.language ? { language: entity.language } : {}, on: { click: () => copied(text) } },
            children,
        ),
    blockquote: (_, text, children) => node("blockquote", {}, children),
    expandable_blockquote: (_, text, children) =>
        node(
            "blockquote",
            { class: "more", on: { click: (event) => event.currentTarget.classList.toggle("more") } },
            children,
        ),
    spoiler: (_, text, children) => spoiler(children),
    text_link: (entity, text, children) => link(entity.url, children),
    url: (_, text, children) => link(/^[a-z]+:/iu.test(text) ? text : `https://${text}`, children),
    email: (_, text, children) => link(`mailto:${text}`, children),
    phone_number: (_, text, children) => link(`tel:${text}`, children),
    bot_command: (_, text, children, run) => tapped(() => run(text), children),
    text_mention: (_, text, children) => node("b", {}, children),
};

function spoiler(children) {
    const made = node("span", { class: "spoiler", role: "button", tabindex: "0" }, children);
    const reveal = () => made.classList.add("shown");
    made.addEventListener("click", reveal);
    made.addEventListener("keydown", (event) => event.key === "Enter" && reveal());
    return made;
}

function link(url, children) {
    if (!SAFE.test(url)) return node("span", {}, children);
    const open = (event) => followed(url) && event.preventDefault();
    return node("a", { href: url, target: "_blank", rel: "noopener noreferrer", on: { click: open } }, children);
}

function tapped(run, children) {
    const go = (event) => {
        event.preventDefault();
        run();
    };
    return node("a", { href: "#", on: { click: go } }, children);
}

async function copied(text) {
    if (!getSelection().isCollapsed) return;
    await copy(text);
    toast(getText("copied"));
}

/** One to three emoji and nothing else are shown large. */
export const onlyEmoji = (text) =>
    /^(?:\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|\u200d\p{Extended_Pictographic}|\ufe0f)*){1,3}$/u.test(
        text.trim(),
    );
