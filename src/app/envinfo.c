#include "app/envinfo.h"

#include "app/server.h"
#include "base/uri.h"
#include "json/jsonw.h"
#include "app/shell.h"

#include <errno.h>
#include <limits.h>

/* A path's URI as a JSON string; relative ones are taken from `cwd`. */
static int envinfo_put_uri(struct buf *b, const char *path, const char *cwd) {
    _cleanup_buf_ struct buf joined = BUF_INIT(URI_PATH_MAX);
    _cleanup_buf_ struct buf uri = BUF_INIT(URI_PATH_MAX * 3 + 16);
    _cleanup_free_ char *clean = NULL;
    _cleanup_err_ struct err e = ERR_INIT;
    int r = path[0] == '/' ? 0 : buf_putf(&joined, "%s/", cwd);
    if (r == 0)
        r = buf_putz(&joined, path);
    if (r == 0)
        r = uri_to_path(buf_str(&joined), &clean, &e);
    if (r == 0)
        r = uri_from_path(&uri, str_of(clean));
    return r < 0 ? r : jsonw_str(b, buf_str(&uri));
}

static int envinfo_put_member(struct buf *b, const char *name, const char *path, const char *cwd) {
    int r = buf_putf(b, ",\"%s\":", name);
    return r < 0 ? r : envinfo_put_uri(b, path, cwd);
}

/* Codex clients call capabilities/discoverV2 only if the executor's release is about their own. So
 * the release whose protocol this is comes first, and our version where no order counts. */
#define ENVINFO_RELEASE "0.166.0+exec-server." EXEC_SERVER_VERSION

static int envinfo_put_shell(struct buf *b, const char *shell) {
    const char *slash = strrchr(shell, '/');
    int r = buf_putz(b, "{\"shell\":{\"name\":");
    if (r == 0)
        r = jsonw_str(b, str_of(slash ? slash + 1 : shell));
    if (r == 0)
        r = buf_putz(b, ",\"path\":");
    if (r == 0)
        r = jsonw_str(b, str_of(shell));
    return r < 0 ? r : buf_putz(b, "},\"executorVersion\":\"" ENVINFO_RELEASE "\"");
}

static int envinfo_put_temp(struct buf *b, const char *cwd) {
    const char *tmp = getenv("TMPDIR");
    bool set = tmp != NULL && tmp[0] != '\0';
    int r = buf_putz(b, ",\"temporaryDirectories\":[");
    if (r == 0 && set)
        r = envinfo_put_uri(b, tmp, cwd);
    if (r == 0)
        r = buf_putz(b, "]");
    return r < 0 ? r : envinfo_put_member(b, "tempDir", set ? tmp : "/tmp", cwd);
}

/* Announces the reference's capabilities, then extensions; leaves the object open. */
static int envinfo_put_capabilities(struct server *s) {
    const char *raw = s->opt->http_files ? "true" : "false";
    return buf_putf(&s->info,
                    ",\"capabilities\":{\"fsWatchMissing\":true,\"fileWriteStreaming\":true,"
                    "\"environmentConfigRead\":true,\"capabilityDiscoveryV2\":true,"
                    "\"shellSnapshotV2\":true,"
                    "\"fsRename\":true,\"fsSetPermissions\":true,\"fsMetadataMode\":true,"
                    "\"fsWatch\":true,\"fsAtomicWrite\":true,\"fsReadMaxBytes\":true,"
                    "\"fsOpenUpdate\":true,\"fsTimes\":true,\"fsLinks\":true,"
                    "\"httpFiles\":%s,\"httpFilesAt\":%s,"
                    "\"processCloseStdin\":true,\"processResize\":true,"
                    "\"processStartSize\":true,\"processWait\":true,\"processSnapshot\":true,"
                    "\"processList\":true,\"processTerminateModes\":true,"
                    "\"processSignals\":[\"interrupt\",\"terminate\",\"kill\",\"hangup\","
                    "\"quit\",\"usr1\",\"usr2\",\"winch\",\"stop\",\"continue\"],"
                    "\"processTimeout\":true,\"processLimits\":true,"
                    "\"processLifecycle\":true,\"processAck\":true,\"sessionLimits\":true,"
                    "\"processAttach\":%s%s",
                    raw, raw, s->opt->allow_attach ? "true" : "false",
                    web_host_is_ready(&s->web) ? ",\"httpHeaderEnvVars\":true" : "");
}

int envinfo_build(struct server *s) {
    s->processes.shell = shell_for_terminals(s->passwd.shell);
    _cleanup_free_ char *shell = shell_for_clients(s->passwd.shell, getenv("PATH"));
    s->info = BUF_INIT(1u << 20);
    char cwd[PATH_MAX];
    bool has_cwd = getcwd(cwd, sizeof cwd) != NULL && cwd[0] == '/';
    const char *base = has_cwd ? cwd : "/";
    const char *home = getenv("HOME");
    if (home == NULL || home[0] == '\0')
        home = s->passwd.home;
    int r = shell != NULL ? envinfo_put_shell(&s->info, shell) : -ENOMEM;
    if (r == 0 && has_cwd)
        r = envinfo_put_member(&s->info, "cwd", cwd, base);
    if (r == 0 && home != NULL && home[0] != '\0')
        r = envinfo_put_member(&s->info, "userHomeDir", home, base);
    if (r == 0)
        r = buf_putz(&s->info, ",\"platformOs\":\"linux\"");
    if (r == 0)
        r = envinfo_put_temp(&s->info, base);
    return r < 0 ? r : envinfo_put_capabilities(s);
}

int envinfo_put(struct server *s, struct buf *b) {
    int best = backend_best(sandbox_host_backend(&s->processes.sandbox));
    const char *full = sandbox_host_is_full(&s->processes.sandbox) ? "true" : "false";
    const char *sandboxed = best < 0 ? "false" : "true";
    int r = buf_put(b, s->info.p, s->info.len);
    if (r == 0)
        r = buf_putf(b,
                     ",\"sandboxedFileStreaming\":%s,\"capabilityDiscoverySandbox\":%s,"
                     "\"linuxRootWritePreservesDevices\":%s,"
                     "\"linuxApprovedRootWritePreservesRestrictions\":%s,\"networkProxyLaunch\":%s,"
                     "\"networkProxyReviewDomains\":%s},\"sandboxBackend\":",
                     sandboxed, sandboxed, full, full, full, full);
    if (r < 0)
        return r;
    return best < 0 ? buf_putz(b, "null}")
                    : buf_putf(b, "\"%s\"}", backend_name((enum launch_backend)best));
}
