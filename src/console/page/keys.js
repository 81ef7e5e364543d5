// The keys of the page: one list that acts, and that the dialog of `?` shows.

import { el } from './dom.js';

const OFF = 'exec-server-console-keys-off';

export class Keys {
    constructor() {
        this.groups = [];
        document.addEventListener('keydown', (event) => this.#press(event));
    }

    get off() {
        return localStorage.getItem(OFF) === 'yes';
    }

    /** Adds keys: [key, what it does, run, shown?]. `when` says whether they act now. */
    add(title, when, entries) {
        this.groups.push({ title, when, entries });
    }

    #press(event) {
        const { target } = event;
        const writes =
            target.matches?.('input, textarea, select') &&
            !target.classList.contains('xterm-helper-textarea');
        if (
            event.defaultPrevented ||
            event.ctrlKey ||
            event.altKey ||
            event.metaKey ||
            this.off ||
            document.querySelector('dialog[open]') ||
            (writes && event.key !== 'Escape')
        ) {
            return;
        }
        for (const { when, entries } of this.groups) {
            const found = entries.find(([key, , run]) => run && key.split(' ').includes(event.key));
            if (found && when() && found[2](event) !== false) {
                event.preventDefault();
                return;
            }
        }
    }

    show() {
        const box = el('dialog', { class: 'keys', 'aria-label': 'Keys' });
        const off = el('input', {
            type: 'checkbox',
            onchange: () => localStorage.setItem(OFF, off.checked ? 'yes' : 'no'),
        });
        off.checked = this.off;
        const shown = new Map(); // title: entries
        for (const { title, entries } of this.groups) {
            shown.set(title, [...(shown.get(title) ?? []), ...entries]);
        }
        box.append(
            el(
                'form',
                { method: 'dialog' },
                el('h2', {}, 'Keys'),
                el(
                    'div',
                    { class: 'groups' },
                    ...[...shown].map(([title, entries]) =>
                        el(
                            'section',
                            {},
                            el('h3', {}, title),
                            el(
                                'dl',
                                {},
                                ...entries.flatMap(([key, what, , names]) => [
                                    el(
                                        'dt',
                                        {},
                                        ...(names ?? key)
                                            .split(' ')
                                            .map((one) => el('kbd', {}, one)),
                                    ),
                                    el('dd', {}, what),
                                ]),
                            ),
                        ),
                    ),
                ),
                el('label', { class: 'check' }, off, 'Turn the keys of one letter off'),
                el(
                    'div',
                    { class: 'buttons' },
                    el(
                        'a',
                        { href: 'licenses.txt', target: '_blank', rel: 'noreferrer noopener' },
                        'Licenses',
                    ),
                    el('button', { class: 'main' }, 'Close'),
                ),
            ),
        );
        box.addEventListener('close', () => box.remove());
        document.body.append(box);
        box.showModal();
    }
}
