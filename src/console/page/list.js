// A list of any length: only the rows that can be seen exist. For screen readers it is a grid whose
// rows know their number; the keyboard moves an active row, which stays on its item when others
// come and go.

import { el } from './dom.js';

const MARGIN = 6; // rows above and below the visible ones

export class VirtualList {
    /**
     * @param {object} o
     *   label    what the list shows
     *   columns  titles, for the head; none without it
     *   make()   makes a row: {node, show(item, index)}
     *   key(item)  names an item
     *   open(item) Enter, or a click
     *   empty    text for an empty list
     */
    constructor(o) {
        this.o = o;
        this.items = [];
        this.active = null; // key
        this.rows = new Map(); // index: row
        this.spare = [];
        this.id = `list${++VirtualList.count}`;
        this.body = el('div', { class: 'rows', role: 'rowgroup' });
        this.blank = el('p', { class: 'blank' });
        this.head = o.columns
            ? el(
                  'div',
                  { class: 'head', role: 'row', 'aria-rowindex': 1 },
                  ...o.columns.map((title) => el('span', { role: 'columnheader' }, title)),
              )
            : null;
        this.node = el(
            'div',
            {
                class: `list ${o.class ?? ''}`,
                role: 'grid',
                tabindex: 0,
                'aria-label': o.label,
                onkeydown: (event) => this.#key(event),
                onscroll: () => this.draw(),
                onfocus: () => this.#markActive(),
            },
            this.head,
            this.body,
            this.blank,
        );
        new ResizeObserver(() => this.draw()).observe(this.node);
    }

    /** Shows other items. What is in view stays there, unless that is the beginning. */
    set(items) {
        const height = this.#rowHeight();
        const first = Math.floor(this.node.scrollTop / height);
        const anchor = first > 0 && this.items[first] && this.o.key(this.items[first]);
        this.items = items;
        this.body.style.height = `${items.length * height}px`;
        if (anchor) {
            const now = items.findIndex((item) => this.o.key(item) === anchor);
            if (now >= 0 && now !== first) {
                this.node.scrollTop += (now - first) * height;
            }
        }
        this.node.setAttribute('aria-rowcount', items.length + (this.head ? 1 : 0));
        this.blank.textContent = items.length ? '' : (this.o.empty?.() ?? '');
        this.draw();
    }

    /** Items between the upper and the lower edge. */
    visible() {
        return [...this.rows.keys()]
            .sort((a, b) => a - b)
            .map((i) => this.items[i])
            .filter(Boolean);
    }

    draw() {
        if (!this.node.clientHeight) {
            return;
        }
        const height = this.#rowHeight();
        const top = this.node.scrollTop;
        const from = Math.max(0, Math.floor(top / height) - MARGIN);
        const to = Math.min(
            this.items.length,
            Math.ceil((top + this.node.clientHeight) / height) + MARGIN,
        );
        this.body.style.height = `${this.items.length * height}px`;
        for (const [index, row] of this.rows) {
            if (index < from || index >= to) {
                this.rows.delete(index);
                row.node.remove();
                this.spare.push(row);
            }
        }
        for (let index = from; index < to; index++) {
            const row = this.rows.get(index) ?? this.#place(index);
            row.node.style.transform = `translateY(${index * height}px)`;
            row.show(this.items[index], index);
            this.#mark(row, index);
        }
        this.#markActive();
    }

    #place(index) {
        const row = this.spare.pop() ?? this.#make();
        this.rows.set(index, row);
        row.node.setAttribute('aria-rowindex', index + (this.head ? 2 : 1));
        row.node.id = `${this.id}-${index}`;
        row.index = index;
        this.body.append(row.node);
        return row;
    }

    #make() {
        const row = this.o.make();
        row.node.classList.add('row');
        row.node.setAttribute('role', 'row');
        row.node.addEventListener('click', () => {
            this.select(this.o.key(this.items[row.index]));
            this.o.open?.(this.items[row.index]);
        });
        return row;
    }

    #mark(row, index) {
        const on = this.o.key(this.items[index]) === this.active;
        row.node.classList.toggle('active', on);
        row.node.setAttribute('aria-selected', on);
    }

    #markActive() {
        const index = this.index();
        if (this.rows.has(index)) {
            this.node.setAttribute('aria-activedescendant', `${this.id}-${index}`);
        } else {
            this.node.removeAttribute('aria-activedescendant');
        }
    }

    index() {
        return this.active === null
            ? -1
            : this.items.findIndex((item) => this.o.key(item) === this.active);
    }

    current() {
        return this.items[this.index()] ?? null;
    }

    select(key) {
        this.active = key;
        this.draw();
    }

    /** Takes the focus from a field above. */
    enter(event) {
        event.preventDefault();
        this.node.focus();
        if (!this.current()) {
            this.move(1);
        }
    }

    /** Moves the active row, and the view with it. */
    move(by) {
        if (!this.items.length) {
            return;
        }
        const at = this.index();
        const from = at < 0 && by > 0 ? -1 : Math.max(0, at);
        const next = Math.min(this.items.length - 1, Math.max(0, from + by));
        this.active = this.o.key(this.items[next]);
        const height = this.#rowHeight();
        const head = this.head?.offsetHeight ?? 0;
        const room = this.node.clientHeight - head;
        if (next * height < this.node.scrollTop) {
            this.node.scrollTop = next * height;
        } else if ((next + 1) * height > this.node.scrollTop + room) {
            this.node.scrollTop = (next + 1) * height - room;
        }
        this.draw();
        this.o.moved?.(this.items[next]);
    }

    /** Says whether the key was one of the list. */
    #key(event) {
        if (event.ctrlKey || event.altKey || event.metaKey) {
            return;
        }
        const page = Math.max(1, Math.floor(this.node.clientHeight / this.#rowHeight()) - 1);
        const steps = {
            ArrowDown: 1,
            ArrowUp: -1,
            PageDown: page,
            PageUp: -page,
            Home: -Infinity,
            End: Infinity,
        };
        if (event.key in steps) {
            this.move(steps[event.key]);
        } else if (event.key === 'Enter' && this.current()) {
            this.o.open?.(this.current());
        } else {
            return;
        }
        event.preventDefault();
        event.stopPropagation();
    }

    #rowHeight() {
        return parseFloat(getComputedStyle(this.body).getPropertyValue('--row')) || 40;
    }
}
VirtualList.count = 0;
