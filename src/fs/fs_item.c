#include "fs/fs_item.h"

#include "base/utf8.h"

#include <errno.h>

/* In front of the bytes of name and message. The reader is a process of the same build. */
struct item_head {
    uint32_t kind, name, message;
};

int fs_item_encode(void *arg, const struct fs_item *item) {
    struct buf *b = arg;
    const struct item_head head = {item->kind, (uint32_t)item->name.n, (uint32_t)item->message.n};
    int r = buf_reserve(b, sizeof head + head.name + head.message);
    if (r < 0)
        return r;
    char *p = mempcpy(b->p + b->len, &head, sizeof head);
    if (head.name > 0)
        p = mempcpy(p, item->name.p, head.name);
    if (head.message > 0)
        p = mempcpy(p, item->message.p, head.message);
    b->len = (size_t)(p - b->p);
    return 0;
}

int fs_item_decode(struct str *bytes, struct fs_item *item) {
    struct item_head head;
    if (bytes->n == 0)
        return 0;
    const char *p = str_take(bytes, sizeof head);
    if (p == NULL)
        return -EINVAL;
    memcpy(&head, p, sizeof head);
    *item = (struct fs_item){.kind = (enum fs_item_kind)head.kind};
    item->name = (struct str){str_take(bytes, head.name), head.name};
    if (head.kind > FS_ITEM_TRUNCATED || item->name.p == NULL)
        return -EINVAL;
    item->message = (struct str){str_take(bytes, head.message), head.message};
    if (item->message.p == NULL || !utf8_valid(item->name.p, item->name.n))
        return -EINVAL;
    bool fits = item->kind == FS_ITEM_LINK ? !str_has_nul(item->message)
                                           : utf8_valid(item->message.p, item->message.n);
    if (!fits)
        return -EINVAL;
    return 1;
}
