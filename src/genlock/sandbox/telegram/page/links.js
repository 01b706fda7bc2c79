// t.me links: start the bot, or share a URL.
import { sendText } from "./actions.js";
import { copy } from "./dom.js";
import { failed, toast } from "./notices.js";
import { show, view } from "./view.js";
import { state } from "./state.js";
import { getText } from "./texts.js";

const SHARE = /^(?:https?:\/\/)?t\.me\/share\/url\?/iu;

/** Handle a t.me link as Telegram does; false if the URL is not one. */
export function followed(url) {
    const start = new RegExp(`^(?:https?://)?t\\.me/${state.bot.username}(?:\\?start=([\\w-]{1,64}))?$`, "iu").exec(
        url,
    );
    if (start) startBot(start[1]);
    else if (SHARE.test(url)) share(url);
    else return false;
    return true;
}

function startBot(payload) {
    show(view.person, view.person);
    if (payload) sendText(view.person, view.person, `/start ${payload}`).catch(failed);
}

/** Copy the link, because the sandbox has no contacts to share it with. */
async function share(url) {
    const asked = new URL(/^https?:/iu.test(url) ? url : `https://${url}`).searchParams;
    await copy([asked.get("text"), asked.get("url")].filter(Boolean).join("\n"));
    toast(getText("copied"));
}
