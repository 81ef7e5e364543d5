// What the server runs: sessions and processes, as it said last. Asks once a second while the page
// can be seen, and only for what changed. Event: `change`.

const PERIOD = 1000;
const MOST_RESOURCES = 64; // per request

export const keyOf = (sessionId, processId) => JSON.stringify([sessionId, processId]);

export class Model extends EventTarget {
    constructor(connection) {
        super();
        this.connection = connection;
        this.clear();
        connection.addEventListener('state', () => connection.ready && this.#restart());
        document.addEventListener('visibilitychange', () => this.poll());
    }

    clear() {
        this.revision = undefined;
        this.sessions = new Map();
        this.processes = new Map();
        this.order = []; // processes, newest first
        this.loads = new Map(); // key: {at, cpuMs, cpu, rssBytes}
        this.skew = 0; // clock of the server minus ours
        this.complete = false; // the server has told everything once
        this.onScreen = () => []; // keys whose CPU and memory somebody sees
    }

    /** The time on the server. */
    now() {
        return Date.now() + this.skew;
    }

    #restart() {
        const started = this.connection.login.startedAtMs;
        if (this.started !== started) {
            // another server has other processes
            const { onScreen } = this;
            this.clear();
            this.onScreen = onScreen;
            this.started = started;
        }
        this.poll();
    }

    /** Asks now, and again in a second. */
    async poll() {
        clearTimeout(this.timer);
        if (document.hidden || !this.connection.ready || this.asking) {
            return;
        }
        this.asking = true;
        try {
            let answer;
            do {
                answer = await this.connection.call('console/list', { after: this.revision });
                this.#apply(answer);
            } while (answer.more);
            this.complete = true;
            this.order = [...this.processes.values()].sort(newestFirst);
            await this.#resources();
            this.dispatchEvent(new Event('change'));
        } catch (error) {
            if (this.connection.ready) {
                console.warn('console/list:', error.message);
            }
        } finally {
            this.asking = false;
            this.timer = setTimeout(() => this.poll(), PERIOD);
        }
    }

    #apply(answer) {
        if (answer.full && !this.more) {
            this.sessions.clear();
            this.processes.clear();
        }
        this.more = answer.more;
        this.revision = answer.revision;
        if (answer.nowMs) {
            this.skew = answer.nowMs - Date.now();
        }
        (answer.sessions ?? []).forEach((one) => this.sessions.set(one.sessionId, one));
        (answer.removedSessions ?? []).forEach((id) => this.sessions.delete(id));
        for (const row of answer.processes ?? []) {
            row.key = keyOf(row.sessionId, row.processId);
            this.processes.set(row.key, row);
        }
        for (const [sessionId, processId] of answer.removed ?? []) {
            const key = keyOf(sessionId, processId);
            this.processes.delete(key);
            this.loads.delete(key);
        }
    }

    async #resources() {
        const keys = this.onScreen().filter((key) => alive(this.processes.get(key)));
        const wanted = [...new Set(keys)].slice(0, MOST_RESOURCES);
        for (const key of this.loads.keys()) {
            if (!wanted.includes(key)) {
                this.loads.delete(key);
            }
        }
        if (!wanted.length) {
            return;
        }
        const { resources } = await this.connection.call('console/resources', {
            processes: wanted.map((key) => JSON.parse(key)),
        });
        const at = performance.now();
        wanted.forEach((key, i) => {
            const now = resources[i];
            const before = this.loads.get(key);
            if (!now) {
                this.loads.delete(key);
                return;
            }
            const cpu = before ? Math.max(0, (now.cpuMs - before.cpuMs) / (at - before.at)) : null;
            this.loads.set(key, { at, cpuMs: now.cpuMs, cpu, rssBytes: now.rssBytes });
        });
    }
}

export const alive = (row) => row?.state === 'running' || row?.state === 'starting';

function newestFirst(a, b) {
    return (
        (b.startedAtMs ?? Infinity) - (a.startedAtMs ?? Infinity) ||
        (b.pid ?? 0) - (a.pid ?? 0) ||
        0
    );
}
