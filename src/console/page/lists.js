// The lists of processes and of sessions, with their filters.

import { button, el, put } from './dom.js';
import * as format from './format.js';
import { VirtualList } from './list.js';
import { alive } from './model.js';

const STATES = [
    ['all', 'All'],
    ['alive', 'Running'],
    ['ended', 'Ended'],
];

/** Makes a row of cells; `show` gives the text of each. */
function cells(names, show) {
    const node = el('div');
    const parts = {};
    for (const name of names) {
        parts[name] = el('span', { role: 'gridcell', class: name });
        node.append(parts[name]);
    }
    return {
        node,
        show(item) {
            Object.entries(show(item, node)).forEach(([name, value]) => put(parts[name], value));
        },
    };
}

export class ProcessList {
    /** @param {object} app  the page: model, openProcess(row), control, start() */
    constructor(app) {
        this.app = app;
        this.words = '';
        this.states = 'all';
        this.session = null;
        this.list = new VirtualList({
            label: 'Processes, newest first',
            class: 'processes',
            key: (row) => row.key,
            columns: ['Command', 'State', 'Age', 'CPU', 'Memory', 'Output', 'Sandbox', 'Directory'],
            make: () => this.#row(),
            open: (row) => app.openProcess(row),
            empty: () => this.#blank(),
        });
        this.filter = el('input', {
            type: 'search',
            placeholder: 'Filter: command, directory, session',
            'aria-label': 'Filter processes',
            oninput: () => this.setWords(this.filter.value),
            onkeydown: (event) => event.key === 'ArrowDown' && this.list.enter(event),
        });
        this.choice = el(
            'span',
            { class: 'choice', role: 'group', 'aria-label': 'States' },
            ...STATES.map(([value, name]) =>
                button(name, () => this.setStates(value), { 'data-state': value }),
            ),
        );
        this.chip = button('', () => this.setSession(null), { class: 'chip', hidden: true });
        this.count = el('span', { class: 'count', role: 'status' });
        this.node = el(
            'section',
            { class: 'pane', 'aria-label': 'Processes' },
            el(
                'div',
                { class: 'bar' },
                this.filter,
                this.choice,
                this.chip,
                this.count,
                app.control ? button('Start…', () => app.start(), { class: 'main' }) : null,
            ),
            this.list.node,
        );
        app.model.onScreen = () => [
            ...this.list.visible().map((row) => row.key),
            ...app.openKeys(),
        ];
        this.setStates('all');
    }

    #row() {
        const names = [
            'command',
            'state',
            'age',
            'cpu',
            'memory',
            'output',
            'sandbox',
            'directory',
        ];
        return cells(names, (row, node) => {
            const { model } = this.app;
            const load = model.loads.get(row.key);
            const until = row.endedAtMs ?? model.now();
            node.dataset.mood = format.mood(row);
            return {
                command: format.command(row.argv, row.argvOmitted),
                state: format.ending(row),
                age: row.startedAtMs ? format.age(until - row.startedAtMs) : '–',
                cpu: alive(row) ? format.percent(load?.cpu) : '',
                memory: alive(row) ? format.bytes(load?.rssBytes) : '',
                output: format.bytes(row.bytes),
                sandbox:
                    !row.sandbox || row.sandbox === 'none'
                        ? 'no sandbox'
                        : format.text(row.sandbox, 40),
                directory: row.cwd ? format.text(format.pathOf(row.cwd), 300) : '',
            };
        });
    }

    #blank() {
        if (!this.app.model.complete) {
            return 'Waiting for the server…';
        }
        return this.app.model.order.length
            ? 'No process fits the filter.'
            : 'No process yet. Whatever a client starts appears here.';
    }

    setWords(words) {
        this.words = words.toLowerCase();
        this.update();
    }

    setStates(states) {
        this.states = states;
        for (const one of this.choice.children) {
            one.setAttribute('aria-pressed', one.dataset.state === states);
        }
        this.update();
    }

    nextStates() {
        const at = STATES.findIndex(([value]) => value === this.states);
        this.setStates(STATES[(at + 1) % STATES.length][0]);
    }

    setSession(id) {
        this.session = id;
        this.chip.hidden = !id;
        put(this.chip, id ? `Session ${format.text(id.slice(0, 8))} ✕` : '');
        this.chip.setAttribute(
            'aria-label',
            id ? `Session ${id.slice(0, 8)}: show all sessions again` : '',
        );
        this.update();
    }

    #fits(row) {
        if (
            (this.session && row.sessionId !== this.session) ||
            (this.states !== 'all' && alive(row) !== (this.states === 'alive'))
        ) {
            return false;
        }
        if (!this.words) {
            return true;
        }
        const client = this.app.model.sessions.get(row.sessionId)?.client ?? '';
        const all = [
            ...(row.argv ?? []),
            row.cwd,
            row.processId,
            row.sessionId,
            client,
            row.pid,
        ].join(' ');
        return all.toLowerCase().includes(this.words);
    }

    update() {
        const { order } = this.app.model;
        const items = order.filter((row) => this.#fits(row));
        const running = order.filter(alive).length;
        put(
            this.count,
            items.length === order.length
                ? `${order.length} (${running} running)`
                : `${items.length} of ${order.length}`,
        );
        this.list.set(items);
    }
}

export class SessionList {
    /** @param {object} app  the page: model, showSession(id) */
    constructor(app) {
        this.app = app;
        this.list = new VirtualList({
            label: 'Sessions, newest first',
            class: 'sessions',
            key: (one) => one.sessionId,
            columns: ['Client', 'Connection', 'Peer', 'Age', 'Running', 'Processes', 'Session'],
            make: () => this.#row(),
            open: (one) => app.showSession(one.sessionId),
            empty: () => 'No session. A client makes one when it connects.',
        });
        this.node = el('section', { class: 'pane', 'aria-label': 'Sessions' }, this.list.node);
    }

    #row() {
        const names = ['client', 'connection', 'peer', 'age', 'running', 'processes', 'session'];
        return cells(names, (one, node) => {
            node.dataset.mood = one.connected ? 'running' : 'good';
            return {
                client: format.text(one.client ?? 'unnamed client', 100),
                connection: one.connected ? 'connected' : 'detached',
                peer: format.text(one.peer ?? '–', 60),
                age: format.age(this.app.model.now() - one.startedAtMs),
                running: `${one.running} running`,
                processes: `${one.count} in all`,
                session: format.text(one.sessionId.slice(0, 8)),
            };
        });
    }

    update() {
        const counts = new Map();
        for (const row of this.app.model.order) {
            const one = counts.get(row.sessionId) ?? { count: 0, running: 0 };
            one.count++;
            one.running += alive(row);
            counts.set(row.sessionId, one);
        }
        this.list.set(
            [...this.app.model.sessions.values()]
                .map((one) => ({
                    ...one,
                    ...(counts.get(one.sessionId) ?? { count: 0, running: 0 }),
                }))
                .sort((a, b) => b.startedAtMs - a.startedAtMs),
        );
    }
}
