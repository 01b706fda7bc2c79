// The list of users, and the chats of the selected user.
import { planner } from "./frame_scheduler.js";
import { addGroup, addUser, changeUser } from "./actions.js";
import { previewOf } from "./bubble.js";
import { chatAvatar, titleOf } from "./chat_header.js";
import { icon, roundButton, star } from "./icons.js";
import { dialog } from "./layers.js";
import { button, find, hue, initials, node } from "./dom.js";
import { failed } from "./notices.js";
import { openSettings } from "./appearance.js";
import { onRead, onSwitch, show, unread, unreadOf, view } from "./view.js";
import { chatsOf, kindOf, messagesOf, nameOf, on, userOf, state } from "./state.js";
import { LANGUAGES, NAMES, clock, language, number, getText } from "./texts.js";

export const planSidebar = planner(drawSidebar);

function drawSidebar() {
    const sidebar = find("#sidebar");
    const focused = sidebar.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const offset = find(".people", sidebar)?.scrollTop ?? 0;
    sidebar.replaceChildren(brand(), people(), chats(), ownSettings());
    find(".people", sidebar).scrollTop = offset;
    if (focused) find(`[data-key="${CSS.escape(focused)}"]`, sidebar)?.focus();
    const waiting = [...state.people.keys()].reduce((sum, person) => sum + unreadOf(person), 0);
    document.title = `${waiting ? `(${waiting}) ` : ""}${getText("title")} · genlock`;
}

function brand() {
    const logo = node("img", { src: "/page/icon.svg", alt: "" });
    const open = (event) => openSettings(event.currentTarget);
    const gear = roundButton("gear", getText("settings"), open, "", { data: { key: "settings" } });
    const title = node("h1", {}, getText("title"));
    return node("div", { class: "brand" }, logo, title, state.dashboard ? dashboardLink() : null, gear);
}

function dashboardLink() {
    const label = getText("dashboard");
    const marks = { class: "round", href: "/dashboard", target: "_blank", "aria-label": label, title: label };
    return node("a", { ...marks, data: { key: "dashboard" } }, icon("chart"));
}

function people() {
    const each = [...state.people.values()].map((person) => {
        const chosen = person.id === view.person;
        const face = node(
            "span",
            { class: "avatar", style: { "--hue": hue(person.id) }, "aria-hidden": "true" },
            initials(nameOf(person)),
        );
        const badge = node("span", { class: "badge" }, chosen ? "" : unreadOf(person.id) || "");
        const marks = { data: { key: `person ${person.id}` }, "aria-current": String(chosen) };
        return button(
            "user-entry",
            () => switchTo(person.id),
            marks,
            face,
            node("span", { class: "name" }, nameOf(person)),
            person.operator ? node("span", { class: "role" }, getText("operator")) : null,
            badge,
        );
    });
    each.push(another("plus", "add_person", openNewUser), another("group", "group", openNewGroup, "add_group"));
    return node("nav", { class: "people", "aria-label": getText("people") }, each);
}

function another(picture, word, run, label = word) {
    const face = node("span", { class: "avatar", "aria-hidden": "true" }, icon(picture));
    const marks = { data: { key: word }, "aria-label": getText(label), title: getText(label) };
    return button("user-entry more", run, marks, face, node("span", { class: "name" }, getText(word)));
}

/** Select a user: keep the open group if the user is in it, else open the chat with the bot. */
function switchTo(person) {
    const narrow = matchMedia("(max-width: 720px)").matches;
    const group = view.chat < 0 && chatsOf(person).some((chat) => chat.id === view.chat);
    show(person, narrow ? null : group ? view.chat : person);
}

function chats() {
    const each = chatsOf(view.person).map((chat) => {
        const last = messagesOf(view.person, chat.id).at(-1);
        const title = titleOf(chat, view.person);
        const preview = last ? senderPrefix(last, chat) + previewOf(last) : getText("no_messages");
        const badge = node("span", { class: "badge" }, unread(view.person, chat.id) || "");
        const time = last && node("time", {}, clock(last.date));
        const top = node("span", { class: "line" }, node("span", { class: "title" }, title), time);
        const words = node("span", { class: "line" }, node("span", { class: "last" }, preview), badge);
        const marks = { data: { key: `chat ${chat.id}` }, "aria-current": String(chat.id === view.chat) };
        const open = () => show(view.person, chat.id);
        return button("entry", open, marks, chatAvatar(chat, title), node("span", { class: "lines" }, top, words));
    });
    return node("nav", { class: "chats", "aria-label": getText("chats") }, each);
}

function senderPrefix(message, chat) {
    if (kindOf(message) === "service") return "";
    if (message.from.id === view.person) return `${getText("you")}: `;
    return chat.type === "private" ? "" : `${nameOf(message.from)}: `;
}

function ownSettings() {
    const person = userOf(view.person);
    if (!person) return node("div", { class: "myself" });
    const sum = node("span", { class: "stars" }, star(), node("span", { class: "sum" }, number(person.stars)));
    const label = getText("top_up_label");
    const give = () => change({ stars: person.stars + 1000 });
    const more = button("small", give, { data: { key: "stars" }, "aria-label": label, title: label }, getText("top_up"));
    const changeLanguage = (code) => change({ language: code });
    return node(
        "section",
        { class: "myself", "aria-label": nameOf(person) },
        node("div", { class: "fact" }, node("span", { class: "label" }, getText("stars_balance")), sum, more),
        node(
            "div",
            { class: "fact" },
            node("span", { class: "label" }, getText("telegram_language")),
            languages(person.language_code, changeLanguage),
        ),
    );
}

function languages(now, choose) {
    const marks = (code) => ({ data: { key: `speaks ${code}` }, "aria-pressed": String(code === now) });
    const one = (code) => button("", () => choose(code), marks(code), code.toUpperCase());
    return node("div", { class: "pick", role: "group", "aria-label": getText("telegram_language") }, LANGUAGES.map(one));
}

const change = (what) => changeUser(view.person, what).catch(failed);

function openNewUser() {
    const name = node("input", { required: true, maxlength: "40", autocomplete: "off" });
    const options = LANGUAGES.map((code) =>
        node("option", { value: code, selected: code === language() }, NAMES[code]),
    );
    const spoken = node("select", {}, options);
    const form = node(
        "form",
        { method: "dialog", on: { submit: () => createUser(name.value.trim(), spoken.value) } },
        node("h3", {}, getText("add_person_title")),
        node("label", { class: "field" }, getText("name"), name),
        node("label", { class: "field" }, getText("telegram_language"), spoken),
        node("button", { class: "wide" }, getText("add")),
    );
    dialog(form, { label: getText("add_person_title") });
    name.focus();
}

function openNewGroup() {
    const title = node("input", { required: true, maxlength: "40", autocomplete: "off" });
    const boxes = [...state.people.values()].map((person) => {
        const box = node("input", { type: "checkbox", value: person.id, checked: person.id === view.person });
        return node("label", { class: "member" }, box, nameOf(person));
    });
    const chosen = () =>
        boxes.map((one) => find("input", one)).filter((box) => box.checked).map((box) => Number(box.value));
    const form = node(
        "form",
        { method: "dialog", on: { submit: (event) => createGroup(event, title.value.trim(), chosen()) } },
        node("h3", {}, getText("add_group_title")),
        node("label", { class: "field" }, getText("group_name"), title),
        node("fieldset", { class: "members" }, node("legend", {}, getText("group_members")), boxes),
        node("button", { class: "wide" }, getText("add")),
    );
    dialog(form, { label: getText("add_group_title") });
    title.focus();
}

/** Create the group; without a title or members the dialog stays open. */
async function createGroup(event, title, members) {
    if (!title || !members.length) return event.preventDefault();
    try {
        const made = await addGroup(title, members);
        show(members.includes(view.person) ? view.person : members[0], made.id);
    } catch (error) {
        failed(error);
    }
}

async function createUser(name, spoken) {
    if (!name) return;
    try {
        const made = await addUser(name, spoken);
        show(made.id, made.id);
    } catch (error) {
        failed(error);
    }
}

onSwitch(planSidebar);
onRead(planSidebar);
for (const kind of ["reset", "people", "chats", "profile", "message", "edit", "gone", "notification"])
    on(kind, planSidebar);
