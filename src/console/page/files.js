// Files of the server, for reading: directories, text, images, downloads. A file is text or pixels
// here, never markup: HTML and SVG are shown as their source.

import { button, el, put, save, say } from './dom.js';
import * as format from './format.js';
import { imageOf } from './image.js';
import { VirtualList } from './list.js';

const PART = 256 << 10; // bytes of text that are shown at once
const BLOCK = 1 << 20;
const LARGEST_IMAGE = 32 << 20;
const LARGEST_DOWNLOAD = 2 ** 31;
const ASKED = 8; // metadata requests at a time

export class FilesView {
    constructor(app) {
        this.app = app;
        this.path = null;
        this.entries = [];
        this.meta = new Map(); // path: metadata, or null while asked
        this.asking = 0;
        this.handles = 0; // opened ever
        this.list = new VirtualList({
            label: 'Directory',
            class: 'files',
            key: (entry) => entry.path,
            columns: ['Name', 'Size', 'Changed', 'Mode'],
            make: () => this.#row(),
            open: (entry) => this.#open(entry),
            empty: () => this.blank ?? '',
        });
        this.where = el('input', {
            'aria-label': 'Directory or file',
            spellcheck: 'false',
            autocapitalize: 'off',
            onkeydown: (event) => event.key === 'Enter' && this.go(this.where.value),
        });
        this.viewer = el('section', { class: 'viewer', 'aria-label': 'File', hidden: true });
        this.filter = el('input', {
            type: 'search',
            placeholder: 'Filter names',
            'aria-label': 'Filter names',
            oninput: () => this.update(),
        });
        this.node = el(
            'section',
            { class: 'pane filespane', 'aria-label': 'Files' },
            el(
                'div',
                { class: 'bar' },
                button('Up', () => this.up(), { title: 'Parent directory (u)' }),
                this.where,
                button('Go', () => this.go(this.where.value)),
                this.filter,
            ),
            el('div', { class: 'split' }, this.list.node, this.viewer),
        );
    }

    call(method, params) {
        return this.app.connection.call(method, params);
    }

    show() {
        if (this.path === null) {
            this.go(format.pathOf(this.app.connection.login?.cwd) || '/');
        }
    }

    up() {
        if (!this.viewer.hidden && this.isNarrow()) {
            this.closeViewer();
        } else {
            this.go(format.parent(this.path ?? '/'));
        }
    }

    isNarrow() {
        return this.node.clientWidth < 800;
    }

    /** Goes to a directory, or to the directory of a file and shows that. */
    async go(path) {
        const turn = (this.turn = {});
        try {
            const about = await this.call('fs/getMetadata', { path });
            const directory = about.isDirectory ? path : format.parent(path);
            const { entries } = await this.call('fs/readDirectory', { path: directory });
            if (this.turn !== turn) {
                return;
            }
            this.path = directory;
            this.where.value = format.text(directory);
            this.filter.value = '';
            this.meta.clear();
            this.blank = 'The directory is empty.';
            this.entries = entries
                .map((one) => ({ ...one, path: format.join(directory, one.fileName) }))
                .sort(
                    (a, b) => b.isDirectory - a.isDirectory || (a.fileName < b.fileName ? -1 : 1),
                );
            this.closeViewer();
            this.list.active = null;
            this.list.node.scrollTop = 0;
            this.update();
            if (!about.isDirectory) {
                await this.#view(path, about);
            }
        } catch (error) {
            say(`${format.text(path, 200)}: ${format.text(error.message, 200)}`, 'bad');
        }
    }

    update() {
        const words = this.filter.value.toLowerCase();
        this.list.set(this.entries.filter((one) => one.fileName.toLowerCase().includes(words)));
        this.#askVisible();
    }

    #row() {
        const parts = ['name', 'size', 'changed', 'mode'].map((name) =>
            el('span', { role: 'gridcell', class: name }),
        );
        return {
            node: el('div', {}, ...parts),
            show: (entry) => {
                const about = this.meta.get(entry.path);
                const kind = entry.isDirectory ? '/' : entry.isFile ? '' : ' @';
                parts[0].parentNode.dataset.mood = entry.isDirectory ? 'running' : 'good';
                put(parts[0], format.text(entry.fileName, 300) + kind);
                put(parts[1], about && !about.isDirectory ? format.bytes(about.size) : '');
                put(parts[2], about ? format.clock(about.modifiedAtMs) : '');
                put(parts[3], about ? (about.mode & 0o7777).toString(8).padStart(4, '0') : '');
                this.#askSoon();
            },
        };
    }

    #askSoon() {
        this.soon ??= requestAnimationFrame(() => {
            this.soon = undefined;
            this.#askVisible();
        });
    }

    /** Asks for what the visible rows do not know yet. */
    #askVisible() {
        for (const entry of this.list.visible()) {
            if (this.asking >= ASKED) {
                return;
            }
            if (!this.meta.has(entry.path)) {
                this.#askOne(entry.path);
            }
        }
    }

    async #askOne(path) {
        this.meta.set(path, null);
        this.asking++;
        try {
            this.meta.set(path, await this.call('fs/getMetadata', { path, followSymlinks: false }));
        } catch {
            // It is gone, or not ours to see: its row says no more.
        }
        this.asking--;
        this.list.draw();
        this.#askVisible();
    }

    async #open(entry) {
        if (entry.isDirectory) {
            this.go(entry.path);
            return;
        }
        try {
            const about = await this.call('fs/getMetadata', { path: entry.path });
            if (about.isDirectory) {
                this.go(entry.path);
            } else {
                await this.#view(entry.path, about);
            }
        } catch (error) {
            say(`${format.text(entry.fileName, 200)}: ${format.text(error.message, 200)}`, 'bad');
        }
    }

    closeViewer() {
        this.viewer.hidden = true;
        this.viewer.replaceChildren();
        if (this.imageUrl) {
            URL.revokeObjectURL(this.imageUrl);
            this.imageUrl = null;
        }
    }

    async #view(path, about) {
        this.closeViewer();
        const name = format.text(path.slice(path.lastIndexOf('/') + 1), 300);
        this.progress = el('span', { role: 'status', class: 'count' });
        this.content = el('div', {
            class: 'content',
            tabindex: 0,
            'aria-label': `Content of ${name}`,
        });
        this.viewer.append(
            el(
                'div',
                { class: 'bar' },
                el('h2', {}, name),
                el('span', { class: 'count' }, format.bytes(about.size)),
                this.progress,
                button('Download', () => this.download(path, about.size), {
                    title: 'Download (d)',
                }),
                button('Close', () => this.closeViewer()),
            ),
            this.content,
        );
        this.viewer.hidden = false;
        this.viewed = { path, size: about.size };
        if (!about.isFile) {
            this.content.append(
                el('p', { class: 'blank' }, 'Not a regular file: it cannot be shown.'),
            );
            return;
        }
        const head = await this.#read(path, 0, PART, about.size);
        const type = imageOf(head);
        if (type && about.size <= LARGEST_IMAGE) {
            await this.#image(path, about.size, head, type, name);
        } else {
            await this.#text(path, about.size, 0, head);
        }
    }

    /** Reads part of a file. */
    async #read(path, from, most, size, step) {
        const handleId = `page-${++this.handles}`;
        await this.call('fs/open', { handleId, path, mode: 'read' });
        const parts = [];
        let at = from;
        try {
            while (at < from + most) {
                const len = Math.min(BLOCK, from + most - at);
                const { chunk, eof } = await this.call('fs/readBlock', {
                    handleId,
                    offset: at,
                    len,
                });
                const data = format.fromBase64(chunk);
                parts.push(data);
                at += data.length;
                if (step?.(at) === false) {
                    throw new Error('cancelled');
                }
                if (eof || !data.length) {
                    break;
                }
            }
        } finally {
            this.call('fs/close', { handleId }).catch(() => {});
        }
        return step ? parts : joined(parts, at - from);
    }

    async #image(path, size, head, type, name) {
        const data = size <= head.length ? head : await this.#read(path, 0, LARGEST_IMAGE, size);
        this.imageUrl = URL.createObjectURL(new Blob([data], { type }));
        const image = el('img', { alt: name, src: this.imageUrl });
        image.addEventListener('error', () => {
            this.content.replaceChildren(
                el('p', { class: 'blank' }, 'The browser cannot show this image.'),
            );
        });
        this.content.replaceChildren(image);
    }

    async #text(path, size, from, known) {
        const data = known ?? (await this.#read(path, from, PART, size));
        const binary = data.subarray(0, 8192).includes(0);
        const shown = binary ? dump(data.subarray(0, 4096), from) : readable(data);
        const body = el('pre', { class: binary ? 'hex' : 'text' }, shown);
        const last = Math.max(0, Math.floor((size - 1) / PART) * PART);
        const turn = (label, to) =>
            button(label, () => this.#text(path, size, to), { disabled: to === from });
        const turns =
            size > PART
                ? el(
                      'div',
                      { class: 'bar' },
                      turn('First part', 0),
                      turn('Previous', Math.max(0, from - PART)),
                      turn('Next', Math.min(last, from + PART)),
                      turn('Last part', last),
                      el(
                          'span',
                          { class: 'count' },
                          `bytes ${from} to ${from + data.length} of ${size}`,
                      ),
                  )
                : null;
        this.content.replaceChildren(...[turns, body].filter(Boolean));
        if (binary) {
            this.content.prepend(el('p', { class: 'note' }, 'Not text: its first bytes.'));
        }
        this.content.scrollTop = 0;
    }

    downloadViewed() {
        if (this.viewer.hidden) {
            return false;
        }
        this.download(this.viewed.path, this.viewed.size);
        return true;
    }

    async download(path, size) {
        if (size > LARGEST_DOWNLOAD) {
            say('Files above 2 GiB are too large for the browser: copy them with xs cp.', 'bad');
            return;
        }
        const { progress } = this;
        const shows = this.content;
        try {
            const parts = await this.#read(path, 0, LARGEST_DOWNLOAD, size, (done) => {
                put(progress, size ? `${Math.floor((100 * done) / Math.max(size, done))}%` : '');
                return this.content === shows;
            });
            save(parts, format.fileName(path.slice(path.lastIndexOf('/') + 1)));
            put(progress, 'saved');
        } catch (error) {
            say(`Not downloaded: ${format.text(error.message, 200)}`, 'bad');
        }
    }
}

function joined(parts, length) {
    const all = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
        all.set(part, at);
        at += part.length;
    }
    return all;
}

/** Text with its lines and tabs; other control characters become visible. */
function readable(data) {
    const decoded = new TextDecoder().decode(data).replaceAll('\r\n', '\n');
    return decoded
        .split(/([\n\t])/)
        .map((part) => (/^[\n\t]$/.test(part) ? part : format.text(part, PART)))
        .join('');
}

function dump(data, from) {
    const lines = [];
    for (let at = 0; at < data.length; at += 16) {
        const row = [...data.subarray(at, at + 16)];
        const hex = row
            .map((byte) => byte.toString(16).padStart(2, '0'))
            .join(' ')
            .padEnd(47);
        const words = row
            .map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.'))
            .join('');
        lines.push(`${(from + at).toString(16).padStart(8, '0')}  ${hex}  ${words}`);
    }
    return lines.join('\n');
}
