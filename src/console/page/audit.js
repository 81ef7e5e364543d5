// The audit stream: what happened on the server, newest first, with a filter.

import { ask, el, put, say } from './dom.js';
import { text } from './format.js';
import { VirtualList } from './list.js';

const MOST = 5000; // lines that the page keeps

/** What one line says, in short. */
function summary(line) {
    const parts = [];
    if (line.argv) {
        parts.push([].concat(line.argv).join(' '));
    }
    for (const name of [
        'what',
        'method',
        'path',
        'destination',
        'signal',
        'mode',
        'bytes',
        'status',
        'decision',
        'host',
        'port',
        'exitCode',
        'reason',
        'resumed',
        'count',
        'cwd',
        'viewer',
    ]) {
        if (line[name] !== undefined && line[name] !== null) {
            parts.push(`${name} ${line[name]}`);
        }
    }
    return text(parts.join(' · '), 500);
}

export class AuditView {
    constructor(app) {
        this.app = app;
        this.lines = []; // newest first
        this.lost = 0;
        this.words = '';
        this.kind = '';
        this.list = new VirtualList({
            label: 'Audit log, newest first',
            class: 'audit',
            key: (line) => line.n,
            columns: ['Time', 'Event', 'Who', 'What'],
            make: () => this.#row(),
            open: (line) => this.#details(line),
            empty: () => (this.lines.length ? 'No line fits the filter.' : 'No line yet.'),
        });
        this.filter = el('input', {
            type: 'search',
            placeholder: 'Filter the audit log',
            'aria-label': 'Filter the audit log',
            oninput: () => {
                this.words = this.filter.value.toLowerCase();
                this.update();
            },
        });
        this.kinds = el(
            'select',
            {
                'aria-label': 'Event',
                onchange: () => {
                    this.kind = this.kinds.value;
                    this.update();
                },
            },
            el('option', { value: '' }, 'All events'),
        );
        this.count = el('span', { class: 'count', role: 'status' });
        this.node = el(
            'section',
            { class: 'pane', 'aria-label': 'Audit log' },
            el('div', { class: 'bar' }, this.filter, this.kinds, this.count),
            this.list.node,
        );
        app.connection.on('console/auditLine', ({ n, lost, line }) => {
            this.lost += lost ?? 0;
            this.#take([{ ...object(line), n }]);
        });
        app.connection.addEventListener('state', () => app.connection.ready && this.#ask());
    }

    async #ask() {
        const started = this.app.connection.login.startedAtMs;
        if (this.started !== started) {
            // another server counts anew
            this.lines = [];
            this.next = undefined;
            this.started = started;
        }
        try {
            const answer = await this.app.connection.call('console/audit', { after: this.next });
            this.lost += answer.lost ?? 0;
            this.next = answer.next ?? this.next;
            this.#take(answer.lines.map((line) => ({ ...object(line.line ?? line), n: line.n })));
        } catch (error) {
            if (this.app.connection.ready) {
                say(`The audit log cannot be had: ${text(error.message, 200)}`, 'bad');
            }
        }
    }

    #take(lines) {
        const newest = this.lines[0]?.n ?? -1;
        const fresh = lines.filter((line) => line.n > newest).sort((a, b) => b.n - a.n);
        if (!fresh.length) {
            return;
        }
        this.next = Math.max(this.next ?? 0, fresh[0].n);
        this.lines = [...fresh, ...this.lines].slice(0, MOST);
        for (const line of fresh) {
            if (
                ![...this.kinds.options].some((one) => one.value === line.event) &&
                this.kinds.length < 40
            ) {
                this.kinds.append(el('option', { value: line.event }, text(line.event, 30)));
            }
        }
        this.#soon();
    }

    #soon() {
        this.frame ??= requestAnimationFrame(() => {
            this.frame = undefined;
            this.update();
        });
    }

    #row() {
        const node = el('div');
        const [time, event, who, what] = ['time', 'event', 'who', 'what'].map((name) => {
            const cell = el('span', { role: 'gridcell', class: name });
            node.append(cell);
            return cell;
        });
        return {
            node,
            show(line) {
                node.dataset.mood =
                    line.event === 'refused' || line.event === 'dropped'
                        ? 'bad'
                        : line.console
                          ? 'starting'
                          : 'good';
                put(time, text(line.ts, 40).replace('T', ' ').replace('Z', ''));
                put(event, text(line.event, 30) + (line.console ? ' (console)' : ''));
                put(who, text((line.console ? line.peer : (line.client ?? line.peer)) ?? '', 60));
                put(what, summary(line));
            },
        };
    }

    #details(line) {
        const { n, ...rest } = line;
        ask(
            `Audit line ${n}`,
            [
                el(
                    'pre',
                    { class: 'json', tabindex: 0 },
                    text(JSON.stringify(rest, null, 2), 20000).replaceAll('\\n', '\n'),
                ),
            ],
            [['', 'Close', 'main']],
        );
    }

    update() {
        const items = this.lines.filter(
            (line) =>
                (!this.kind || line.event === this.kind) &&
                (!this.words || JSON.stringify(line).toLowerCase().includes(this.words)),
        );
        put(
            this.count,
            (items.length === this.lines.length
                ? `${items.length} lines`
                : `${items.length} of ${this.lines.length} lines`) +
                (this.lost ? `, ${this.lost} lost` : ''),
        );
        if (!this.node.hidden) {
            this.list.set(items);
        }
    }
}

function object(line) {
    if (typeof line !== 'string') {
        return line;
    }
    try {
        return JSON.parse(line);
    } catch {
        return { event: 'unreadable', reason: line };
    }
}
