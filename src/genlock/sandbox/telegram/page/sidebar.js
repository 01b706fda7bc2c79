// The people and the chats of the one whose eyes we use.
import { planner } from "./frames.js";
import { addGroup, addPerson, changePerson } from "./hands.js";
import { previewOf } from "./bubble.js";
import { chatAvatar, titleOf } from "./head.js";
import { icon, roundButton, star } from "./icons.js";
import { dialog } from "./layers.js";
import { button, find, hue, initials, node } from "./nodes.js";
import { failed } from "./notices.js";
import { openSettings } from "./appearance.js";
import { onRead, onSwitch, show, unread, unreadOf, view } from "./view.js";
import { chatsOf, kindOf, messagesOf, nameOf, on, personOf, world } from "./world.js";
import { LANGUAGES, NAMES, clock, language, number, say } from "./words.js";

export const planSidebar = planner(drawSidebar);

function drawSidebar() {
    const sidebar = find("#sidebar");
    const focused = sidebar.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const offset = find(".people", sidebar)?.scrollTop ?? 0;
    sidebar.replaceChildren(brand(), people(), chats(), myself());
    find(".people", sidebar).scrollTop = offset;
    if (focused) find(`[data-key="${CSS.escape(focused)}"]`, sidebar)?.focus();
    const waiting = [...world.people.keys()].reduce((sum, person) => sum + unreadOf(person), 0);
    document.title = `${waiting ? `(${waiting}) ` : ""}${say("title")} · genlock`;
}

function brand() {
    const logo = node("img", { src: "/page/icon.svg", alt: "" });
    const open = (event) => openSettings(event.currentTarget);
    const gear = roundButton("gear", say("settings"), open, "", { data: { key: "settings" } });
    return node("div", { class: "brand" }, logo, node("h1", {}, say("title")), gear);
}

function people() {
    const each = [...world.people.values()].map((person) => {
        const chosen = person.id === view.person;
        const face = node(
            "span",
            { class: "avatar", style: { "--hue": hue(person.id) }, "aria-hidden": "true" },
            initials(nameOf(person)),
        );
        const badge = node("span", { class: "badge" }, chosen ? "" : unreadOf(person.id) || "");
        const marks = { data: { key: `person ${person.id}` }, "aria-current": String(chosen) };
        return button(
            "someone",
            () => switchTo(person.id),
            marks,
            face,
            node("span", { class: "name" }, nameOf(person)),
            badge,
        );
    });
    each.push(another("plus", "add_person", newPerson), another("group", "add_group", newGroup));
    return node("nav", { class: "people", "aria-label": say("people") }, each);
}

function another(picture, word, run) {
    const face = node("span", { class: "avatar", "aria-hidden": "true" }, icon(picture));
    return button("someone more", run, { data: { key: word } }, face, node("span", { class: "name" }, say(word)));
}

/** The same chat for somebody else if they have it, else their own with the bot. */
function switchTo(person) {
    const narrow = matchMedia("(max-width: 720px)").matches;
    const group = view.chat < 0 && chatsOf(person).some((chat) => chat.id === view.chat);
    show(person, narrow ? null : group ? view.chat : person);
}

function chats() {
    const each = chatsOf(view.person).map((chat) => {
        const last = messagesOf(view.person, chat.id).at(-1);
        const title = titleOf(chat, view.person);
        const preview = last ? whoSaid(last, chat) + previewOf(last) : say("no_messages");
        const badge = node("span", { class: "badge" }, unread(view.person, chat.id) || "");
        const time = last && node("time", {}, clock(last.date));
        const top = node("span", { class: "line" }, node("span", { class: "title" }, title), time);
        const words = node("span", { class: "line" }, node("span", { class: "last" }, preview), badge);
        const marks = { data: { key: `chat ${chat.id}` }, "aria-current": String(chat.id === view.chat) };
        const open = () => show(view.person, chat.id);
        return button("entry", open, marks, chatAvatar(chat, title), node("span", { class: "lines" }, top, words));
    });
    return node("nav", { class: "chats", "aria-label": say("chats") }, each);
}

function whoSaid(message, chat) {
    if (kindOf(message) === "service") return "";
    if (message.from.id === view.person) return `${say("you")}: `;
    return chat.type === "private" ? "" : `${nameOf(message.from)}: `;
}

function myself() {
    const person = personOf(view.person);
    if (!person) return node("div", { class: "myself" });
    const sum = node("span", { class: "stars" }, star(), node("span", { class: "sum" }, number(person.stars)));
    const label = say("top_up_label");
    const give = () => change({ stars: person.stars + 1000 });
    const more = button("small", give, { data: { key: "stars" }, "aria-label": label, title: label }, say("top_up"));
    const speak = (code) => change({ language: code });
    return node(
        "section",
        { class: "myself", "aria-label": nameOf(person) },
        node("div", { class: "fact" }, node("span", { class: "label" }, say("stars_balance")), sum, more),
        node(
            "div",
            { class: "fact" },
            node("span", { class: "label" }, say("telegram_language")),
            languages(person.language_code, speak),
        ),
    );
}

function languages(now, choose) {
    const marks = (code) => ({ data: { key: `speaks ${code}` }, "aria-pressed": String(code === now) });
    const one = (code) => button("", () => choose(code), marks(code), code.toUpperCase());
    return node("div", { class: "pick", role: "group", "aria-label": say("telegram_language") }, LANGUAGES.map(one));
}

const change = (what) => changePerson(view.person, what).catch(failed);

function newPerson() {
    const name = node("input", { required: true, maxlength: "40", autocomplete: "off" });
    const options = LANGUAGES.map((code) =>
        node("option", { value: code, selected: code === language() }, NAMES[code]),
    );
    const spoken = node("select", {}, options);
    const form = node(
        "form",
        { method: "dialog", on: { submit: () => welcome(name.value.trim(), spoken.value) } },
        node("h3", {}, say("add_person_title")),
        node("label", { class: "field" }, say("name"), name),
        node("label", { class: "field" }, say("telegram_language"), spoken),
        node("button", { class: "wide" }, say("add")),
    );
    dialog(form, { label: say("add_person_title") });
    name.focus();
}

function newGroup() {
    const title = node("input", { required: true, maxlength: "40", autocomplete: "off" });
    const boxes = [...world.people.values()].map((person) => {
        const box = node("input", { type: "checkbox", value: person.id, checked: person.id === view.person });
        return node("label", { class: "member" }, box, nameOf(person));
    });
    const chosen = () =>
        boxes.map((one) => find("input", one)).filter((box) => box.checked).map((box) => Number(box.value));
    const form = node(
        "form",
        { method: "dialog", on: { submit: (event) => gather(event, title.value.trim(), chosen()) } },
        node("h3", {}, say("add_group_title")),
        node("label", { class: "field" }, say("group_name"), title),
        node("fieldset", { class: "members" }, node("legend", {}, say("group_members")), boxes),
        node("button", { class: "wide" }, say("add")),
    );
    dialog(form, { label: say("add_group_title") });
    title.focus();
}

/** A group of nobody is not made: the dialog stays. */
async function gather(event, title, members) {
    if (!title || !members.length) return event.preventDefault();
    try {
        const made = await addGroup(title, members);
        show(members.includes(view.person) ? view.person : members[0], made.id);
    } catch (error) {
        failed(error);
    }
}

async function welcome(name, spoken) {
    if (!name) return;
    try {
        const made = await addPerson(name, spoken);
        show(made.id, made.id);
    } catch (error) {
        failed(error);
    }
}

onSwitch(planSidebar);
onRead(planSidebar);
for (const kind of ["reset", "people", "chats", "profile", "message", "edit", "gone", "notification"])
    on(kind, planSidebar);
