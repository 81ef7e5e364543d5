// The connection to the server: JSON-RPC over one WebSocket, which comes back by itself.
//
// Events: `state`, whenever `state` changes:
//   connecting, ready; lost (`retryAt`, `reason`); refused (the server does not know us).

const PAUSES = [500, 1000, 2000, 4000, 8000, 10000];
const SILENCE = 20000; // ms without any message while an answer is due: the connection is dead
const UNKNOWN = -32001;
const KEY = 'exec-server-console';

export class RpcError extends Error {
    constructor(code, message) {
        super(message);
        this.code = code;
    }
}

/** Takes the one-time token out of the URL, at once. Returns '' if there is none. */
export function takeToken() {
    const token = location.hash.slice(1);
    if (location.hash || location.search) {
        history.replaceState(history.state, '', location.pathname);
    }
    return /^[\w-]{16,256}$/.test(token) ? token : '';
}

/** The token of a link, or of what was copied of it. */
export function tokenOf(link) {
    return /([\w-]{16,256})\s*$/.exec(link)?.[1] ?? '';
}

export class Connection extends EventTarget {
    constructor() {
        super();
        this.state = 'connecting';
        this.login = null; // the answer to the login
        this.reason = '';
        this.retryAt = 0;
        this.token = '';
        this.handlers = new Map();
        this.pending = new Map();
        this.lastId = 0;
        this.failures = 0;
        addEventListener('online', () => this.retry());
        document.addEventListener('visibilitychange', () => !document.hidden && this.retry());
        setInterval(() => this.#watch(), 2000);
    }

    /** Begins with a token, or with the secret of this tab. */
    open(token = '') {
        this.token = token;
        this.#connect();
    }

    retry() {
        if (this.state === 'lost') {
            this.#connect();
        }
    }

    on(method, handler) {
        this.handlers.set(method, handler);
    }

    get ready() {
        return this.state === 'ready';
    }

    /** Calls a method. Rejects with RpcError, or with an Error if the connection ends meanwhile. */
    call(method, params = {}) {
        if (!this.ready) {
            return Promise.reject(new Error('there is no connection to the server'));
        }
        return this.#send(method, params);
    }

    #send(method, params) {
        const id = ++this.lastId;
        this.socket.send(JSON.stringify({ id, method, params }));
        return new Promise((resolve, reject) => {
            this.pending.set(id, { resolve, reject, since: performance.now() });
        });
    }

    #become(state) {
        this.state = state;
        this.dispatchEvent(new Event('state'));
    }

    #connect() {
        clearTimeout(this.timer);
        this.#drop();
        if (!this.token && !sessionStorage.getItem(KEY)) {
            this.#become('refused');
            return;
        }
        const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:';
        const socket = new WebSocket(`${scheme}//${location.host}/ws`);
        this.socket = socket;
        this.#become('connecting');
        socket.onopen = () => this.#login(socket);
        socket.onmessage = (event) => this.#receive(event.data);
        socket.onclose = () => this.socket === socket && this.#lost();
    }

    async #login(socket) {
        const token = this.token;
        const credentials = token ? { token } : { secret: sessionStorage.getItem(KEY) };
        try {
            const result = await this.#send('console/login', credentials);
            sessionStorage.setItem(KEY, result.secret ?? credentials.secret);
            this.token = '';
            this.failures = 0;
            this.reason = '';
            this.login = result;
            this.#become('ready');
        } catch (error) {
            if (this.socket !== socket || !(error instanceof RpcError)) {
                return; // lost: onclose says so
            }
            if (error.code !== UNKNOWN) {
                this.reason = error.message;
                socket.close();
            } else if (token) {
                this.token = ''; // used up; this tab may still be known
                this.#connect();
            } else {
                sessionStorage.removeItem(KEY);
                this.#drop();
                this.#become('refused');
            }
        }
    }

    #receive(data) {
        this.heard = performance.now();
        const message = JSON.parse(data);
        const waiting = this.pending.get(message.id);
        if (waiting) {
            this.pending.delete(message.id);
            if (message.error) {
                waiting.reject(new RpcError(message.error.code, message.error.message));
            } else {
                waiting.resolve(message.result);
            }
        } else if (message.method === 'console/bye') {
            this.reason = String(message.params?.reason ?? 'the server is ending');
        } else if (message.method) {
            this.handlers.get(message.method)?.(message.params ?? {});
        }
    }

    /** Forgets the socket and whoever waits for its answers. */
    #drop() {
        const socket = this.socket;
        this.socket = null;
        if (socket) {
            socket.onopen = socket.onmessage = socket.onclose = null;
            socket.close();
        }
        const waiting = [...this.pending.values()];
        this.pending.clear();
        waiting.forEach((one) => one.reject(new Error('the connection was cut')));
    }

    #lost() {
        this.#drop();
        const pause = PAUSES[Math.min(this.failures++, PAUSES.length - 1)];
        this.retryAt = Date.now() + pause;
        this.timer = setTimeout(() => this.#connect(), pause);
        this.#become('lost');
    }

    /** A network that is cut says nothing: neither does the browser. */
    #watch() {
        const now = performance.now();
        const [oldest] = this.pending.values();
        if (this.socket && oldest && now - Math.max(oldest.since, this.heard ?? 0) > SILENCE) {
            this.#lost();
        }
    }
}
