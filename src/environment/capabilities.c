#include "environment/capabilities.h"

#include "base/uri.h"
#include "environment/capability_roots.h"
#include "environment/discover_source.h"
#include "environment/envconf.h"
#include "environment/manifest.h"
#include "environment/skill.h"
#include "files/fs_params.h"
#include "json/jsonw.h"
#include "process/params.h"
#include "process/sandbox_members.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#define CAPABILITIES_ROOM 8192 /* bytes of an answer beside its entries: warnings and the frame */
#define CAPABILITIES_HOME_MAX (64u << 10)

/* -- params -- */

static int capabilities_check_cwd(const struct json_node *v, struct err *e) {
    bool foreign = false;
    return fs_params_check_path(json_str(v), &foreign, e);
}

static int capabilities_check_sandbox(const struct json_node *v, struct err *e) {
    _cleanup_arena_ struct arena a = ARENA_INIT(PROFILE_ARENA_MAX);
    struct profile *profile;
    return v->type == JSON_NULL ? 0 : profile_decode(v, PROFILE_FILES, &a, &profile, e);
}

static const struct jsondec_field capabilities_fields[] = {
    PARAM_CHECKED(capabilities_params, cwd, "cwd", JSONDEC_STR, capabilities_check_cwd),
    PARAM_OPT_CHECKED(capabilities_params, sandbox, "sandbox", JSONDEC_NODE, JSONDEC_NULLABLE,
                      capabilities_check_sandbox),
};
static const struct jsondec_struct capabilities_struct =
    PARAM_STRUCT("DiscoverV2CapabilitiesRequest", capabilities_fields);

int capabilities_decode(const struct json_node *params, void *out, struct err *e) {
    struct capabilities_params *p = out;
    bool foreign = false;
    *p = (struct capabilities_params){.sandbox = NULL};
    int r = jsondec(&capabilities_struct, params, p, e);
    if (r < 0)
        return r;
    r = fs_params_check_path(p->cwd, &foreign, e);
    if (r == 0 && p->sandbox != NULL)
        r = capabilities_check_sandbox(p->sandbox, e);
    if (r < 0) {
        jsondec_report_first(&capabilities_struct, params, e);
        return r;
    }
    return sandbox_members_check(params, &capabilities_struct, &p->sandbox, e);
}

/* -- the answer so far -- */

struct answer {
    struct buf plugins, skills; /* JSON, with commas between */
    size_t entries;
    unsigned faults; /* places of which something could not be read */
    bool truncated;
};

static size_t answer_bytes(const struct answer *w) {
    return w->plugins.len + w->skills.len + CAPABILITIES_ROOM;
}

/* Adds an entry to a list if it has room. 0 or -errno. */
static int answer_admit(struct answer *w, struct buf *list, struct str entry, size_t weight) {
    if (w->entries + weight > CAPABILITIES_MAX ||
        answer_bytes(w) + entry.n + 1 > CAPABILITIES_RESULT_MAX) {
        w->truncated = true;
        return 0;
    }
    int r = list->len > 0 ? buf_putc(list, ',') : 0;
    if (r == 0)
        r = buf_put(list, entry.p, entry.n);
    if (r == 0)
        w->entries += weight;
    return r;
}

/* -- names -- */

/* The directory of a file's directory, as a URI. */
static struct str view_root(struct str uri) {
    for (int i = 0; i < 2; i++) {
        const char *slash = memrchr(uri.p, '/', uri.n);
        uri.n = slash != NULL ? (size_t)(slash - uri.p) : 0;
    }
    return uri;
}

/* The last component of a URI, decoded. p NULL: it has none, or no memory. */
static struct str view_basename(struct arena *a, struct str uri) {
    _cleanup_free_ char *native = NULL;
    _cleanup_err_ struct err e = ERR_INIT;
    if (uri_to_path(uri, &native, &e) < 0)
        return (struct str){NULL, 0};
    struct str name = discover_name(str_of(native));
    return name.n > 0 ? (struct str){arena_strdup(a, name), name.n} : (struct str){NULL, 0};
}

/* -- skills -- */

/* A plugin's directory and the name before its skills' names. */
struct space {
    struct str root; /* URI */
    struct str name;
};

/* What is made of one place. */
struct view {
    struct arena *arena; /* of texts */
    const struct plugins_place *place;
    const struct discovery *found;
    struct space *spaces;
    size_t space_count;
    bool fault;
};

static int view_spaces(struct view *v) {
    const struct discovery *d = v->found;
    v->spaces = arena_calloc(v->arena, d->namespace_count + 1, sizeof *v->spaces);
    if (v->spaces == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < d->namespace_count; i++) {
        struct manifest m;
        struct str root = view_root(d->namespaces[i].uri);
        if (!manifest_read(v->arena, d->namespaces[i].text, false, &m))
            continue;
        if (skill_trim(m.name).n == 0)
            m.name = view_basename(v->arena, root);
        if (m.name.p != NULL)
            v->spaces[v->space_count++] = (struct space){root, m.name};
    }
    return 0;
}

/* The name of the nearest plugin around a skill; p NULL: none. */
static struct str view_space_of(const struct view *v, struct str uri) {
    struct str name = {NULL, 0};
    size_t best = 0;
    for (size_t i = v->space_count; i-- > 0;) {
        struct str root = v->spaces[i].root;
        bool around = uri.n > root.n && uri.p[root.n] == '/' && memcmp(uri.p, root.p, root.n) == 0;
        if (around && root.n >= best) {
            best = root.n;
            name = v->spaces[i].name;
        }
    }
    return name;
}

/* The skill's name with its namespace. p NULL: too long. */
static struct str view_qualify(const struct view *v, struct str space, struct str name) {
    if (space.p == NULL)
        return name;
    if (skill_chars(space) + 1 + skill_chars(name) > SKILL_QUALIFIED_MAX)
        return (struct str){NULL, 0};
    size_t n = space.n + 1 + name.n;
    char *text = arena_alloc(v->arena, n + 1);
    if (text != NULL) {
        memcpy(text, space.p, space.n);
        text[space.n] = ':';
        memcpy(text + space.n + 1, name.p, name.n);
    }
    return (struct str){text, n};
}

static int view_put_text(struct buf *b, const char *before, struct str text) {
    int r = buf_putz(b, before);
    return r < 0 ? r : text.p != NULL ? jsonw_str(b, text) : buf_putz(b, "null");
}

static int view_put_place(struct buf *b, const struct plugins_place *p) {
    if (p->skills == NULL)
        return 0;
    int r = view_put_text(b, ",\"discoveryRoot\":{\"id\":", str_of(p->skills));
    if (r == 0)
        r = view_put_text(b, ",\"path\":", p->root.uri);
    return r < 0 ? r : buf_putc(b, '}');
}

static int view_put_skill(const struct view *v, const struct discover_skill *skill,
                          const struct skill_front *front, struct str name, struct buf *b) {
    int r = view_put_text(b, "{\"name\":", name);
    if (r == 0)
        r = view_put_text(b, ",\"description\":", front->description);
    if (r == 0)
        r = view_put_text(b, ",\"shortDescription\":", front->short_description);
    if (r == 0)
        r = view_put_text(b, ",\"path\":", skill->instructions.uri);
    if (r == 0)
        r = view_put_place(b, v->place);
    if (r == 0)
        r = buf_putc(b, ',');
    if (r < 0)
        return r;
    _cleanup_arena_ struct arena a = ARENA_INIT(SKILL_ARENA_MAX);
    r = skill_put_metadata(&a, skill->metadata.text, b);
    return r < 0 ? r : buf_putc(b, '}');
}

/* Appends a skill. 1; 0: it is faulty, or too large for any answer; -ENOMEM. */
static int view_skill(struct view *v, const struct discover_skill *skill, struct buf *b) {
    _cleanup_arena_ struct arena a = ARENA_INIT(SKILL_ARENA_MAX);
    struct skill_front front;
    struct str uri = skill->instructions.uri, dir = uri;
    const char *slash = memrchr(uri.p, '/', uri.n);
    dir.n = slash != NULL ? (size_t)(slash - uri.p) : 0;
    struct str fallback = skill_one_line(&a, view_basename(&a, dir));
    if (fallback.n == 0)
        fallback = STR_LIT("skill");
    struct str name = {NULL, 0};
    if (skill_read_front(&a, skill->instructions.text, fallback, &front) == 0)
        name = view_qualify(v, view_space_of(v, uri), front.name);
    int r = name.p != NULL ? view_put_skill(v, skill, &front, name, b) : -EINVAL;
    v->fault |= r == -EINVAL;
    return r == 0 ? 1 : r == -EINVAL || r == -ENOBUFS ? 0 : r;
}

/* -- places -- */

/* The skills of a directory of skills, each an entry of its own. */
static int view_skills(struct view *v, struct answer *w) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < v->found->skill_count; i++) {
        _cleanup_buf_ struct buf b = BUF_INIT(CAPABILITIES_RESULT_MAX);
        if (w->entries == CAPABILITIES_MAX) {
            w->truncated = true;
            break;
        }
        r = view_skill(v, &v->found->skills[i], &b);
        if (r > 0)
            r = answer_admit(w, &w->skills, buf_str(&b), 1);
        else if (r == 0 && b.len > 0)
            w->truncated = true;
    }
    return r;
}

static int view_put_files(struct buf *b, const struct discovery *d, struct str own_mcp) {
    const struct discover_file own = {d->manifest.uri, own_mcp};
    int r = buf_putz(b, ",\"files\":{\"manifest\":");
    if (r == 0)
        r = capability_roots_put_file(b, &d->manifest);
    if (r == 0)
        r = buf_putz(b, ",\"mcpConfig\":");
    if (r == 0)
        r = capability_roots_put_file(b, own_mcp.p != NULL ? &own : &d->mcp);
    if (r == 0)
        r = buf_putz(b, ",\"appsConfig\":");
    if (r == 0)
        r = capability_roots_put_file(b, &d->apps);
    return r < 0 ? r : buf_putz(b, "},\"skills\":[");
}

static int view_put_plugin(const struct view *v, const struct manifest *m, struct buf *b) {
    const struct plugins_place *p = v->place;
    int r = view_put_text(b, "{\"id\":", p->id);
    if (r == 0)
        r = view_put_text(b, ",\"displayName\":", m->display);
    if (r == 0)
        r = view_put_text(b, ",\"remotePluginId\":", p->remote);
    if (r == 0)
        r = view_put_text(b, ",\"version\":", p->version);
    if (r == 0)
        r = view_put_text(b, ",\"root\":", p->root.uri);
    return r < 0 ? r : view_put_files(b, v->found, m->mcp);
}

/* Appends a plugin with its skills and counts them. 0 or -errno. */
static int view_fill_plugin(struct view *v, struct answer *w, const struct manifest *m,
                            struct buf *b, size_t *weight) {
    int r = view_put_plugin(v, m, b);
    *weight = 1;
    for (size_t i = 0; r >= 0 && i < v->found->skill_count; i++) {
        size_t before = b->len;
        if (w->entries + *weight == CAPABILITIES_MAX) {
            w->truncated = true;
            break;
        }
        r = *weight > 1 ? buf_putc(b, ',') : 0;
        if (r == 0)
            r = view_skill(v, &v->found->skills[i], b);
        if (r > 0)
            (*weight)++;
        else
            b->len = before;
    }
    return r < 0 ? r : buf_putz(b, "]}");
}

/* A plugin is one entry, with its skills. Without a manifest that can be read it is none. */
static int view_plugin(struct view *v, struct answer *w) {
    _cleanup_buf_ struct buf b = BUF_INIT(CAPABILITIES_RESULT_MAX);
    struct manifest m;
    size_t weight;
    if (v->found->manifest.uri.p == NULL ||
        !manifest_read(v->arena, v->found->manifest.text, true, &m)) {
        v->fault = true;
        return 0;
    }
    m.display = skill_trim(m.display);
    if (m.display.n == 0)
        m.display = skill_trim(m.name).n > 0 ? m.name : discover_name(v->place->root.native);
    if (w->entries == CAPABILITIES_MAX) {
        w->truncated = true;
        return 0;
    }
    int r = view_fill_plugin(v, w, &m, &b, &weight);
    if (r == -ENOBUFS) {
        w->truncated = true;
        return 0;
    }
    return r < 0 ? r : answer_admit(w, &w->plugins, buf_str(&b), weight);
}

/* Adds what was found at a place. 0 or -errno. */
static int answer_add(struct answer *w, const struct plugins_place *p, const struct discovery *d) {
    _cleanup_arena_ struct arena a = ARENA_INIT(DISCOVER_ARENA_MAX);
    struct view v = {
        .arena = &a, .place = p, .found = d, .fault = d->warning_count > 0 || d->error.p != NULL};
    int r = view_spaces(&v);
    if (r == 0)
        r = p->skills != NULL ? view_skills(&v, w) : view_plugin(&v, w);
    w->faults += v.fault;
    return r;
}

static int answer_put_warnings(const struct answer *w, bool incomplete, struct buf *b) {
    static const char *const texts[] = {
        "capability discovery size limit reached",
        "some capability locations could not be resolved; discovery may be incomplete",
        "some capability metadata could not be loaded; discovery may be incomplete"};
    const unsigned counts[] = {w->truncated, incomplete, w->faults};
    unsigned total = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(texts); i++) {
        for (unsigned k = 0; r == 0 && k < counts[i] && total < CAPABILITIES_WARNINGS_MAX; k++)
            r = buf_putf(b, "%s\"%s\"", total++ > 0 ? "," : "", texts[i]);
    }
    return r;
}

static int answer_put(const struct answer *w, bool incomplete, struct buf *b) {
    int r = buf_putz(b, "{\"plugins\":[");
    if (r == 0)
        r = buf_put(b, w->plugins.p, w->plugins.len);
    if (r == 0)
        r = buf_putz(b, "],\"skills\":[");
    if (r == 0)
        r = buf_put(b, w->skills.p, w->skills.len);
    if (r == 0)
        r = buf_putz(b, "],\"warnings\":[");
    if (r == 0)
        r = answer_put_warnings(w, incomplete, b);
    return r < 0 ? r : buf_putz(b, "]}");
}

/* -- the job -- */

struct capabilities_job {
    struct fs_job job;
    struct arena arena;            /* of the two below */
    const char *home, *codex_home; /* home may be NULL */
    struct plugins_places places;
    bool placed; /* the places are known */
    size_t at;   /* the place being read */
    struct discovery found;
    struct answer answer;
};

static struct capabilities_job *capabilities_job_of(struct fs_job *j) {
    return container_of(j, struct capabilities_job, job);
}

/* Reads a place that may be missing or closed to the user. */
static int capabilities_read(struct capabilities_job *x, const struct discover_source *s) {
    const struct plugins_place *p = &x->places.place[x->at];
    _cleanup_err_ struct err e = ERR_INIT;
    struct fs_meta m;
    int r = s->meta(s->arg, p->root.native.p, &m, &e);
    if (r > 0)
        return r;
    if (r == -ENOENT || r == -EACCES || (r == 0 && !S_ISDIR(m.mode)))
        return 0;
    discover_reset(&x->found);
    r = discover_root(s, &p->root, &x->found);
    if (r == 0)
        r = answer_add(&x->answer, p, &x->found);
    discover_fini(&x->found);
    return r;
}

static int capabilities_find(struct capabilities_job *x, const struct discover_source *s) {
    _cleanup_free_ char *codex_home = NULL;
    const struct envconf c = {.home = x->home, .codex_home = x->codex_home};
    int r = envconf_codex_home(&c, &codex_home, &x->job.err);
    if (r < 0)
        return r;
    plugins_fini(&x->places);
    r = plugins_find(s, codex_home, x->home, &x->places);
    return r;
}

/* One place in each go, so that others have their turns. */
static int capabilities_work(struct fs_job *j) {
    struct capabilities_job *x = capabilities_job_of(j);
    const struct discover_source source = discover_source_of(j);
    return x->placed ? capabilities_read(x, &source) : capabilities_find(x, &source);
}

static void capabilities_finish(struct fs_job *j) {
    struct capabilities_job *x = capabilities_job_of(j);
    x->at += x->placed;
    x->placed = true;
    bool full = x->answer.entries == CAPABILITIES_MAX;
    if (x->at < x->places.count && !full) {
        x->job.target = (struct fs_job_target){.path = {x->places.place[x->at].root.native.p}};
        fs_job_queue(j);
        return;
    }
    x->answer.truncated |= x->at < x->places.count;
    struct rpc_call *c = steal_ptr(&j->call);
    struct buf *b = rpc_result_begin(c);
    rpc_done(b, answer_put(&x->answer, x->places.incomplete, b));
    rpc_result_send(c);
}

static void capabilities_free(struct capabilities_job *x) {
    discover_fini(&x->found);
    plugins_fini(&x->places);
    arena_fini(&x->arena);
    buf_fini(&x->answer.plugins);
    buf_fini(&x->answer.skills);
    free(x);
}

static void capabilities_release(struct fs_job *j) {
    capabilities_free(capabilities_job_of(j));
}

/* Copies the environment's homes for the thread. 0 or -ENOMEM. */
static int capabilities_homes(struct capabilities_job *x, const char *home) {
    const char *own = getenv("HOME"), *codex = getenv("CODEX_HOME");
    if (own != NULL && own[0] != '\0')
        home = own;
    x->home = home != NULL ? arena_strdup(&x->arena, str_of(home)) : NULL;
    x->codex_home = codex != NULL ? arena_strdup(&x->arena, str_of(codex)) : NULL;
    return (home != NULL) == (x->home != NULL) && (codex != NULL) == (x->codex_home != NULL)
               ? 0
               : -ENOMEM;
}

/* Confines the job if the client asks for it. 0 or -errno with e set. */
static int capabilities_confine(struct capabilities_job *x, struct rpc_call *c,
                                const struct json_node *sandbox, struct err *e) {
    _cleanup_arena_ struct arena a = ARENA_INIT(PROFILE_ARENA_MAX);
    struct profile *profile = NULL;
    int r = sandbox != NULL ? profile_decode(sandbox, PROFILE_FILES, &a, &profile, e) : 0;
    if (r == 0 && profile_files_need(profile, false) == PROFILE_CONFINED)
        r = fs_confined_begin(&x->job.confined, c, profile, e);
    return r;
}

enum rpc_outcome capabilities_run(struct rpc_call *c, void *params, struct buf *result,
                                  struct err *e) {
    (void)result;
    const struct capabilities_params *p = params;
    struct fs_conn *f = fs_conn_get(c, e);
    struct capabilities_job *x = f != NULL ? calloc(1, sizeof *x) : NULL;
    if (x == NULL)
        return fs_job_no_memory(e);
    x->arena = ARENA_INIT(CAPABILITIES_HOME_MAX);
    x->answer.plugins = x->answer.skills = BUF_INIT(CAPABILITIES_RESULT_MAX);
    fs_job_init(&x->job, capabilities_work, capabilities_finish, capabilities_release);
    if (capabilities_homes(x, f->host->processes->sandbox.home) < 0) {
        capabilities_free(x);
        return fs_job_no_memory(e);
    }
    if (capabilities_confine(x, c, p->sandbox, e) < 0) {
        capabilities_free(x);
        return RPC_ERROR;
    }
    x->job.target = (struct fs_job_target){.path = {x->codex_home, x->home}};
    return fs_job_start(f, &x->job, c, e);
}
