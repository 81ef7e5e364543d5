// A terminal that shows the output of a process: xterm.js without everything by which output could
// reach beyond its own rows. For pipes it marks the rows that stderr wrote.

import { SearchAddon } from '@xterm/addon-search';
import { Unicode11Addon } from '@xterm/addon-unicode11';
import { Terminal } from '@xterm/xterm';
import { el } from './dom.js';

const SCROLLBACK = 10000;
const SMALLEST = 7; // px of a font
const LARGEST = 15;
const MARKS = /[\p{M}\p{Cf}]+/gu;
const MOST_MARKS = 8; // behind each other
const MOST_COLS = 1000;
const MOST_ROWS = 500;
const AT_ONCE = 128 << 10; // bytes that xterm.js has to draw
const MOUSE = new Set([9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016]);
const OUT = 1;
const ERR = 2;

const DARK = {
    background: '#11151c',
    foreground: '#d7dde6',
    cursor: '#d7dde6',
    cursorAccent: '#11151c',
    selectionBackground: '#3a5f92',
    overviewRulerBorder: '#11151c',
    black: '#3b4252',
    red: '#f2777a',
    green: '#8fd18a',
    yellow: '#f0c674',
    blue: '#7db3f5',
    magenta: '#d2a1f0',
    cyan: '#76d1d6',
    white: '#d7dde6',
    brightBlack: '#7f8899',
    brightRed: '#ff9a98',
    brightGreen: '#b1e8a8',
    brightYellow: '#ffdf94',
    brightBlue: '#a5ccff',
    brightMagenta: '#e6c2ff',
    brightCyan: '#a2ecee',
    brightWhite: '#ffffff',
};
const LIGHT = {
    background: '#ffffff',
    foreground: '#1f2630',
    cursor: '#1f2630',
    cursorAccent: '#ffffff',
    selectionBackground: '#b6d3fb',
    overviewRulerBorder: '#ffffff',
    black: '#1f2630',
    red: '#b3261e',
    green: '#1b7a35',
    yellow: '#8a6100',
    blue: '#1a5fc4',
    magenta: '#8b3db0',
    cyan: '#0b7480',
    white: '#5e6877',
    brightBlack: '#6b7584',
    brightRed: '#c9372c',
    brightGreen: '#22863a',
    brightYellow: '#9a6e00',
    brightBlue: '#2b70d8',
    brightMagenta: '#9b4dca',
    brightCyan: '#128591',
    brightWhite: '#3c4552',
};
const MATCHES = {
    dark: { matchBackground: '#6b5a12', activeMatchBackground: '#b4430a' },
    light: { matchBackground: '#ffe58a', activeMatchBackground: '#ffb366' },
};
const RULER = { matchOverviewRuler: '#c9a92c', activeMatchColorOverviewRuler: '#f97316' };

export class Screen {
    /**
     * @param {object} o  tty, control, cols, rows; label; typed(bytes): what the user types while `typing`
     */
    constructor(o) {
        this.o = o;
        this.typing = false;
        this.answers = false; // whether the terminal may answer questions of the program
        this.zoom = 0; // font size that the user chose; 0: as fits
        this.term = new Terminal({
            cols: 80,
            rows: 24,
            scrollback: SCROLLBACK,
            convertEol: !o.tty,
            allowProposedApi: true,
            disableStdin: true,
            cursorInactiveStyle: o.tty ? 'outline' : 'none',
            fontFamily: 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace',
            fontSize: 13,
            minimumContrastRatio: 4.5,
            windowOptions: {},
            logLevel: 'off',
            altClickMovesCursor: false,
            linkHandler: { activate() {}, hover() {}, leave() {} },
            overviewRuler: { width: 8 },
        });
        this.search = new SearchAddon({ highlightLimit: 500 });
        this.term.loadAddon(this.search);
        this.term.loadAddon(new Unicode11Addon());
        this.term.unicode.activeVersion = '11';
        this.#disarm();
        this.term.onData((data) => this.#typed(new TextEncoder().encode(data)));
        this.term.onBinary((data) => this.#typed(Uint8Array.from(data, (c) => c.charCodeAt(0))));
        this.term.onRender(() => this.#drawGutter());
        this.term.attachCustomKeyEventHandler((event) => this.o.key?.(event) ?? this.typing);
        this.marks = new Marks(this.term);
        this.decoders = new Map(); // of each stream
        this.run = 0; // marks that the text so far ends with
        this.queue = []; // what xterm.js does not have yet
        this.parsing = 0; // bytes that it has
        this.gutter = el('div', { class: 'gutter', 'aria-hidden': 'true' });
        this.host = el('div', { class: 'xterm-host' });
        this.node = el(
            'div',
            { class: o.tty ? 'screen tty' : 'screen', role: 'region', 'aria-label': o.label },
            this.gutter,
            this.host,
        );
    }

    /** The node must be in the document. */
    open() {
        this.term.open(this.host);
        if (this.o.cols) {
            this.resize(this.o.cols, this.o.rows);
        }
        this.observer = new ResizeObserver(() => this.fit());
        this.observer.observe(this.node);
        this.fit();
    }

    dispose() {
        this.observer?.disconnect();
        this.term.dispose();
        this.disposed = true;
    }

    /**
     * Output may neither set titles, palettes and clipboards nor make links. Questions get an
     * answer only if this page started the program: its client's terminal answers otherwise, and
     * an answer is input.
     */
    #disarm() {
        const { parser } = this.term;
        for (const code of [
            0, 1, 2, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 17, 19, 21, 22, 50, 51, 52, 99, 104, 105,
            110, 111, 112, 117, 119, 133, 633, 777, 1337,
        ]) {
            parser.registerOscHandler(code, () => true);
        }
        const ask = () => !(this.answers && this.typing);
        const questions = [
            { final: 'c' },
            { prefix: '>', final: 'c' },
            { prefix: '=', final: 'c' },
            { final: 'n' },
            { prefix: '?', final: 'n' },
            { intermediates: '$', final: 'p' },
            { prefix: '>', final: 'q' },
            { prefix: '?', intermediates: '$', final: 'p' },
            { prefix: '?', final: 'u' },
        ];
        questions.forEach((id) => parser.registerCsiHandler(id, ask));
        parser.registerDcsHandler({ intermediates: '$', final: 'q' }, ask);
        parser.registerDcsHandler({ intermediates: '+', final: 'q' }, () => true);
        parser.registerEscHandler({ final: 'Z' }, ask);
        parser.registerCsiHandler({ final: 't' }, () => true); // windows
        // xterm.js does these as often as it is told, even a billion times.
        const tooOften = (params) => params[0] > Math.max(this.term.cols, this.term.rows);
        [...'LMSTIZb'].forEach((final) => parser.registerCsiHandler({ final }, tooOften));
        // Who only looks keeps the mouse for selecting.
        const mouse = (params) => !this.o.control && params.every((mode) => MOUSE.has(mode));
        parser.registerCsiHandler({ prefix: '?', final: 'h' }, mouse);
        parser.registerCsiHandler({ prefix: '?', final: 'l' }, mouse);
    }

    #typed(data) {
        if (this.typing) {
            this.o.typed(data);
        }
    }

    /** Draws a chunk; `drawn` is called when it is on the screen, or dropped by restart(). */
    write(stream, data, drawn) {
        this.queue.push({ stream, data, drawn });
        this.#pump();
    }

    /** Clears everything, also what is not drawn yet. */
    restart() {
        const dropped = this.queue;
        this.queue = [{ reset: true }];
        dropped.forEach((one) => one.drawn?.());
        this.#pump();
    }

    /** Makes text of bytes. A character has few marks: thousands of them in one cell take minutes. */
    #decode(stream, data) {
        let decoder = this.decoders.get(stream);
        if (!decoder) {
            decoder = new TextDecoder('utf-8', { ignoreBOM: true });
            this.decoders.set(stream, decoder);
        }
        const text = decoder.decode(data, { stream: true });
        let run = 0; // marks at the end
        const clean = text.replace(MARKS, (marks, at) => {
            const all = [...marks];
            const before = at === 0 ? this.run : 0;
            if (at + marks.length === text.length) {
                run = before + all.length;
            }
            return all.slice(0, Math.max(0, MOST_MARKS - before)).join('');
        });
        this.run = run || (text ? 0 : this.run);
        return clean;
    }

    /** Takes another size behind what is to be drawn before. */
    writeSize(cols, rows) {
        this.queue.push({ size: [cols, rows] });
        this.#pump();
    }

    /** Gives xterm.js a little at a time: what it has cannot be taken back. */
    #pump() {
        while (this.queue.length && this.parsing < AT_ONCE && !this.disposed) {
            if (!this.queue[0].data && this.parsing) {
                return; // after what it has
            }
            const { reset, size, stream, data, drawn } = this.queue.shift();
            if (size) {
                this.resize(...size);
                continue;
            }
            if (reset) {
                this.decoders = new Map();
                this.term.reset();
                this.marks.clear();
                continue;
            }
            this.parsing += data.length;
            this.term.write(this.#decode(stream, data), () => {
                this.parsing -= data.length;
                if (!this.o.tty) {
                    this.marks.wrote(stream === 'stderr' ? ERR : OUT);
                }
                drawn?.();
                this.#pump();
            });
        }
    }

    setTyping(on) {
        this.typing = on;
        this.term.options.disableStdin = !on;
        this.term.options.cursorBlink = on;
        if (on) {
            this.term.focus();
        }
    }

    setTheme(dark) {
        this.dark = dark;
        this.term.options.theme = dark ? DARK : LIGHT;
        this.node.style.background = this.o.tty ? '' : (dark ? DARK : LIGHT).background;
    }

    setReader(on) {
        this.term.options.screenReaderMode = on;
    }

    /** Takes the size of the process's terminal, which may be absurd; says whether it is another. */
    resize(wantedCols, wantedRows) {
        const cols = Math.min(MOST_COLS, Math.max(2, wantedCols));
        const rows = Math.min(MOST_ROWS, Math.max(1, wantedRows));
        if (cols === this.term.cols && rows === this.term.rows) {
            return false;
        }
        this.term.resize(cols, rows);
        this.fit();
        return true;
    }

    /** How many columns and rows have room at the present font size. */
    room() {
        const cell = this.#cell();
        const { clientWidth, clientHeight } = this.node;
        if (!cell || !clientWidth) {
            return null;
        }
        return {
            cols: Math.max(
                20,
                Math.min(
                    MOST_COLS,
                    Math.floor((clientWidth - (this.o.tty ? 24 : 48)) / cell.width),
                ),
            ),
            rows: Math.max(4, Math.min(MOST_ROWS, Math.floor((clientHeight - 8) / cell.height))),
        };
    }

    #cell() {
        const grid = this.host.querySelector('.xterm-screen');
        return grid?.offsetWidth
            ? {
                  width: grid.offsetWidth / this.term.cols,
                  height: grid.offsetHeight / this.term.rows,
              }
            : null;
    }

    /** A terminal keeps its size and takes the font that fits; text of pipes takes the window's. */
    fit() {
        const cell = this.#cell();
        if (!cell || !this.node.clientWidth) {
            return;
        }
        if (this.o.tty) {
            const font = this.term.options.fontSize;
            const wide = (font * (this.node.clientWidth - 24)) / (cell.width * this.term.cols);
            const high = (font * (this.node.clientHeight - 8)) / (cell.height * this.term.rows);
            const best = Math.min(
                LARGEST,
                Math.max(SMALLEST, Math.floor(2 * Math.min(wide, high)) / 2),
            );
            this.#font(this.zoom || best);
            return;
        }
        this.#font(this.zoom || 13);
        const room = this.room();
        if (room && (room.cols !== this.term.cols || room.rows !== this.term.rows)) {
            const reflows = room.cols !== this.term.cols;
            this.term.resize(room.cols, room.rows);
            if (reflows) {
                this.o.reflowed?.();
            }
        }
    }

    #font(size) {
        if (size !== this.term.options.fontSize) {
            this.term.options.fontSize = size;
        }
    }

    setZoom(by) {
        this.zoom = by ? Math.min(32, Math.max(SMALLEST, this.term.options.fontSize + by)) : 0;
        this.fit();
    }

    get following() {
        const { viewportY, baseY } = this.term.buffer.active;
        return viewportY >= baseY;
    }

    follow() {
        this.term.scrollToBottom();
    }

    find(words, back, onCount) {
        this.counting ??= this.search.onDidChangeResults((found) => this.onCount?.(found));
        this.onCount = onCount;
        const decorations = { ...RULER, ...MATCHES[this.dark ? 'dark' : 'light'] };
        const options = { decorations, incremental: false };
        return back
            ? this.search.findPrevious(words, options)
            : this.search.findNext(words, options);
    }

    endFind() {
        this.search.clearDecorations();
        this.term.clearSelection();
    }

    selection() {
        return this.term.getSelection();
    }

    /** All text, scrollback included; wrapped lines are one. */
    text() {
        const { active } = this.term.buffer;
        const lines = [];
        for (let i = 0; i < active.length; i++) {
            const line = active.getLine(i);
            const next = active.getLine(i + 1);
            const words = line.translateToString(!next?.isWrapped);
            if (line.isWrapped && lines.length) {
                lines[lines.length - 1] += words;
            } else {
                lines.push(words);
            }
        }
        while (lines.length && !lines.at(-1)) {
            lines.pop();
        }
        return lines.join('\n') + (lines.length ? '\n' : '');
    }

    /** Says beside each visible row whether stderr wrote it. */
    #drawGutter() {
        if (this.o.tty) {
            return;
        }
        const cell = this.#cell();
        const { viewportY } = this.term.buffer.active;
        while (this.gutter.children.length < this.term.rows) {
            this.gutter.append(el('div'));
        }
        for (let i = 0; i < this.gutter.children.length; i++) {
            const row = this.gutter.children[i];
            const mark = i < this.term.rows ? this.marks.at(viewportY + i) : 0;
            row.className = mark & ERR ? 'err' : '';
            row.style.height = `${cell?.height ?? 0}px`;
            row.textContent = mark === ERR ? 'err' : mark === (ERR | OUT) ? 'mix' : '';
        }
    }
}

/** Which streams wrote each line of a terminal; lines count from the first one ever. */
class Marks {
    constructor(term) {
        this.term = term;
        this.clear();
    }

    clear() {
        this.ring = new Uint8Array(SCROLLBACK + 1024);
        this.trimmed = 0; // lines that the scrollback has lost
        this.line = 0;
        this.anchor?.dispose();
        this.anchor = null;
    }

    /** Notes that a stream wrote from where the cursor was to where it is. */
    wrote(stream) {
        const { baseY, cursorY } = this.term.buffer.active;
        const before = this.line;
        if (this.anchor && !this.anchor.isDisposed) {
            this.trimmed = before - this.anchor.line;
        } else if (this.anchor) {
            // one chunk filled the whole scrollback
            this.trimmed += this.ring.length;
        }
        this.line = this.trimmed + baseY + cursorY;
        const first = Math.max(Math.min(before, this.line), this.line - this.ring.length + 1, 0);
        const last = Math.max(this.line, first);
        for (let i = first; i <= last; i++) {
            const at = i % this.ring.length;
            this.ring[at] = i === before ? this.ring[at] | stream : stream;
        }
        // The next chunk begins on a fresh line: nobody has written that one yet.
        if (this.term.buffer.active.cursorX === 0 && last > before) {
            this.ring[last % this.ring.length] = 0;
        }
        this.anchor?.dispose();
        this.anchor = this.term.registerMarker(0);
    }

    at(bufferLine) {
        return this.ring[(this.trimmed + bufferLine) % this.ring.length];
    }
}
