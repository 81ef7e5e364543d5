#include "fetch/route.h"

#include <stdio.h>

/* The value of the first of two variables that is set and not empty, or NULL. */
static const char *route_variable(const char *upper, const char *lower) {
    const char *value = getenv(upper);
    if (value == NULL || value[0] == '\0')
        value = getenv(lower);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static const char *route_proxy(bool https) {
    const char *proxy = https ? route_variable("HTTPS_PROXY", "https_proxy")
                              : route_variable("HTTP_PROXY", "http_proxy");
    return proxy != NULL ? proxy : route_variable("ALL_PROXY", "all_proxy");
}

/* curl takes port 1080 for a proxy without a port; a URL means the port of its scheme. */
static CURLcode route_set_proxy(const char *proxy, CURL *easy) {
    _cleanup_http_url_ struct http_url u = HTTP_URL_INIT;
    _cleanup_err_ struct err e = ERR_INIT;
    CURLcode c = curl_easy_setopt(easy, CURLOPT_PROXY, proxy);
    bool bare = strstr(proxy, "://") == NULL;
    char url[1024];
    int n = snprintf(url, sizeof url, "%s%s", bare ? "http://" : "", proxy);
    if (c != CURLE_OK || n < 0 || (size_t)n >= sizeof url ||
        http_url_parse(&u, str_of(url), NULL, &e) < 0)
        return c;
    return curl_easy_setopt(easy, CURLOPT_PROXYPORT, (long)u.port);
}

CURLcode route_apply(const struct http_url *url, CURL *easy) {
    const char *proxy = route_proxy(url->https);
    const char *direct = route_variable("NO_PROXY", "no_proxy");
    CURLcode c = curl_easy_setopt(easy, CURLOPT_NOPROXY, direct != NULL ? direct : "");
    if (c == CURLE_OK)
        c = proxy != NULL ? route_set_proxy(proxy, easy)
                          : curl_easy_setopt(easy, CURLOPT_PROXY, "");
    return c;
}
