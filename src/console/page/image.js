// Which files are shown as images: raster formats, by their first bytes and not by their name, and
// only if their pixels fit into memory. SVG is a document that can act, so it is none.

const MOST_PIXELS = 100e6;
const NO_SIZE = [0, 0];

const ascii = (data, at, words) => [...words].every((c, i) => data[at + i] === c.charCodeAt(0));

function view(data) {
    return new DataView(data.buffer, data.byteOffset, data.byteLength);
}

/** Finds the frame header of a JPEG file, which has the size. */
function jpegSize(data) {
    const bytes = view(data);
    let at = 2;
    while (at + 9 < data.length && data[at] === 0xff) {
        const kind = data[at + 1];
        const frame = kind >= 0xc0 && kind <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(kind);
        if (frame) {
            return [bytes.getUint16(at + 7), bytes.getUint16(at + 5)];
        }
        at += 2 + bytes.getUint16(at + 2);
    }
    return NO_SIZE;
}

function webpSize(data) {
    const bytes = view(data);
    if (ascii(data, 12, 'VP8X')) {
        return [
            1 + (bytes.getUint32(24, true) & 0xffffff),
            1 + (bytes.getUint32(27, true) & 0xffffff),
        ];
    }
    if (ascii(data, 12, 'VP8L')) {
        const packed = bytes.getUint32(21, true);
        return [1 + (packed & 0x3fff), 1 + ((packed >> 14) & 0x3fff)];
    }
    return [bytes.getUint16(26, true) & 0x3fff, bytes.getUint16(28, true) & 0x3fff];
}

const FORMATS = [
    [
        'image/png',
        (d) => d[0] === 0x89 && ascii(d, 1, 'PNG\r\n'),
        (d) => [view(d).getUint32(16), view(d).getUint32(20)],
    ],
    ['image/jpeg', (d) => d[0] === 0xff && d[1] === 0xd8 && d[2] === 0xff, jpegSize],
    [
        'image/gif',
        (d) => ascii(d, 0, 'GIF87a') || ascii(d, 0, 'GIF89a'),
        (d) => [view(d).getUint16(6, true), view(d).getUint16(8, true)],
    ],
    ['image/webp', (d) => ascii(d, 0, 'RIFF') && ascii(d, 8, 'WEBP'), webpSize],
    [
        'image/bmp',
        (d) => ascii(d, 0, 'BM'),
        (d) => [Math.abs(view(d).getInt32(18, true)), Math.abs(view(d).getInt32(22, true))],
    ],
];

/** The type of an image that may be shown; '' for everything else. */
export function imageOf(data) {
    if (data.length < 32) {
        return '';
    }
    const [type, , size] = FORMATS.find(([, is]) => is(data)) ?? [];
    if (!type) {
        return '';
    }
    const [width, height] = size(data);
    return width > 0 && height > 0 && width * height <= MOST_PIXELS ? type : '';
}
