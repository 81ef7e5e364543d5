// The page: its views, its keys, its colours, and what it says about the connection.

import { AuditView } from './audit.js';
import { startProcess } from './control.js';
import { button, copy, el, put, say } from './dom.js';
import { Feeds } from './feed.js';
import { FilesView } from './files.js';
import * as format from './format.js';
import { Keys } from './keys.js';
import { ProcessList, SessionList } from './lists.js';
import { Model } from './model.js';
import { ProcessView } from './process.js';
import { Connection, takeToken, tokenOf } from './rpc.js';

const token = takeToken(); // before anything else can see it
const THEME = 'exec-server-console-theme';
const READER = 'exec-server-console-reader';
const THEMES = ['auto', 'light', 'dark'];
const VIEWS = ['processes', 'sessions', 'files', 'audit'];

class App {
    constructor() {
        this.connection = new Connection();
        this.model = new Model(this.connection);
        this.feeds = new Feeds(this.connection);
        this.control = false;
        this.opened = null; // ProcessView
        this.main = document.querySelector('main');
        this.status = document.getElementById('status');
        this.gate = document.getElementById('gate');
        this.reader = localStorage.getItem(READER) === 'yes';
        this.scheme = matchMedia('(prefers-color-scheme: dark)');
        this.scheme.addEventListener('change', () => this.#paint());
        this.#setTheme(localStorage.getItem(THEME) ?? 'auto');
        this.#build();
        this.#keys();
        this.connection.addEventListener('state', () => this.#connected());
        this.model.addEventListener('change', () => this.#changed());
        setInterval(() => this.#connected(), 1000);
        addEventListener('hashchange', () => this.#newLink(takeToken()));
        // A new fragment makes a state too, without content.
        addEventListener('popstate', (event) => event.state && this.#restore(event.state));
        history.replaceState({ view: 'processes' }, '', location.pathname);
        this.connection.open(token);
    }

    // Views.

    #build() {
        document.getElementById('theme').addEventListener('click', () => this.nextTheme());
        document.getElementById('keys').addEventListener('click', () => this.keys.show());
        document.getElementById('link').addEventListener('click', () => this.secondLink());
        this.readerBox = document.getElementById('reader');
        this.readerBox.checked = this.reader;
        this.readerBox.addEventListener('change', () => this.#setReader(this.readerBox.checked));
        for (const one of document.querySelectorAll('nav button')) {
            one.addEventListener('click', () => this.go(one.dataset.view));
        }
        this.gate.querySelector('form').addEventListener('submit', (event) => {
            event.preventDefault();
            this.#newLink(tokenOf(this.gate.querySelector('input').value));
        });
    }

    /** Makes the views once it is known what this console may do. */
    #views() {
        if (this.opened) {
            this.#close();
        }
        this.views = {
            processes: new ProcessList(this),
            sessions: new SessionList(this),
            files: new FilesView(this),
            audit: new AuditView(this),
        };
        this.detail = el('div', { class: 'detail', hidden: true });
        this.main.replaceChildren(...Object.values(this.views).map((one) => one.node), this.detail);
        this.show('processes');
    }

    /** Goes to a view; the browser's button for back leads here again. */
    go(view) {
        if (view !== this.view || (view === 'processes' && this.opened)) {
            history.pushState({ view }, '', location.pathname);
        }
        this.show(view, this.view !== 'processes');
    }

    /** Shows a view; that of the processes with the process that is open only if it is kept. */
    show(view, keep = false) {
        if (!this.views) {
            return;
        }
        this.view = view;
        if (this.opened && view === 'processes' && !keep) {
            this.#close();
        }
        for (const name of VIEWS) {
            this.views[name].node.hidden = name !== view;
        }
        for (const one of document.querySelectorAll('nav button')) {
            one.setAttribute('aria-current', one.dataset.view === view ? 'page' : 'false');
        }
        this.main.dataset.view = view;
        this.detail.hidden = view !== 'processes' || !this.opened;
        this.views[view].show?.();
        this.views[view].update();
        this.views[view].list.node.focus({ preventScroll: true });
    }

    #restore(state) {
        const row = state.process && this.model.processes.get(state.process);
        if (row) {
            this.#open(row);
        } else {
            this.show(state.view);
        }
    }

    openProcess(row, focus = true) {
        if (this.opened?.row.key !== row.key) {
            history.pushState({ view: 'processes', process: row.key }, '', location.pathname);
            this.#open(row);
        }
        if (focus) {
            this.opened.screen.term.focus();
        }
    }

    openStarted(key) {
        const row = this.model.processes.get(key);
        if (!row) {
            return;
        }
        if (this.view !== 'processes') {
            this.show('processes');
        }
        this.openProcess(row);
        this.opened.screen.answers = true;
        if (row.tty) {
            this.opened.control.setTyping(true);
        }
    }

    #open(row) {
        if (this.view !== 'processes') {
            this.show('processes');
        }
        this.#close();
        this.opened = new ProcessView(this, row);
        this.detail.replaceChildren(this.opened.node);
        this.detail.hidden = false;
        this.main.classList.add('opened');
        this.opened.open();
        this.views.processes.list.select(row.key);
    }

    #close() {
        this.opened?.close();
        this.opened = null;
        this.detail.replaceChildren();
        this.detail.hidden = true;
        this.main.classList.remove('opened');
    }

    back() {
        if (this.opened && this.view === 'processes') {
            this.go('processes');
            return true;
        }
        if (this.view === 'files' && !this.views.files.viewer.hidden) {
            this.views.files.closeViewer();
            return true;
        }
        return false;
    }

    /** Opens the process above or below in the list. */
    step(by) {
        const { list } = this.views.processes;
        list.move(by);
        if (list.current()) {
            this.openProcess(list.current());
        }
    }

    openKeys() {
        return this.opened ? [this.opened.row.key] : [];
    }

    showSession(id) {
        this.go('processes');
        this.views.processes.setSession(id);
    }

    showFiles(path) {
        this.go('files');
        this.views.files.go(path);
    }

    start() {
        if (this.control) {
            startProcess(this);
        }
    }

    startDirectory() {
        return format.pathOf(this.opened?.row.cwd ?? this.connection.login?.cwd ?? '/');
    }

    #changed() {
        this.views[this.view].update();
        this.opened?.update();
    }

    // The connection.

    #connected() {
        const { connection } = this;
        if (connection.ready && this.known !== connection.login) {
            this.known = connection.login;
            this.control = Boolean(connection.login.control);
            if (!this.views || this.hadControl !== this.control) {
                this.hadControl = this.control;
                this.#views();
                // The audit view has missed the event that begins it.
                connection.dispatchEvent(new Event('state'));
                return;
            }
        }
        const host = this.known ? format.text(this.known.host, 100) : '';
        document.title = host ? `${host} – exec-server` : 'exec-server';
        put(document.getElementById('host'), host);
        put(
            document.getElementById('may'),
            this.known ? (this.control ? 'control' : 'looks only') : '',
        );
        put(this.status, this.#words());
        this.status.dataset.state = connection.state;
        this.gate.hidden = connection.state !== 'refused';
        this.main.inert = connection.state === 'refused';
        if (connection.state === 'refused' && this.gated !== connection.state) {
            put(
                this.gate.querySelector('.why'),
                this.known
                    ? 'The server was restarted, or has forgotten this page. It printed a new link when it started.'
                    : 'This page needs the link that the server prints when it starts; each link works once.',
            );
            this.gate.querySelector('input').focus();
        }
        this.gated = connection.state;
    }

    #words() {
        const { state, reason, retryAt } = this.connection;
        const why = reason ? ` (${format.text(reason, 100)})` : '';
        const left = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
        return {
            ready: 'connected',
            connecting: this.known ? 'connecting again…' : 'connecting…',
            lost: `connection lost${why}: trying again in ${left} s`,
            refused: 'the server does not know this page',
        }[state];
    }

    #newLink(fresh) {
        if (!fresh) {
            say('That is no link of this console.', 'bad');
            return;
        }
        this.gate.querySelector('input').value = '';
        this.connection.open(fresh);
    }

    async secondLink() {
        try {
            const answer = await this.connection.call('console/link');
            const link = `${location.origin}/#${answer.token}`;
            const copied = await copy(link);
            say(
                `${copied ? 'Copied: a' : 'A'} link for one more viewer, good once and for 10 minutes.`,
            );
        } catch (error) {
            say(format.text(error.message, 200), 'bad');
        }
    }

    // Colours and reading aloud.

    dark() {
        const theme = document.documentElement.dataset.theme;
        return theme === 'dark' || (theme === 'auto' && this.scheme.matches);
    }

    #setTheme(theme) {
        document.documentElement.dataset.theme = THEMES.includes(theme) ? theme : 'auto';
        put(document.getElementById('theme'), `Theme: ${document.documentElement.dataset.theme}`);
        this.#paint();
    }

    nextTheme() {
        const now = document.documentElement.dataset.theme;
        const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
        localStorage.setItem(THEME, next);
        this.#setTheme(next);
    }

    #paint() {
        this.opened?.setDark(this.dark());
    }

    #setReader(on) {
        this.reader = on;
        localStorage.setItem(READER, on ? 'yes' : 'no');
        this.opened?.screen.setReader(on);
    }

    // Keys.

    #keys() {
        this.keys = new Keys();
        const { keys } = this;
        const inTerminal = () =>
            Boolean(this.opened) && this.view === 'processes' && !this.opened.control?.on;
        const onTerminal = () => inTerminal() && this.opened.node.contains(document.activeElement);
        const view = () => this.opened;
        keys.add('Everywhere', () => Boolean(this.views) && !this.opened?.control?.on, [
            ['?', 'show these keys', () => keys.show()],
            ...VIEWS.map((name, i) => [String(i + 1), name, () => this.go(name)]),
            ['Escape', 'back', () => this.#leave(), 'Esc'],
            ['L', 'link for one more viewer', () => this.secondLink()],
            ['T', 'theme', () => this.nextTheme()],
            ['r', 'start a command (control)', () => (this.control ? this.start() : false)],
        ]);
        keys.add('Process', onTerminal, [
            ['/', 'search the output', () => view().openFinder()],
            ['PageUp', 'scroll up', () => view().scroll(-1)],
            ['PageDown', 'scroll down', () => view().scroll(1)],
            ['Home', 'to the beginning', () => view().screen.term.scrollToTop()],
            ['End', 'to the end', () => view().follow()],
        ]);
        keys.add('Process', inTerminal, [
            ['e', 'follow the end', () => view().follow()],
            ['n', 'next match', () => view().find(false)],
            ['N', 'previous match', () => view().find(true)],
            ['o', 'both streams, stdout, stderr', () => view().nextOnly()],
            ['c', 'copy the selection', () => void view().copySelection()],
            [
                'd',
                'download the output',
                () => void view().download(view().row.tty ? 'terminal' : 'stdout'),
            ],
            ['+', 'larger text', () => view().screen.setZoom(1)],
            ['-', 'smaller text', () => view().screen.setZoom(-1)],
            ['0', 'text that fits', () => view().screen.setZoom(0)],
            ['[', 'process above', () => this.step(-1)],
            [']', 'process below', () => this.step(1)],
        ]);
        const may = () => inTerminal() && this.control && !view().control.typeButton.disabled;
        keys.add('Control', may, [
            ['t', 'type into the program', () => view().control.setTyping(true)],
            ['Ctrl+Shift+L', 'stop typing', null],
            [
                'g',
                'give the terminal the size of the window',
                () => (view().row.tty ? view().control.fit() : false),
            ],
            ['i', 'interrupt (SIGINT)', () => void view().control.signal('interrupt')],
            ['K', 'terminate…', () => void view().control.terminate()],
        ]);
        const list = () => this.views?.[this.view]?.list;
        keys.add('Lists', () => Boolean(list()), [
            ['/', 'filter', () => this.views[this.view].filter?.focus()],
            ['j', 'down', () => list().move(1), 'j ↓'],
            ['k', 'up', () => list().move(-1), 'k ↑'],
            [
                'x',
                'all, running, ended',
                () => (this.view === 'processes' ? this.views.processes.nextStates() : false),
            ],
            [
                'u',
                'parent directory',
                () => (this.view === 'files' ? this.views.files.up() : false),
            ],
            [
                'd',
                'download the file',
                () => this.view === 'files' && this.views.files.downloadViewed(),
            ],
        ]);
    }

    #leave() {
        const { activeElement } = document;
        if (
            activeElement?.matches('input, select') &&
            this.views[this.view].node.contains(activeElement)
        ) {
            this.views[this.view].list.node.focus();
            return true;
        }
        return this.back();
    }
}

new App();
