// Forwarding a message or an album to one of the user's chats.
import { forward } from "./actions.js";
import { chatAvatar, titleOf } from "./chat_header.js";
import { dialog } from "./layers.js";
import { button, node } from "./dom.js";
import { failed, toast } from "./notices.js";
import { show, view } from "./view.js";
import { chatsOf, messagesOf } from "./state.js";
import { getText } from "./texts.js";

/** Ask for the chat, then forward. */
export function openForward(message) {
    const [person, from] = [view.person, message.chat.id];
    const album = message.media_group_id;
    const together = messagesOf(person, from).filter((one) => album && one.media_group_id === album);
    const ids = (together.length ? together : [message]).map((one) => one.message_id);
    const choose = async (chat) => {
        made.close();
        try {
            await forward(person, from, ids, chat.id);
            show(person, chat.id);
            toast(getText("forward_done"));
        } catch (error) {
            failed(error);
        }
    };
    const each = chatsOf(person).map((chat) => {
        const title = titleOf(chat, person);
        return button("entry", () => choose(chat), {}, chatAvatar(chat, title), node("span", { class: "title" }, title));
    });
    const list = node("div", { class: "targets" }, each);
    const made = dialog([node("h3", {}, getText("forward_to")), list], { label: getText("forward_to") });
}
