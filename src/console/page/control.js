// What --console-control adds: typing, sizes, signals, terminate, start. Typing must be switched on
// for each process, so that no stray key reaches a program.

import { ask, button, el, menu, put, say, toggle } from './dom.js';
import { command, text, toBase64 } from './format.js';
import { keyOf } from './model.js';

const SIGNALS = [
    ['interrupt', 'Interrupt (SIGINT)'],
    ['terminate', 'Terminate (SIGTERM)'],
    ['hangup', 'Hang up (SIGHUP)'],
    ['quit', 'Quit (SIGQUIT)'],
    ['stop', 'Stop (SIGSTOP)'],
    ['continue', 'Continue (SIGCONT)'],
    ['usr1', 'SIGUSR1'],
    ['usr2', 'SIGUSR2'],
    ['kill', 'Kill (SIGKILL)'],
];
const TOUCH_KEYS = [
    ['Esc', '\x1b'],
    ['Tab', '\t'],
    ['Ctrl C', '\x03'],
    ['Ctrl D', '\x04'],
    ['↑', '\x1b[A'],
    ['↓', '\x1b[B'],
    ['←', '\x1b[D'],
    ['→', '\x1b[C'],
    ['Enter', '\r'],
];
const PIECE = 32 << 10; // bytes of a write

export class Control {
    constructor(app, view) {
        this.app = app;
        this.view = view;
        this.chain = Promise.resolve();
        this.typeButton = button('Type', () => this.setTyping(!this.on), { class: 'main' });
        this.fitButton = button('Fit', () => this.fit(), {
            title: 'Give the terminal the size of this window (g)',
        });
        this.sizeButton = button('Size…', () => this.askSize());
        this.closeButton = button('End input', () => this.closeStdin());
        this.signals = menu(
            'Signal',
            SIGNALS.map(([name, label]) => [label, () => this.signal(name)]),
        );
        this.endButton = button('Terminate…', () => this.terminate(), { class: 'danger' });
        const { tty } = view.row;
        this.tools = [
            el(
                'span',
                { class: 'tools', role: 'group', 'aria-label': 'Control' },
                this.typeButton,
                ...(tty ? [this.fitButton, this.sizeButton] : [this.closeButton]),
                this.signals,
                this.endButton,
            ),
        ];
        this.touch = el(
            'span',
            { class: 'touch', role: 'group', 'aria-label': 'Keys' },
            ...TOUCH_KEYS.map(([name, keys]) =>
                button(name, () => {
                    view.screen.term.input(keys, true);
                    view.screen.term.focus();
                }),
            ),
        );
        this.banner = el(
            'div',
            { class: 'typing', role: 'status', hidden: true },
            el('span', { class: 'here' }, 'What you type goes to the program. '),
            el('span', { class: 'away' }, 'Typing is on: click the terminal to go on. '),
            el(
                'span',
                { class: 'wide' },
                el('kbd', {}, 'Ctrl'),
                '+',
                el('kbd', {}, 'Shift'),
                '+',
                el('kbd', {}, 'L'),
                ' leaves.',
            ),
            this.touch,
            button('Leave', () => this.setTyping(false)),
        );
    }

    get on() {
        return this.view.screen.typing;
    }

    update(running) {
        if (!running && this.on) {
            this.setTyping(false);
        }
        const all = [
            this.typeButton,
            this.fitButton,
            this.sizeButton,
            this.closeButton,
            this.endButton,
        ];
        all.forEach((one) => (one.disabled = !running));
        toggle(this.signals, 'inert', !running);
    }

    setTyping(on) {
        this.view.screen.setTyping(on);
        this.typeButton.setAttribute('aria-pressed', on);
        toggle(this.banner, 'hidden', !on);
        this.view.node.classList.toggle('types', on);
        if (!on) {
            this.typeButton.focus();
        }
    }

    /** Keys of the page that act while typing; false keeps one from the program. */
    key(event) {
        if (event.ctrlKey && event.shiftKey && event.code === 'KeyL') {
            if (event.type === 'keydown') {
                this.setTyping(false);
            }
        } else if (event.ctrlKey && event.shiftKey && event.code === 'KeyC') {
            if (event.type === 'keydown') {
                this.view.copySelection();
            }
        } else {
            return undefined;
        }
        event.preventDefault();
        event.stopPropagation();
        return false;
    }

    get #id() {
        const { sessionId, processId } = this.view.row;
        return { sessionId, processId };
    }

    async #do(method, params = {}) {
        try {
            return await this.app.connection.call(method, { ...this.#id, ...params });
        } catch (error) {
            say(text(error.message, 300), 'bad');
            return null;
        }
    }

    /** Sends input in order: a write may have to wait for the program. */
    typed(data) {
        for (let at = 0; at < data.length; at += PIECE) {
            const chunk = toBase64(data.subarray(at, at + PIECE));
            this.chain = this.chain.then(async () => {
                const answer = await this.#do('console/write', { chunk });
                if (answer?.status && answer.status !== 'accepted') {
                    this.setTyping(false);
                    say(
                        answer.status === 'stdinClosed'
                            ? 'The program takes no input.'
                            : `Not written: ${text(answer.status, 50)}.`,
                        'bad',
                    );
                }
            });
        }
    }

    async closeStdin() {
        if (await this.#do('console/closeStdin')) {
            say('The input has ended.');
        }
    }

    async #resize(cols, rows) {
        if (await this.#do('console/resize', { size: { rows, cols } })) {
            this.app.model.poll();
        }
    }

    fit() {
        const { screen } = this.view;
        screen.setZoom(0);
        screen.term.options.fontSize = 13;
        requestAnimationFrame(() => {
            const room = screen.room();
            if (room) {
                this.#resize(room.cols, room.rows);
            }
        });
    }

    async askSize() {
        const { term } = this.view.screen;
        const cols = number('Columns', term.cols, 1000);
        const rows = number('Rows', term.rows, 500);
        const answer = await ask(
            'Size of the terminal',
            [cols.label, rows.label],
            [
                ['', 'Cancel'],
                ['set', 'Set', 'main'],
            ],
        );
        if (answer === 'set' && cols.input.value > 0 && rows.input.value > 0) {
            this.#resize(Number(cols.input.value), Number(rows.input.value));
        }
    }

    async signal(name) {
        if (await this.#do('console/signal', { signal: name })) {
            say(`Sent: ${name}.`);
        }
    }

    async terminate() {
        const mode = await this.view.confirm(
            'Terminate this process?',
            [
                command(this.view.row.argv, this.view.row.argvOmitted),
                'Gracefully: SIGTERM, and 2 s later SIGKILL to whatever is left. Now: SIGKILL at once.',
            ],
            [
                ['', 'Cancel'],
                ['graceful', 'Gracefully', 'main'],
                ['force', 'Now', 'danger'],
            ],
        );
        if (mode) {
            await this.#do('console/terminate', { mode });
        }
    }
}

function number(name, value, most) {
    const input = el('input', { type: 'number', min: 1, max: most, value, required: true });
    return { input, label: el('label', { class: 'field' }, name, input) };
}

/** Asks what to start, starts it, and shows it. */
export async function startProcess(app) {
    const what = el('textarea', {
        rows: 3,
        required: true,
        autofocus: true,
        spellcheck: 'false',
        autocapitalize: 'off',
        placeholder: 'make test',
        'aria-describedby': 'start-hint',
    });
    const where = el('input', {
        value: app.startDirectory(),
        spellcheck: 'false',
        autocapitalize: 'off',
    });
    const tty = el('input', { type: 'checkbox', checked: true });
    const exact = el('input', { type: 'checkbox' });
    what.addEventListener('keydown', (event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
            what.form.querySelector('button.main').click();
        }
    });
    const body = [
        el('label', { class: 'field' }, 'Command', what),
        el(
            'p',
            { class: 'hint', id: 'start-hint' },
            'The shell runs it with the rights of the server, outside any sandbox. Ctrl+Enter starts.',
        ),
        el('label', { class: 'field' }, 'Directory', where),
        el('label', { class: 'check' }, tty, 'With a terminal'),
        el('label', { class: 'check' }, exact, 'Without a shell: one argument on each line'),
    ];
    if (
        (await ask('Start a command', body, [
            ['', 'Cancel'],
            ['start', 'Start', 'main'],
        ])) !== 'start'
    ) {
        return;
    }
    const params = exact.checked
        ? { argv: what.value.replace(/\n$/, '').split('\n') }
        : { shell: what.value };
    params.tty = tty.checked;
    if (where.value) {
        params.cwd = where.value;
    }
    if (params.tty) {
        params.size = { rows: 24, cols: 80 };
    }
    try {
        const { sessionId, processId } = await app.connection.call('console/start', params);
        await app.model.poll();
        app.openStarted(keyOf(sessionId, processId));
    } catch (error) {
        say(text(error.message, 300), 'bad');
    }
}
