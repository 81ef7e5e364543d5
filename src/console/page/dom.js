// Elements are made here and nowhere else. Text becomes text nodes, never markup.

/** Makes an element. Attributes that begin with `on` are listeners; false and null leave one out. */
export function el(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (name.startsWith('on')) {
            node.addEventListener(name.slice(2), value);
        } else if (value !== false && value !== null && value !== undefined) {
            node.setAttribute(name, value === true ? '' : value);
        }
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
}

export function button(label, run, attributes = {}) {
    return el('button', { type: 'button', onclick: run, ...attributes }, label);
}

/** Sets the text of a node if it is another. */
export function put(node, value) {
    if (node.textContent !== value) {
        node.textContent = value;
    }
}

export function toggle(node, name, on) {
    if (on) {
        node.setAttribute(name, '');
    } else {
        node.removeAttribute(name);
    }
}

/** Says something to screen readers and, for a while, to everyone. */
export function say(message, kind = 'note') {
    const place = document.getElementById('toast');
    place.textContent = message;
    place.dataset.kind = kind;
    clearTimeout(say.timer);
    say.timer = setTimeout(() => (place.textContent = ''), kind === 'bad' ? 12000 : 5000);
}

/** Lets the browser save data under a name. */
export function save(parts, name) {
    const url = URL.createObjectURL(new Blob(parts, { type: 'application/octet-stream' }));
    el('a', { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
}

export async function copy(value) {
    try {
        await navigator.clipboard.writeText(value);
    } catch {
        const area = el('textarea', { class: 'offscreen', 'aria-hidden': 'true' });
        area.value = value;
        document.body.append(area);
        area.select();
        const done = document.execCommand('copy');
        area.remove();
        if (!done) {
            say('The browser does not let this page copy.', 'bad');
            return false;
        }
    }
    return true;
}

/** Asks in a modal dialog; the answer is the value of the button, '' for none. */
export function ask(title, body, choices) {
    return new Promise((resolve) => {
        const buttons = choices.map(([value, label, kind]) =>
            el(
                'button',
                {
                    value,
                    class: kind,
                    formnovalidate: !value,
                },
                label,
            ),
        );
        const form = el(
            'form',
            { method: 'dialog' },
            el('h2', {}, title),
            ...body,
            el('div', { class: 'buttons' }, ...buttons),
        );
        const box = el('dialog', { 'aria-label': title }, form);
        box.addEventListener('close', () => {
            box.remove();
            resolve(box.returnValue);
        });
        document.body.append(box);
        box.showModal();
    });
}

/** A menu that opens below its button and closes when one is chosen. */
export function menu(label, entries, attributes = {}) {
    const list = el('div', { class: 'entries', role: 'group', 'aria-label': label });
    const box = el('details', { class: 'menu', ...attributes }, el('summary', {}, label), list);
    for (const [name, run] of entries) {
        list.append(
            button(name, () => {
                box.open = false;
                run();
            }),
        );
    }
    box.addEventListener('focusout', (event) => {
        if (!box.contains(event.relatedTarget)) {
            box.open = false;
        }
    });
    box.addEventListener('keydown', (event) => {
        if (event.key === 'Escape' && box.open) {
            box.open = false;
            box.firstChild.focus();
            event.stopPropagation();
        }
    });
    return box;
}
