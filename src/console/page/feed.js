// The output of one process as it comes, in order, through process/attach.
//
// The page sets the pace. While too much of what came is not drawn yet, the feed lets go of the
// process and attaches again behind the last event that it has. What the server has forgotten by
// then is a gap. So a flood costs neither the page its response nor the command its speed.

import { fromBase64 } from './format.js';

const HIGH = 2 << 20; // bytes not drawn: let go
const LOW = 256 << 10; // bytes not drawn: attach again
const KEPT = 4 << 20; // bytes that the page keeps to draw anew

/** Passes notifications of attached processes to their feeds. */
export class Feeds {
    constructor(connection) {
        this.connection = connection;
        this.views = new Map(); // attachId: Feed
        for (const event of ['output', 'exited', 'closed', 'attachGap', 'detached']) {
            connection.on(`process/${event}`, (params) => {
                this.views.get(params.attachId)?.[event](params);
            });
        }
        connection.on('console/resized', (params) => {
            this.views.get(params.attachId)?.resized({ seq: params.seq, ...params.size });
        });
        connection.addEventListener('state', () => !connection.ready && this.views.clear());
    }
}

export class Feed {
    /**
     * @param {object} o  write(stream, bytes, drawn); restart(): what was drawn is void;
     *   resize(cols, rows): from here on; changed(): `status`, `ended` or `lost` is another
     */
    constructor(feeds, sessionId, processId, o) {
        this.feeds = feeds;
        this.connection = feeds.connection;
        this.id = { sessionId, processId };
        this.o = o;
        this.status = 'waiting'; // waiting, attached, paused, ended, gone, refused
        this.ended = null; // params of process/exited
        this.lost = 0; // events that the server had forgotten
        this.seq = 0;
        this.sizes = []; // {seq, rows, cols} of a terminal: its size behind event seq
        this.undrawn = 0;
        this.kept = [];
        this.keptBytes = 0;
        this.keptAll = true;
        this.onState = () => this.#connectionChanged();
        this.connection.addEventListener('state', this.onState);
        this.attach();
    }

    close() {
        this.connection.removeEventListener('state', this.onState);
        this.#letGo();
        this.stopped = true;
    }

    get over() {
        return ['ended', 'gone', 'refused'].includes(this.status);
    }

    async attach() {
        if (
            this.stopped ||
            this.attachId !== undefined ||
            this.attaching ||
            !this.connection.ready
        ) {
            return;
        }
        this.attaching = true;
        this.server ??= this.connection.login.startedAtMs;
        try {
            const params = { ...this.id, afterSeq: this.seq };
            const { attachId, sizes } = await this.connection.call('process/attach', params);
            this.attaching = false;
            this.sizes = sizes ?? [];
            if (this.stopped) {
                this.connection.call('process/detach', { attachId }).catch(() => {});
                return;
            }
            this.attachId = attachId;
            this.feeds.views.set(attachId, this);
            this.#become('attached');
        } catch (error) {
            this.attaching = false;
            if (error.code !== undefined) {
                this.reason = error.message;
                this.#become(/too many viewers/.test(error.message) ? 'refused' : 'gone');
            }
        }
    }

    #connectionChanged() {
        this.attachId = undefined;
        if (!this.connection.ready) {
            return;
        }
        if (this.server !== undefined && this.server !== this.connection.login.startedAtMs) {
            this.#become(this.over ? this.status : 'gone'); // its process ended with the old server
        } else if (this.status === 'attached' || this.status === 'waiting') {
            this.attach();
        }
    }

    #letGo() {
        if (this.attachId !== undefined) {
            this.feeds.views.delete(this.attachId);
            this.connection.call('process/detach', { attachId: this.attachId }).catch(() => {});
            this.attachId = undefined;
        }
    }

    #become(status) {
        this.status = status;
        this.o.changed();
    }

    output({ seq, stream, chunk }) {
        const data = fromBase64(chunk);
        this.seq = seq;
        this.kept.push({ seq, stream, data });
        this.keptBytes += data.length;
        while (this.keptBytes > KEPT) {
            this.keptBytes -= this.kept.shift().data.length;
            this.keptAll = false;
        }
        this.#takeSize(seq);
        this.#draw(stream, this.cut ? this.#afterCut(data) : data);
        this.#takeSize(seq + 1);
        if (this.undrawn > HIGH) {
            this.#letGo();
            this.#become('paused');
        }
    }

    /** After a gap the rest of an escape sequence must not show: begin at the next one, or line. */
    #afterCut(data) {
        const start = data.findIndex((byte) => byte === 10 || byte === 13 || byte === 27);
        this.cut = false;
        return start < 0 ? data : data.subarray(start);
    }

    resized(size) {
        this.sizes = [...this.sizes.filter((one) => one.seq !== size.seq), size];
        this.#takeSize(Infinity);
    }

    /** Takes the size that the terminal had when it wrote an event. */
    #takeSize(seq) {
        const size = this.sizes.findLast((one) => one.seq < seq) ?? this.sizes[0];
        if (size && size !== this.size) {
            this.size = size;
            this.o.resize(size.cols, size.rows);
        }
    }

    #draw(stream, data) {
        this.undrawn += data.length;
        this.o.write(stream, data, () => {
            this.undrawn -= data.length;
            if (this.status === 'paused' && this.undrawn < LOW) {
                this.status = 'attached';
                this.attach();
            }
        });
    }

    attachGap({ fromSeq, toSeq }) {
        this.lost += toSeq - fromSeq + 1;
        this.seq = toSeq;
        this.kept = [];
        this.keptBytes = 0;
        this.keptAll = false;
        this.cut = true;
        this.size = null;
        this.o.restart();
        this.o.changed();
    }

    exited(params) {
        this.seq = params.seq;
        this.ended = params;
        this.o.changed();
    }

    closed(params) {
        this.seq = params.seq;
        this.feeds.views.delete(this.attachId);
        this.attachId = undefined;
        this.#become('ended');
    }

    detached() {
        this.feeds.views.delete(this.attachId);
        this.attachId = undefined;
        this.#become('gone');
    }

    /** Draws all that the page has again, or one stream of it. */
    redraw(only) {
        this.o.restart();
        this.size = null;
        for (const { seq, stream, data } of this.kept) {
            if (!only || stream === only) {
                this.#takeSize(seq);
                this.#draw(stream, data);
            }
        }
        this.#takeSize(Infinity);
    }

    /** What the page has kept of a stream. */
    parts(stream) {
        return this.kept.filter((one) => !stream || one.stream === stream).map((one) => one.data);
    }
}
