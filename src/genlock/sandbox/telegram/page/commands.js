// The bot's commands above the message field: while a slash is typed, or behind the menu button.
import { button, find, node } from "./dom.js";
import { view } from "./view.js";
import { commandsFor, state } from "./state.js";
import { getText } from "./texts.js";

let run = () => {};
let chosen = 0;

const list = () => find(".commands");

/** `send` is called with the command that the user chooses. */
export function startCommands(send) {
    run = send;
    document.addEventListener("pointerdown", (event) => {
        if (!event.target.closest(".commands, .menu-button, .write textarea")) closeCommands();
    });
}

export function closeCommands() {
    list()?.remove();
}

/** Offer the commands that begin with what is typed. */
export function suggest(text) {
    closeCommands();
    const asked = /^\/(\w*)$/u.exec(text);
    const all = commandsFor(view.person, view.chat);
    const fitting = asked ? all.filter(({ command }) => command.startsWith(asked[1])) : [];
    if (fitting.length) open(fitting);
}

export function toggleCommands() {
    if (list()) closeCommands();
    else open(commandsFor(view.person, view.chat));
}

/** Handle a key of the message field; true if the list used it. */
export function walkCommands(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const take = (event.key === "Enter" || event.key === "Tab") && !event.shiftKey;
    if (!list() || !(step || take || event.key === "Escape")) return false;
    event.preventDefault();
    if (step) choose(chosen + step);
    else if (take) list().children[chosen].click();
    else closeCommands();
    return true;
}

function open(commands) {
    const made = node("div", { class: "commands", role: "listbox", "aria-label": getText("commands") });
    for (const { command, description } of commands) {
        const take = () => {
            made.remove();
            run(view.chat < 0 ? `/${command}@${state.bot.username}` : `/${command}`);
        };
        const words = [node("span", { class: "name" }, `/${command}`), node("span", { class: "about" }, description)];
        made.append(button("", take, { role: "option" }, words));
    }
    find(".composer-wrap").append(made);
    choose(0);
}

function choose(index) {
    const options = [...list().children];
    chosen = (index + options.length) % options.length;
    options.forEach((option, number) => option.setAttribute("aria-selected", String(number === chosen)));
    options[chosen].scrollIntoView({ block: "nearest" });
}
