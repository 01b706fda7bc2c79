// Texts of the page in English and Russian.

const TEXTS = {
    title: ["Sandbox", "Песочница"],
    people: ["Users", "Пользователи"],
    chats: ["Chats", "Чаты"],
    add_person: ["New", "Новый"],
    add_person_title: ["A new user", "Новый пользователь"],
    group: ["Group", "Группа"],
    add_group: ["New group", "Новая группа"],
    add_group_title: ["A new group", "Новая группа"],
    group_name: ["Name of the group", "Название группы"],
    group_members: ["Members besides the bot", "Участники, кроме бота"],
    name: ["Name", "Имя"],
    telegram_language: ["Language in Telegram", "Язык в Telegram"],
    add: ["Add", "Добавить"],
    settings: ["Settings", "Настройки"],
    dashboard: ["The operator's dashboard", "Панель оператора"],
    language: ["Page language", "Язык страницы"],
    theme: ["Appearance", "Оформление"],
    theme_system: ["Auto", "Авто"],
    theme_light: ["Light", "Светлое"],
    theme_dark: ["Dark", "Тёмное"],
    sound: ["Sound", "Звук"],
    on: ["On", "Вкл"],
    off: ["Off", "Выкл"],
    stars_balance: ["Stars", "Звёзды"],
    top_up: ["+1,000", "+1 000"],
    top_up_label: ["Give this user 1,000 Stars", "Дать этому пользователю 1 000 звёзд"],
    bot: ["bot", "бот"],
    members: [
        { one: "{n} member", other: "{n} members" },
        { one: "{n} участник", few: "{n} участника", many: "{n} участников", other: "{n} участника" },
    ],
    back: ["Back to the chats", "К списку чатов"],
    more: ["More", "Ещё"],
    panel_open: ["Show faults and calls", "Показать сбои и вызовы"],
    panel_close: ["Close the panel", "Закрыть панель"],
    clear: ["Clear history", "Очистить историю"],
    clear_title: ["Clear the history?", "Очистить историю?"],
    clear_text: ["All messages of this chat will be deleted.", "Все сообщения этого чата будут удалены."],
    clear_mine: ["Clear for me", "Очистить у меня"],
    clear_both: ["Clear for both sides", "Очистить у обоих"],
    block: ["Block the bot", "Заблокировать бота"],
    unblock: ["Unblock", "Разблокировать"],
    unblock_bot: ["Unblock the bot", "Разблокировать бота"],
    start: ["Start", "Начать"],
    empty_title: ["What can this bot do?", "Что умеет этот бот?"],
    empty_bot: ["Press Start to open the conversation.", "Нажмите «Начать», чтобы открыть диалог."],
    empty_group: [
        "No messages yet. Write something, or a command such as /start.",
        "Сообщений пока нет. Напишите что-нибудь или команду, например /start.",
    ],
    no_chat: ["Choose a chat to begin", "Выберите чат, чтобы начать"],
    no_messages: ["No messages yet", "Сообщений пока нет"],
    message: ["Message", "Сообщение"],
    send: ["Send", "Отправить"],
    attach: ["Attach photos and files", "Прикрепить фото и файлы"],
    menu: ["Menu", "Меню"],
    commands: ["Bot commands", "Команды бота"],
    inline: ["Results to share", "Чем поделиться"],
    via: ["via @{name}", "через @{name}"],
    keyboard: ["The bot’s keyboard", "Клавиатура бота"],
    react: ["React", "Реакция"],
    reply: ["Reply", "Ответить"],
    reply_cancel: ["Cancel the reply", "Отменить ответ"],
    copy: ["Copy text", "Копировать текст"],
    copied: ["Copied", "Скопировано"],
    save: ["Save", "Сохранить"],
    delete: ["Delete", "Удалить"],
    delete_title: ["Delete the message?", "Удалить сообщение?"],
    delete_text: [
        "If you delete it only for yourself, the bot does not notice and may still edit it.",
        "Если удалить только у себя, бот этого не заметит и может дальше его менять.",
    ],
    delete_mine: ["Delete for me", "Удалить у меня"],
    delete_both: ["Delete for both sides", "Удалить у обоих"],
    cancel: ["Cancel", "Отмена"],
    ok: ["OK", "ОК"],
    operator: ["operator", "оператор"],
    forward: ["Forward", "Переслать"],
    forward_to: ["Forward to…", "Переслать в чат…"],
    forward_done: ["Forwarded", "Переслано"],
    edit: ["Edit", "Изменить"],
    editing: ["Edit message", "Изменить сообщение"],
    edit_cancel: ["Cancel editing", "Отменить правку"],
    edit_save: ["Save changes", "Сохранить изменения"],
    record: ["Record a voice message", "Записать голосовое сообщение"],
    recording: ["Recording…", "Идёт запись…"],
    record_sample: [
        "No microphone here: a sample voice will be sent",
        "Микрофона нет, отправим образец голоса",
    ],
    record_cancel: ["Delete the recording", "Удалить запись"],
    stickers: ["Stickers", "Стикеры"],
    kind_sticker: ["Sticker", "Стикер"],
    edited: ["edited", "изменено"],
    made_sound: ["sent with a notification", "пришло с уведомлением"],
    you: ["You", "Вы"],
    today: ["Today", "Сегодня"],
    yesterday: ["Yesterday", "Вчера"],
    earlier: ["Show earlier messages", "Показать более ранние"],
    to_end: ["To the newest message", "К новым сообщениям"],
    new_messages: [
        { one: "{n} new message", other: "{n} new messages" },
        {
            one: "{n} новое сообщение",
            few: "{n} новых сообщения",
            many: "{n} новых сообщений",
            other: "{n} новых сообщения",
        },
    ],
    kind_photo: ["Photo", "Фото"],
    kind_video: ["Video", "Видео"],
    kind_animation: ["GIF", "GIF"],
    kind_audio: ["Audio", "Аудио"],
    kind_voice: ["Voice message", "Голосовое сообщение"],
    kind_document: ["File", "Файл"],
    kind_invoice: ["Invoice", "Счёт"],
    kind_video_note: ["Video message", "Видеосообщение"],
    kind_location: ["Location", "Геопозиция"],
    kind_venue: ["Place", "Место"],
    kind_contact: ["Contact", "Контакт"],
    kind_dice: ["Dice", "Кубик"],
    kind_poll: ["Poll", "Опрос"],
    kind_paid_media: ["Paid media", "Платный контент"],
    kind_album: ["Album", "Альбом"],
    enlarge: ["Enlarge the picture", "Увеличить картинку"],
    close: ["Close", "Закрыть"],
    previous: ["Previous", "Назад"],
    next: ["Next", "Вперёд"],
    play: ["Play", "Воспроизвести"],
    pause: ["Pause", "Пауза"],
    position: ["Position", "Место"],
    download: ["Download", "Скачать"],
    forwarded: ["Forwarded from {name}", "Переслано от {name}"],
    typing: ["typing", "печатает"],
    action_photo: ["sending a photo", "отправляет фото"],
    action_video: ["sending a video", "отправляет видео"],
    action_voice: ["sending a voice message", "отправляет голосовое"],
    action_document: ["sending a file", "отправляет файл"],
    pay: ["Pay", "Оплатить"],
    pay_title: ["Confirm the payment", "Подтвердите оплату"],
    pay_text: ["Pay {sum} for “{title}” to {bot}?", "Заплатить {sum} за «{title}» боту {bot}?"],
    pay_sum: [
        { one: "{n} Star", other: "{n} Stars" },
        { one: "{n} звезду", few: "{n} звезды", many: "{n} звёзд", other: "{n} звезды" },
    ],
    pay_have: ["Balance: {n}", "Баланс: {n}"],
    pay_waiting: ["Waiting for the bot to confirm", "Ждём подтверждения бота"],
    pay_lack: ["Not enough Stars on the balance.", "На балансе не хватает звёзд."],
    pay_done: ["Payment made", "Оплата прошла"],
    paid: ["You paid {sum} to {bot}", "Вы заплатили {sum} боту {bot}"],
    refunded: ["{bot} returned {sum} to you", "{bot} вернул вам {sum}"],
    service: ["Service message", "Служебное сообщение"],
    joined: ["{name} joined the group", "{name} теперь в группе"],
    left_group: ["{name} left the group", "{name} больше не в группе"],
    migrated: ["The group became a supergroup", "Группа стала супергруппой"],
    expel: ["Remove the bot", "Удалить бота"],
    invite: ["Add the bot", "Добавить бота"],
    upgrade: ["Upgrade to a supergroup", "Сделать супергруппой"],
    open_link: ["Open link {url}?", "Открыть ссылку {url}?"],
    open: ["Open", "Открыть"],
    disconnected: ["No connection. Trying again…", "Нет связи. Подключаемся снова…"],
    no_connection: ["no connection to the sandbox", "нет связи с песочницей"],
    failed: ["Failed: {why}", "Не получилось: {why}"],
    drop_here: ["Drop the files here", "Отпустите файлы здесь"],
    send_title: [
        { one: "Send {n} file", other: "Send {n} files" },
        {
            one: "Отправить {n} файл",
            few: "Отправить {n} файла",
            many: "Отправить {n} файлов",
            other: "Отправить {n} файла",
        },
    ],
    as_media: ["As photo or video", "Как фото или видео"],
    as_files: ["As files", "Как файлы"],
    caption: ["Caption", "Подпись"],
    remove: ["Remove", "Убрать"],
    too_big: ["{name} is larger than {limit}", "{name} больше {limit}"],
    too_many_files: ["At most 10 files at once", "Не больше 10 файлов за раз"],
};

let place = 0;

export const NAMES = { en: "English", ru: "Русский" };
export const LANGUAGES = Object.keys(NAMES);
export const language = () => LANGUAGES[place];

export function setLanguage(code) {
    place = Math.max(LANGUAGES.indexOf(code), 0);
    document.documentElement.lang = language();
}

export function addTexts(more) {
    Object.assign(TEXTS, more);
}

export const known = (key) => key in TEXTS;

/** The text for a key, with `{name}` filled in; a number `n` chooses the plural. */
export function getText(key, values = {}) {
    const known = TEXTS[key];
    if (!known) return key;
    let text = known[place];
    if (typeof text === "object") text = text[new Intl.PluralRules(language()).select(values.n)] ?? text.other;
    return text.replace(/\{(\w+)\}/gu, (whole, name) => (name in values ? filled(values[name]) : whole));
}

const filled = (value) => (typeof value === "number" ? number(value) : String(value));

export const number = (value) => new Intl.NumberFormat(language()).format(value);

export const clock = (seconds) =>
    new Intl.DateTimeFormat(language(), { hour: "2-digit", minute: "2-digit", hour12: false }).format(seconds * 1000);

/** The name of a day: today, yesterday, or its date. */
export function day(seconds) {
    const then = new Date(seconds * 1000);
    const days = Math.round((midnight(new Date()) - midnight(then)) / 86_400_000);
    if (days === 0) return getText("today");
    if (days === 1) return getText("yesterday");
    const year = then.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
    return new Intl.DateTimeFormat(language(), { day: "numeric", month: "long", year }).format(then);
}

export const midnight = (date) => new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();

/** A duration such as 1:05. */
export function duration(seconds) {
    const whole = Math.max(0, Math.round(seconds || 0));
    return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

export function bytes(count) {
    const units = language() === "ru" ? ["Б", "КБ", "МБ", "ГБ"] : ["B", "KB", "MB", "GB"];
    let step = 0;
    let size = count || 0;
    while (size >= 1024 && step < 3) [size, step] = [size / 1024, step + 1];
    return `${new Intl.NumberFormat(language(), { maximumFractionDigits: step && size < 100 ? 1 : 0 }).format(size)} ${units[step]}`;
}
