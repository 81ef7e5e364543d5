#pragma once
/*
 * console/list: sessions and processes in the order of their last change. An answer ends at
 * CONSOLE_LIST_MAX bytes, or when it has taken the time of a slice (loop.h), so that the loop
 * serves clients meanwhile; `more` tells that the page must ask again at once.
 */

#define CONSOLE_LIST_MAX (4u << 20)
