// How values are written for people. Names, commands and output are hostile: nothing here makes
// markup, and text() shows what would hide or reorder other text.

// Control characters, bidirectional overrides, zero-width and tag characters.
const HIDDEN = new RegExp(
    '[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u180e' +
        '\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0d\\ufeff\\uffa0\\ufff9-\\ufffb]' +
        '|[\\u{e0000}-\\u{e01ef}]',
    'gu',
);
const SHORT = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\u001b': '\\e' };

/** Makes hidden characters of a foreign text visible, and cuts it. */
export function text(value, most = 4096) {
    const whole = String(value ?? '');
    const cut = whole.length > most ? whole.slice(0, most) + '…' : whole;
    return cut.replace(HIDDEN, (c) => SHORT[c] ?? `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** Writes an argument list as one would type it. */
export function command(argv, omitted = 0) {
    const words = (argv ?? []).map((word) => {
        const shown = text(word);
        return /^[\w@%+=:,./-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", "'\\''")}'`;
    });
    return words.join(' ') + (omitted ? ` … (${omitted} more)` : '');
}

export function bytes(count) {
    if (count === null || count === undefined) {
        return '–';
    }
    let value = count;
    let unit = 'B';
    for (const next of ['kB', 'MB', 'GB', 'TB']) {
        if (value < 1000) {
            break;
        }
        value /= 1000;
        unit = next;
    }
    return `${unit === 'B' || value >= 100 ? Math.round(value) : value.toFixed(1)} ${unit}`;
}

export function age(ms) {
    const seconds = Math.max(0, Math.floor(ms / 1000));
    if (seconds < 60) {
        return `${seconds} s`;
    }
    const [minutes, hours, days] = [60, 3600, 86400].map((n) => Math.floor(seconds / n));
    if (minutes < 60) {
        return `${minutes} min`;
    }
    return hours < 48 ? `${hours} h ${minutes % 60} min` : `${days} d`;
}

export function clock(ms) {
    return ms
        ? new Date(ms).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
        : '–';
}

export function percent(share) {
    return share === null || share === undefined ? '–' : `${Math.round(share * 100)}%`;
}

/** How a process ended, or what it does. */
export function ending(row) {
    if (row.state === 'starting' || row.state === 'running') {
        return row.state;
    }
    const how = row.signal ? text(row.signal, 20) : `exit ${row.exitCode ?? '?'}`;
    return row.timedOut ? `${how}, timed out` : how;
}

/** One word that decides the colour of a process. */
export function mood(row) {
    if (row.state === 'starting' || row.state === 'running') {
        return row.state;
    }
    return row.exitCode === 0 && !row.timedOut ? 'good' : 'bad';
}

/** A file name that a download may have. */
export function fileName(value) {
    const safe = text(value, 100)
        .replace(/[\\/:*?"<>|\s]+/g, '_')
        .replace(/^\.+/, '');
    return safe || 'download';
}

export function fromBase64(encoded) {
    if (Uint8Array.fromBase64) {
        return Uint8Array.fromBase64(encoded);
    }
    const raw = atob(encoded);
    const out = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) {
        out[i] = raw.charCodeAt(i);
    }
    return out;
}

export function toBase64(data) {
    let raw = '';
    for (let i = 0; i < data.length; i += 8192) {
        raw += String.fromCharCode(...data.subarray(i, i + 8192));
    }
    return btoa(raw);
}

/** The path of a file URI; the URI itself if the path is not UTF-8. */
export function pathOf(uri) {
    if (!uri?.startsWith('file://')) {
        return uri ?? '/';
    }
    try {
        return decodeURIComponent(uri.slice(7)) || '/';
    } catch {
        return uri;
    }
}

export function join(directory, name) {
    const last = directory.startsWith('file:') ? encodeURIComponent(name) : name;
    return directory.endsWith('/') ? directory + last : `${directory}/${last}`;
}

export function parent(path) {
    const start = path.startsWith('file://') ? 7 : 0;
    const slash = path.lastIndexOf('/');
    return slash <= start ? path.slice(0, start + 1) : path.slice(0, slash);
}
