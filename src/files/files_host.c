#include "files/files_host.h"

#include "files/fs_conn.h"
#include "files/fs_helper.h"

void files_host_init(struct files_host *h) {
    list_init(&h->helpers);
    fs_devices_init(&h->devices);
    fs_devices_hold_root(&h->devices);
}

void files_host_fini(struct files_host *h) {
    loop_timer_del(h->loop, &h->trim_timer);
    fs_devices_fini(&h->devices);
}

void files_host_detached(struct session *s) {
    fs_conn_free(steal_ptr(&s->files));
}

void files_host_ended(struct session *s) {
    fs_helper_end_all(s);
}
