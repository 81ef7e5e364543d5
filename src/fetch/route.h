#pragma once
/* The proxy of a request, from HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY. */

#include "http/http_url.h"

#include <curl/curl.h>

/* Makes a transfer to `url` use its proxy, or none. */
MUST_CHECK CURLcode route_apply(const struct http_url *url, CURL *easy);
