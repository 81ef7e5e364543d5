// One process: what it is, its terminal, and, with control, what can be done to it.

import { Control } from './control.js';
import { ask, button, copy, el, menu, put, save, say, toggle } from './dom.js';
import { Feed } from './feed.js';
import * as format from './format.js';
import { alive } from './model.js';
import { Screen } from './terminal.js';

const STREAMS = [
    ['', 'Both'],
    ['stdout', 'stdout'],
    ['stderr', 'stderr'],
];

export class ProcessView {
    /** @param {object} app  the page: connection, model, feeds, dark(), reader, showFiles(), back() */
    constructor(app, row) {
        this.app = app;
        this.row = row;
        this.only = '';
        this.screen = new Screen({
            tty: row.tty,
            control: app.control,
            cols: row.size?.cols,
            rows: row.size?.rows,
            label: 'Output',
            typed: (data) => this.control?.typed(data),
            key: (event) => this.control?.key(event),
            reflowed: () => this.#reflowed(),
        });
        this.control = app.control ? new Control(app, this) : null;
        this.node = el(
            'section',
            { class: 'process', 'aria-label': 'Process' },
            this.#head(),
            this.#bar(),
            this.#finder(),
            this.screen.node,
            this.control?.banner ?? null,
            this.#foot(),
        );
        this.update();
    }

    #head() {
        this.title = el('h2', { class: 'command' });
        this.badge = el('span', { class: 'badge' });
        this.facts = el('dl', { class: 'facts' });
        this.values = {};
        const names = [
            'pid',
            'directory',
            'started',
            'age',
            'CPU',
            'memory',
            'output',
            'sandbox',
            'session',
        ];
        for (const name of names) {
            this.values[name] =
                name === 'directory'
                    ? button('', () => this.app.showFiles(format.pathOf(this.row.cwd)), {
                          class: 'link',
                      })
                    : el('span');
            this.facts.append(el('div', {}, el('dt', {}, name), el('dd', {}, this.values[name])));
        }
        const more = el('details', { class: 'about' }, el('summary', {}, 'About'), this.facts);
        more.open = matchMedia('(min-width: 700px) and (min-height: 700px)').matches;
        return el(
            'header',
            {},
            el(
                'div',
                { class: 'line' },
                button('‹ List', () => this.app.back(), { class: 'back' }),
                this.title,
                this.badge,
            ),
            more,
        );
    }

    #bar() {
        this.followButton = button('Follow', () => this.follow(), {
            title: 'Scroll to the end (e)',
        });
        this.choice = el(
            'span',
            { class: 'choice', role: 'group', 'aria-label': 'Streams' },
            ...STREAMS.map(([value, name]) =>
                button(name, () => this.setOnly(value), { 'data-stream': value }),
            ),
        );
        return el(
            'div',
            { class: 'bar', role: 'toolbar', 'aria-label': 'Terminal' },
            this.row.tty ? null : this.choice,
            this.followButton,
            button('Search', () => this.openFinder(), { title: 'Search the output (/)' }),
            menu('Copy', [
                ['Selection', () => this.copySelection()],
                [
                    'Everything, as text',
                    async () => (await copy(this.screen.text())) && say('Copied.'),
                ],
            ]),
            this.#downloads(),
            el(
                'span',
                { class: 'zoom', role: 'group', 'aria-label': 'Text size' },
                button('A−', () => this.screen.setZoom(-1), { 'aria-label': 'Smaller text' }),
                button('A+', () => this.screen.setZoom(1), { 'aria-label': 'Larger text' }),
            ),
            ...(this.control?.tools ?? []),
        );
    }

    #downloads() {
        const streams = this.row.tty
            ? [['terminal', 'Output, as the program wrote it']]
            : [
                  ['stdout', 'stdout'],
                  ['stderr', 'stderr'],
              ];
        return menu('Download', [
            ...streams.map(([stream, name]) => [name, () => this.download(stream)]),
            ['Text, as shown', () => save([this.screen.text()], `${this.#name()}.txt`)],
        ]);
    }

    #finder() {
        this.words = el('input', {
            type: 'search',
            placeholder: 'Search the output',
            'aria-label': 'Search the output',
            oninput: () => this.find(true),
            onkeydown: (event) => this.#finderKey(event),
        });
        this.found = el('span', { role: 'status', class: 'found' });
        this.finder = el(
            'div',
            { class: 'finder', role: 'search', hidden: true },
            this.words,
            this.found,
            button('Previous', () => this.find(true)),
            button('Next', () => this.find(false)),
            button('Close', () => this.closeFinder()),
        );
        return this.finder;
    }

    #foot() {
        this.note = el('p', { class: 'note', role: 'status' });
        return this.note;
    }

    /** Begins to show the output; the node must be in the document. */
    open() {
        this.screen.setTheme(this.app.dark());
        this.screen.setReader(this.app.reader);
        this.screen.open();
        this.feed = new Feed(this.app.feeds, this.row.sessionId, this.row.processId, {
            write: (stream, data, drawn) => {
                if (this.only && stream !== this.only) {
                    drawn();
                } else {
                    this.screen.write(stream, data, drawn);
                }
            },
            restart: () => this.screen.restart(),
            resize: (cols, rows) => this.screen.writeSize(cols, rows),
            changed: () => this.update(),
        });
        this.screen.term.onScroll(() => this.#scrolled());
        this.screen.host.addEventListener('wheel', () => this.#scrolled(), { passive: true });
        this.update();
    }

    close() {
        this.closed = true;
        this.feed?.close();
        this.screen.dispose();
    }

    #reflowed() {
        clearTimeout(this.reflow);
        this.reflow = setTimeout(() => !this.closed && this.feed?.redraw(this.only), 150);
    }

    #scrolled() {
        this.followButton.setAttribute('aria-pressed', this.screen.following);
    }

    /** Shows the present row of the list, and how the output arrives. */
    update() {
        const { model } = this.app;
        const row = model.processes.get(this.row.key);
        this.removed = !row && model.complete;
        this.row = row ?? this.row;
        const now = this.removed && alive(this.row) ? { ...this.row, state: 'closed' } : this.row;
        const load = model.loads.get(this.row.key);
        const session = model.sessions.get(this.row.sessionId);
        put(this.title, format.command(now.argv, now.argvOmitted));
        put(this.badge, this.#state(now));
        this.badge.dataset.mood = this.removed && alive(this.row) ? 'bad' : format.mood(now);
        const until = now.endedAtMs ?? model.now();
        const values = {
            pid: String(now.pid ?? '–'),
            directory: now.cwd ? format.text(format.pathOf(now.cwd)) : '–',
            started: format.clock(now.startedAtMs),
            age: now.startedAtMs ? format.age(until - now.startedAtMs) : '–',
            CPU: format.percent(load?.cpu),
            memory: format.bytes(load?.rssBytes),
            output: format.bytes(now.bytes),
            sandbox: format.text(now.sandbox ?? 'none', 40),
            session:
                format.text(now.sessionId.slice(0, 8)) +
                (session?.client ? ` (${format.text(session.client, 60)})` : ''),
        };
        Object.entries(values).forEach(([name, value]) => put(this.values[name], value));
        if (
            now.size &&
            !this.feed?.sizes.length &&
            this.screen.resize(now.size.cols, now.size.rows)
        ) {
            // The list says it later than the output: draw anew what came meanwhile.
            this.feed?.redraw(this.only);
        }
        for (const one of this.choice.children) {
            one.setAttribute('aria-pressed', one.dataset.stream === this.only);
        }
        this.#scrolled();
        this.control?.update(alive(this.row) && !this.removed && !this.feed?.ended);
        put(this.note, this.#note());
        toggle(this.note, 'hidden', !this.note.textContent);
    }

    #state(row) {
        const ended = this.feed?.ended;
        if (ended && alive(this.row)) {
            return format.ending({ state: 'exited', ...ended });
        }
        return this.removed && alive(this.row) ? 'gone' : format.ending(row);
    }

    #note() {
        const { feed } = this;
        const notes = [];
        if (feed?.lost) {
            notes.push(
                `Output is missing before this: ${feed.lost} pieces came faster than the page ` +
                    'could draw, or are older than what the server keeps.',
            );
        }
        if (this.removed && (feed?.status === 'gone' || feed?.status === 'ended')) {
            notes.push(
                'The server has forgotten this process. What you see is what this page kept.',
            );
        } else if (feed?.status === 'gone') {
            notes.push(
                `The output cannot be had: ${format.text(feed.reason ?? 'the process is gone', 200)}.`,
            );
        } else if (feed?.status === 'refused') {
            notes.push('Too many viewers watch this process.');
        }
        return notes.join(' ');
    }

    setDark(dark) {
        this.screen.setTheme(dark);
    }

    setOnly(stream) {
        this.only = stream;
        this.feed.redraw(stream);
        this.update();
    }

    nextOnly() {
        if (this.row.tty) {
            return false;
        }
        const at = STREAMS.findIndex(([value]) => value === this.only);
        this.setOnly(STREAMS[(at + 1) % STREAMS.length][0]);
        return true;
    }

    follow() {
        this.screen.follow();
        this.#scrolled();
    }

    scroll(pages) {
        this.screen.term.scrollPages(pages);
        this.#scrolled();
    }

    async copySelection() {
        const chosen = this.screen.selection();
        if (!chosen) {
            say('Nothing is selected: drag over the output first.');
        } else if (await copy(chosen)) {
            say('Copied.');
        }
    }

    #name() {
        return format.fileName(
            (this.row.argv?.[0] ?? 'process').split('/').pop() + '-' + (this.row.pid ?? ''),
        );
    }

    /** Saves what the server retains of a stream; if it forgot the process, what the page has. */
    async download(stream) {
        const name = `${this.#name()}.${stream}.log`;
        const { sessionId, processId } = this.row;
        try {
            const all = await this.app.connection.call('console/snapshot', {
                sessionId,
                processId,
            });
            const data = format.fromBase64(all[stream]);
            const { headBytes, omittedBytes } = all.streams[stream];
            const parts = omittedBytes
                ? [
                      data.subarray(0, headBytes),
                      `\n[... ${omittedBytes} bytes that the server has not kept ...]\n`,
                      data.subarray(headBytes),
                  ]
                : [data];
            save(parts, name);
            say(`Saving ${format.bytes(data.length)} as ${name}.`);
        } catch (error) {
            const parts = this.feed.parts(this.row.tty ? '' : stream);
            save(parts, name);
            say(
                `Saving what this page kept: the server says “${format.text(error.message, 200)}”.`,
                'bad',
            );
        }
    }

    openFinder() {
        toggle(this.finder, 'hidden', false);
        this.words.focus();
        this.words.select();
    }

    closeFinder() {
        toggle(this.finder, 'hidden', true);
        this.screen.endFind();
        put(this.found, '');
        this.screen.term.focus();
    }

    #finderKey(event) {
        if (event.key === 'Enter') {
            this.find(!event.shiftKey);
        } else if (event.key === 'Escape') {
            this.closeFinder();
        } else {
            return;
        }
        event.preventDefault();
        event.stopPropagation();
    }

    find(back) {
        if (!this.words.value) {
            this.screen.endFind();
            put(this.found, '');
            return;
        }
        const any = this.screen.find(this.words.value, back, ({ resultIndex, resultCount }) => {
            put(
                this.found,
                resultIndex >= 0 ? `${resultIndex + 1} of ${resultCount}` : `${resultCount} found`,
            );
        });
        if (!any) {
            put(this.found, 'not found');
        }
    }

    /** What the browser shows while somebody is asked. */
    confirm(question, details, choices) {
        return ask(
            question,
            details.map((one) => el('p', {}, one)),
            choices,
        );
    }
}
