#include "base/uri.h"

#include "guard.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define PARAMS ERR_INVALID_PARAMS
#define REQUEST ERR_INVALID_REQUEST
#define RELATIVE "invalid URI: relative URL without a base"
#define DOMAIN "invalid URI: invalid international domain name"
#define IPV4 "invalid URI: invalid IPv4 address"
#define IPV6 "invalid URI: invalid IPv6 address"
#define QUERY "query parameters are not allowed in path URIs"
#define FRAGMENT "fragments are not allowed in path URIs"
#define FOREIGN(uri) "'" uri "' is invalid on 'linux'"

static const struct {
    struct str in;
    const char *path;
} accepted[] = {
    {STR_LIT("file:"), "/"},
    {STR_LIT("file:/"), "/"},
    {STR_LIT("file://"), "/"},
    {STR_LIT("file:///"), "/"},
    {STR_LIT("FILE:///srv/fsx/a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("File:/srv/fsx/a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("file:/srv/fsx/a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("file:root/fsx/a.txt"), "/root/fsx/a.txt"},
    {STR_LIT("file:a.txt"), "/a.txt"},
    {STR_LIT("file://localhost/srv/fsx/a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("file://LOCALHOST/srv/fsx/a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("file://%6Cocalhost/etc"), "/etc"},
    {STR_LIT("file://localhost"), "/"},
    {STR_LIT("file:////srv/fsx/a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("file://///srv/fsx/a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("file:///home/u//fsx///a.txt"), "/home/u/fsx/a.txt"},
    {STR_LIT("file:///srv/fsx/./a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("file:///srv/fsx/d/../a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("file:///../../srv/fsx/a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("file:///srv/fsx/%2e%2e/fsx/a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("file:///srv/fsx/%2E/a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("file:///srv/fsx/.%2e/fsx/a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("file:///srv/fsx/a.txt/"), "/srv/fsx/a.txt"},
    {STR_LIT("file:///srv/fsx/a.txt//"), "/srv/fsx/a.txt"},
    {STR_LIT("file:///srv/fsx/a.txt/."), "/srv/fsx/a.txt"},
    {STR_LIT("file:///srv/fsx/sp ace"), "/srv/fsx/sp ace"},
    {STR_LIT("file:///srv/fsx/sp%20ace"), "/srv/fsx/sp ace"},
    {STR_LIT("file:///srv/fsx/per%cent"), "/srv/fsx/per\316nt"},
    {STR_LIT("file:///srv/fsx/per%25cent"), "/srv/fsx/per%cent"},
    {STR_LIT("file:///srv/fsx/q%3Fx"), "/srv/fsx/q?x"},
    {STR_LIT("file:///srv/fsx/h%23x"), "/srv/fsx/h#x"},
    {STR_LIT("file:///srv/fsx/back\\slash"), "/srv/fsx/back/slash"},
    {STR_LIT("file:///srv/fsx/back%5Cslash"), "/srv/fsx/back\\slash"},
    {STR_LIT("file:\\\\\\root\\fsx\\a.txt"), "/root/fsx/a.txt"},
    {STR_LIT("file:///srv/fsx/n%FF"), "/srv/fsx/n\377"},
    {STR_LIT("file:///srv/fsx/n%ff"), "/srv/fsx/n\377"},
    {STR_LIT("file:///srv/fsx/%C3%BCn%C3%AF"), "/srv/fsx/\303\274n\303\257"},
    {STR_LIT("file:///srv/fsx/\303\274n\303\257"), "/srv/fsx/\303\274n\303\257"},
    {STR_LIT("file:///srv/fsx/n\357\277\275"), "/srv/fsx/n\357\277\275"},
    {STR_LIT("file:///home/u%2Ffsx%2Fa.txt"), "/home/u/fsx/a.txt"},
    {STR_LIT("file:///srv/fsx%2Fa.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("file:///srv/fsx/d%2Fe%2Ff"), "/srv/fsx/d/e/f"},
    {STR_LIT("file:///srv/fsx/new\nline"), "/srv/fsx/newline"},
    {STR_LIT("file:///srv/fsx/new%0Aline"), "/srv/fsx/new\nline"},
    {STR_LIT("file:///srv/fsx/tab\tx"), "/srv/fsx/tabx"},
    {STR_LIT("file:///srv/fsx/tab%09x"), "/srv/fsx/tab\tx"},
    {STR_LIT("  file:///srv/fsx/a.txt  "), "/srv/fsx/a.txt"},
    {STR_LIT("\000file:///srv/fsx/a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("fi\tle:///srv/fsx/a.txt\n"), "/srv/fsx/a.txt"},
    {STR_LIT("file:///srv/fsx/semi;colon"), "/srv/fsx/semi;colon"},
    {STR_LIT("file:///srv/fsx/%2541"), "/srv/fsx/%41"},
    {STR_LIT("file:///srv/fsx/%41"), "/srv/fsx/A"},
    {STR_LIT("file:///srv/fsx/ trail "), "/srv/fsx/ trail"},
    {STR_LIT("file:///srv/fsx/%20trail%20"), "/srv/fsx/ trail "},
    {STR_LIT("file:///srv/fsx/C:"), "/srv/fsx/C:"},
    {STR_LIT("file:///C"), "/C"},
    {STR_LIT("file:///~"), "/~"},
    {STR_LIT("file:///~/x"), "/~/x"},
    {STR_LIT("file:///%zz"), "/%zz"},
    {STR_LIT("file:///srv/fsx/%"), "/srv/fsx/%"},
    {STR_LIT("file:///srv/fsx/%4"), "/srv/fsx/%4"},
    {STR_LIT("file:./a.txt"), "/a.txt"},
    {STR_LIT("file:../a.txt"), "/a.txt"},
    {STR_LIT("file:///srv/fsx/../../../../srv/fsx/a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("file:///srv/fsx/.."), "/srv"},
    {STR_LIT("file:///%2froot/fsx/a.txt"), "/root/fsx/a.txt"},
    {STR_LIT("file:///..."), "/..."},
    {STR_LIT("file:///%2e%2e%2e/.a/..b"), "/.../.a/..b"},
    {STR_LIT("file:///C:a"), "/C:a"},
    {STR_LIT("file:///C:%2Fa"), "/C:/a"},
    {STR_LIT("file:///%43:/a"), "/C:/a"},
    {STR_LIT("file:///x/C:/y"), "/x/C:/y"},
    {STR_LIT("file:///x/C:/../y"), "/x/C:/y"},
    {STR_LIT("file:////h/x"), "/h/x"},
    {STR_LIT("file:///%5C%5Cserver/x"), "/\\\\server/x"},
    {STR_LIT("file:///srv/fsx/d%2F..%2Fa.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("file:///srv/fsx/d/e/..%2f..%2fa.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("file:///srv/fsx//"), "/srv/fsx"},
    {STR_LIT("file:///srv/fsx/d/e/../"), "/srv/fsx/d"},
    {STR_LIT("file:///srv/fsx/nope/../a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("file:///srv/fsx/ld/../passwd"), "/srv/fsx/passwd"},
    {STR_LIT("file:///%00/bad/path/L0M6L3g"), "/C:/x"},
    {STR_LIT("file:///%00/bad/path/L0M6"), "/C:"},
    {STR_LIT("file:///%00/bad/path/L2M6L3g"), "/c:/x"},
    {STR_LIT("file:///%00/bad/path/L2M6"), "/c:"},
    {STR_LIT("file:////%00/bad/path/L0M6L3g"), "/C:/x"},
    {STR_LIT("file:\000/bad/path/L0M6L3g"), "/C:/x"},
    {STR_LIT("file:///C|/x"), "/C|/x"},
    {STR_LIT("file:///srv/fsx/a|b"), "/srv/fsx/a|b"},
    {STR_LIT("file:///C|/../x"), "/C|/x"},
    {STR_LIT("file:///c|"), "/c|"},
    {STR_LIT("file:///x/C|/y"), "/x/C|/y"},
    {STR_LIT("file:///C%7C/x"), "/C|/x"},
    {STR_LIT("file:///a/../C|/x"), "/C|/x"},
    {STR_LIT("file://localhost/C|/x"), "/C|/x"},
    {STR_LIT("file:///srv/fsx/a%7Cb"), "/srv/fsx/a|b"},
    {STR_LIT("file:///!%22%23$%25&'()*+,-.:;%3C=%3E%3F@%5B%5C%5D%5E_%60%7B%7C%7D~"),
     "/!\"#$%&'()*+,-.:;<=>?@[\\]^_`{|}~"},
};

static const struct {
    struct str in;
    int code;
    const char *message;
} refused[] = {
    {STR_LIT("a.txt"), PARAMS, RELATIVE},
    {STR_LIT("./a.txt"), PARAMS, RELATIVE},
    {STR_LIT(""), PARAMS, RELATIVE},
    {STR_LIT("~"), PARAMS, RELATIVE},
    {STR_LIT("~/x"), PARAMS, RELATIVE},
    {STR_LIT("C:\\x"), PARAMS, "unsupported path URI scheme `c`"},
    {STR_LIT("C:/x"), PARAMS, "unsupported path URI scheme `c`"},
    {STR_LIT("file://127.0.0.1/srv/fsx/a.txt"), REQUEST, FOREIGN("file://127.0.0.1/srv/fsx/a.txt")},
    {STR_LIT("file://server/srv/fsx/a.txt"), REQUEST, FOREIGN("file://server/srv/fsx/a.txt")},
    {STR_LIT("file://user@localhost/srv/fsx/a.txt"), PARAMS, DOMAIN},
    {STR_LIT("file://localhost:80/srv/fsx/a.txt"), PARAMS, DOMAIN},
    {STR_LIT("file://[::1]/srv/fsx/a.txt"), REQUEST, FOREIGN("file://[::1]/srv/fsx/a.txt")},
    {STR_LIT("file:///srv/fsx/a.txt?x=1"), PARAMS, QUERY},
    {STR_LIT("file:///srv/fsx/a.txt#frag"), PARAMS, FRAGMENT},
    {STR_LIT("file:///srv/fsx/a.txt?"), PARAMS, QUERY},
    {STR_LIT("file:///srv/fsx/a.txt#"), PARAMS, FRAGMENT},
    {STR_LIT("file:///srv/fsx/%00"), PARAMS, FOREIGN("file:///srv/fsx/%00")},
    {STR_LIT("file:///srv/fsx/a%00b"), PARAMS, FOREIGN("file:///srv/fsx/a%00b")},
    {STR_LIT("file:///C:/x"), REQUEST, FOREIGN("file:///C:/x")},
    {STR_LIT("file:///c:/x"), REQUEST, FOREIGN("file:///C:/x")},
    {STR_LIT("file:///C%3A/x"), REQUEST, FOREIGN("file:///C%3A/x")},
    {STR_LIT("file:///C:"), REQUEST, FOREIGN("file:///C:")},
    {STR_LIT("file:C:/x"), REQUEST, FOREIGN("file:///C:/x")},
    {STR_LIT("http://x/y"), PARAMS, "unsupported path URI scheme `http`"},
    {STR_LIT("ftp:///srv/fsx/a.txt"), PARAMS, "unsupported path URI scheme `ftp`"},
    {STR_LIT("unix:///x"), PARAMS, "unsupported path URI scheme `unix`"},
    {STR_LIT("file+x:///x"), PARAMS, "unsupported path URI scheme `file+x`"},
    {STR_LIT("file:///%00/bad/path/L3Jvb3QvZnN4L2EudHh0"), REQUEST,
     FOREIGN("file:///%00/bad/path/L3Jvb3QvZnN4L2EudHh0")},
    {STR_LIT("file:///%00/bad/path/YQ"), REQUEST, FOREIGN("file:///%00/bad/path/YQ")},
    {STR_LIT("file:///%00/bad/path/"), PARAMS, FOREIGN("file:///%00/bad/path/")},
    {STR_LIT("file:///%00/bad/path/YQ=="), PARAMS, FOREIGN("file:///%00/bad/path/YQ==")},
    {STR_LIT("\\\\root\\a"), PARAMS, RELATIVE},
    {STR_LIT("file://./srv/fsx/a.txt"), REQUEST, FOREIGN("file://./srv/fsx/a.txt")},
    {STR_LIT("file://../srv/fsx/a.txt"), REQUEST, FOREIGN("file://../srv/fsx/a.txt")},
    {STR_LIT("file://h/a b"), REQUEST, FOREIGN("file://h/a%20b")},
    {STR_LIT("file://h/!\"$%&'()*+,-./0123456789:;<=>@ABCDEFGHIJKLMNOPQRSTUVWXYZ"
             "[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"),
     REQUEST,
     FOREIGN("file://h/!%22$%&'()*+,-./0123456789:;%3C=%3E@ABCDEFGHIJKLMNOPQRSTUVWXYZ"
             "[/]^_%60abcdefghijklmnopqrstuvwxyz%7B|%7D~")},
    {STR_LIT("file://h/\303\251"), REQUEST, FOREIGN("file://h/%C3%A9")},
    {STR_LIT("file://h/%c3%a9"), REQUEST, FOREIGN("file://h/%c3%a9")},
    {STR_LIT("file://h/%C3%A9"), REQUEST, FOREIGN("file://h/%C3%A9")},
    {STR_LIT("file://h/%7e~"), REQUEST, FOREIGN("file://h/%7e~")},
    {STR_LIT("file://h/%41"), REQUEST, FOREIGN("file://h/%41")},
    {STR_LIT("file://h/a//b///c"), REQUEST, FOREIGN("file://h/a//b///c")},
    {STR_LIT("file://h/a/./b"), REQUEST, FOREIGN("file://h/a/b")},
    {STR_LIT("file://h/a/../b"), REQUEST, FOREIGN("file://h/b")},
    {STR_LIT("file://h/a/%2e%2E/b"), REQUEST, FOREIGN("file://h/b")},
    {STR_LIT("file://h//a"), REQUEST, FOREIGN("file://h/a")},
    {STR_LIT("file://h///"), REQUEST, FOREIGN("file://h/")},
    {STR_LIT("file://h"), REQUEST, FOREIGN("file://h/")},
    {STR_LIT("file://h/"), REQUEST, FOREIGN("file://h/")},
    {STR_LIT("file://H/A"), REQUEST, FOREIGN("file://h/A")},
    {STR_LIT("file://h/a/"), REQUEST, FOREIGN("file://h/a/")},
    {STR_LIT("file://h/a/."), REQUEST, FOREIGN("file://h/a/")},
    {STR_LIT("file://h/a/.."), REQUEST, FOREIGN("file://h/")},
    {STR_LIT("file://h/../x"), REQUEST, FOREIGN("file://h/x")},
    {STR_LIT("file://h/C|/x"), REQUEST, FOREIGN("file:///C:/x")},
    {STR_LIT("file://h/C:/x"), REQUEST, FOREIGN("file:///C:/x")},
    {STR_LIT("file://h/c:/x"), REQUEST, FOREIGN("file:///C:/x")},
    {STR_LIT("file://h/C:/../x"), REQUEST, FOREIGN("file:///C:/x")},
    {STR_LIT("file:///C:/../x"), REQUEST, FOREIGN("file:///C:/x")},
    {STR_LIT("file:///c:/../x"), REQUEST, FOREIGN("file:///C:/x")},
    {STR_LIT("file://h\\x"), REQUEST, FOREIGN("file://h/x")},
    {STR_LIT("file://h/\\x\\y"), REQUEST, FOREIGN("file://h/x/y")},
    {STR_LIT("file://h/a\tb\nc\rd"), REQUEST, FOREIGN("file://h/abcd")},
    {STR_LIT("file://h/\177\302\200"), REQUEST, FOREIGN("file://h/%7F%C2%80")},
    {STR_LIT("file://h/%"), REQUEST, FOREIGN("file://h/%")},
    {STR_LIT("file://h/%g1"), REQUEST, FOREIGN("file://h/%g1")},
    {STR_LIT("file://h/%1"), REQUEST, FOREIGN("file://h/%1")},
    {STR_LIT("file://b\303\274cher/x"), REQUEST, FOREIGN("file://xn--bcher-kva/x")},
    {STR_LIT("file://a b/x"), PARAMS, DOMAIN},
    {STR_LIT("file://%41/x"), REQUEST, FOREIGN("file://a/x")},
    {STR_LIT("file://h./x"), REQUEST, FOREIGN("file://h./x")},
    {STR_LIT("file://1.2.3/x"), REQUEST, FOREIGN("file://1.2.0.3/x")},
    {STR_LIT("file://0x7f.1/x"), REQUEST, FOREIGN("file://127.0.0.1/x")},
    {STR_LIT("file://h:/x"), REQUEST, FOREIGN("file:///H:/x")},
    {STR_LIT("file://@h/x"), PARAMS, DOMAIN},
    {STR_LIT("file://h/%00"), PARAMS, FOREIGN("file://h/%00")},
    {STR_LIT("file://h/x%00y"), PARAMS, FOREIGN("file://h/x%00y")},
    {STR_LIT("file:///C%3a"), REQUEST, FOREIGN("file:///C%3a")},
    {STR_LIT("file:///c%3A/x"), REQUEST, FOREIGN("file:///C%3A/x")},
    {STR_LIT("file:////C:/x"), REQUEST, FOREIGN("file:///C:/x")},
    {STR_LIT("file:///%00/bad/path/L3Jvb3QvZnN4L2EAYg"), REQUEST,
     "file name contained an unexpected NUL byte"},
    {STR_LIT("file:///%00/bad/path/cmVsYXRpdmU"), REQUEST,
     FOREIGN("file:///%00/bad/path/cmVsYXRpdmU")},
    {STR_LIT("file:///%00/bad/path/QwA6AFwAeAA"), REQUEST,
     FOREIGN("file:///%00/bad/path/QwA6AFwAeAA")},
    {STR_LIT("file:/C|/x"), REQUEST, FOREIGN("file:///C:/x")},
    {STR_LIT("file:C|"), REQUEST, FOREIGN("file:///C:")},
    {STR_LIT("file://C|/x"), REQUEST, FOREIGN("file:///C:/x")},
    {STR_LIT("file:///../C|/x"), REQUEST, FOREIGN("file:///C:/x")},
    {STR_LIT("file:///C:/.."), REQUEST, FOREIGN("file:///C:/")},
    {STR_LIT("file:///a/%2e%2e/C:/x"), REQUEST, FOREIGN("file:///C:/x")},
    {STR_LIT("file://h//c:/x"), REQUEST, FOREIGN("file://h/c:/x")},
    {STR_LIT("file://h//../C|/x"), REQUEST, FOREIGN("file:///C:/x")},
    {STR_LIT("file:///%00/bad/path/L0M6Ly4uL3g"), REQUEST,
     FOREIGN("file:///%00/bad/path/L0M6Ly4uL3g")},
    {STR_LIT("file:///%00/bad/path/L0M6L3gv"), REQUEST, FOREIGN("file:///%00/bad/path/L0M6L3gv")},
    {STR_LIT("file:///%00/bad/path/Ly9DOi94"), REQUEST, FOREIGN("file:///%00/bad/path/Ly9DOi94")},
    {STR_LIT("file:///%00/bad/path/L0M6L3g/"), PARAMS, FOREIGN("file:///%00/bad/path/L0M6L3g/")},
    {STR_LIT("file:///%00/bad/path/L0M6L3h"), PARAMS, FOREIGN("file:///%00/bad/path/L0M6L3h")},
    {STR_LIT("file:///%00/bad/path/L0M6L"), PARAMS, FOREIGN("file:///%00/bad/path/L0M6L")},
    {STR_LIT("file:///%00/bad/path"), PARAMS, FOREIGN("file:///%00/bad/path")},
    {STR_LIT("file://h/%00/bad/path/L0M6L3g"), PARAMS, FOREIGN("file://h/%00/bad/path/L0M6L3g")},
    {STR_LIT("file:///a\000b"), PARAMS, FOREIGN("file:///a%00b")},
    {STR_LIT("file:///%00?x"), PARAMS, QUERY},
    {STR_LIT("file://h?x"), PARAMS, QUERY},
    {STR_LIT("file:#x?y"), PARAMS, FRAGMENT},
    {STR_LIT("file"), PARAMS, RELATIVE},
    {STR_LIT("1foo:bar"), PARAMS, RELATIVE},
    {STR_LIT("a_b:c"), PARAMS, RELATIVE},
    {STR_LIT(":x"), PARAMS, RELATIVE},
    {STR_LIT(" /etc"), PARAMS, RELATIVE},
    {STR_LIT("file\000:/x"), PARAMS, RELATIVE},
    {STR_LIT("FOO-1.2+x:"), PARAMS, "unsupported path URI scheme `foo-1.2+x`"},
    {STR_LIT("file://[::1"), PARAMS, IPV6},
    {STR_LIT("file://[]/x"), PARAMS, IPV6},
    {STR_LIT("file://[zz]/x"), PARAMS, IPV6},
    {STR_LIT("file://[::1\0000]/x"), PARAMS, IPV6},
    {STR_LIT("file://[::FFFF:1.2.3.4]/x"), REQUEST, FOREIGN("file://[::ffff:102:304]/x")},
    {STR_LIT("file://[1:0:0:2:0:0:0:3]/x"), REQUEST, FOREIGN("file://[1:0:0:2::3]/x")},
    {STR_LIT("file://[1:2:3:4:5:6:7:8]/x"), REQUEST, FOREIGN("file://[1:2:3:4:5:6:7:8]/x")},
    {STR_LIT("file://[1:0:2:0:3:0:4:0]/x"), REQUEST, FOREIGN("file://[1:0:2:0:3:0:4:0]/x")},
    {STR_LIT("file://[1::]/x"), REQUEST, FOREIGN("file://[1::]/x")},
    {STR_LIT("file://[::]/x"), REQUEST, FOREIGN("file://[::]/x")},
    {STR_LIT("file://1.2.3.4.5/x"), PARAMS, IPV4},
    {STR_LIT("file://256.1.1.1/x"), PARAMS, IPV4},
    {STR_LIT("file://1.256/x"), REQUEST, FOREIGN("file://1.0.1.0/x")},
    {STR_LIT("file://4294967295/x"), REQUEST, FOREIGN("file://255.255.255.255/x")},
    {STR_LIT("file://4294967296/x"), PARAMS, IPV4},
    {STR_LIT("file://0x100000000/x"), PARAMS, IPV4},
    {STR_LIT("file://99999999999999999999999/x"), PARAMS, IPV4},
    {STR_LIT("file://08/x"), PARAMS, IPV4},
    {STR_LIT("file://a.0x1/x"), PARAMS, IPV4},
    {STR_LIT("file://1../x"), REQUEST, FOREIGN("file://1../x")},
    {STR_LIT("file://1./x"), REQUEST, FOREIGN("file://0.0.0.1/x")},
    {STR_LIT("file://0x/x"), REQUEST, FOREIGN("file://0.0.0.0/x")},
    {STR_LIT("file://017.1/x"), REQUEST, FOREIGN("file://15.0.0.1/x")},
    {STR_LIT("file://a..b/x"), REQUEST, FOREIGN("file://a..b/x")},
    {STR_LIT("file://localhost./x"), REQUEST, FOREIGN("file://localhost./x")},
    {STR_LIT("file://B\303\234CHER.de/x"), REQUEST, FOREIGN("file://xn--bcher-kva.de/x")},
    {STR_LIT("file://\346\227\245\346\234\254/x"), REQUEST, FOREIGN("file://xn--wgv71a/x")},
    {STR_LIT("file://%zz/x"), PARAMS, DOMAIN},
    {STR_LIT("file://%80/x"), PARAMS, DOMAIN},
    {STR_LIT("file://a%00b/x"), PARAMS, DOMAIN},
    {STR_LIT("file://a%2Fb/x"), PARAMS, DOMAIN},
};

/* Native paths, the older form. */
static const struct {
    struct str in;
    const char *path;
} native[] = {
    {STR_LIT("/"), "/"},
    {STR_LIT("//"), "/"},
    {STR_LIT("/srv/fsx/a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("//srv/fsx/a.txt"), "/srv/fsx/a.txt"},
    {STR_LIT("/a/b/../c/./d//e/"), "/a/c/d/e"},
    {STR_LIT("/../.."), "/"},
    {STR_LIT("/.."), "/"},
    {STR_LIT("/a/.."), "/"},
    {STR_LIT("/a/../..//b"), "/b"},
    {STR_LIT("/..a/.b/..."), "/..a/.b/..."},
    {STR_LIT("/C:/x"), "/C:/x"},
    {STR_LIT("/a%20b?c#d"), "/a%20b?c#d"},
    {STR_LIT("/a\\b\t\n "), "/a\\b\t\n "},
};

/* Absolute native paths and the URIs the server writes. */
static const struct {
    struct str path;
    const char *uri;
} written[] = {
    {STR_LIT("/"), "file:///"},
    {STR_LIT("/srv/fsx/sp ace"), "file:///srv/fsx/sp%20ace"},
    {STR_LIT("/per%cent"), "file:///per%25cent"},
    {STR_LIT("/q?x/h#x/back\\slash"), "file:///q%3Fx/h%23x/back%5Cslash"},
    {STR_LIT("/\303\274n\303\257"), "file:///%C3%BCn%C3%AF"},
    {STR_LIT("/tab\tx/new\nline/\177"), "file:///tab%09x/new%0Aline/%7F"},
    {STR_LIT("/n\377"), "file:///n%FF"},
    {STR_LIT("/semi;colon/a|b/%41"), "file:///semi;colon/a|b/%2541"},
    {STR_LIT("/!\"#$%&'()*+,-.:;<=>?@[\\]^_`{|}~"),
     "file:///!%22%23$%25&'()*+,-.:;%3C=%3E%3F@[%5C]^_%60%7B|%7D~"},
    {STR_LIT("/srv/C:"), "file:///srv/C:"},
    {STR_LIT("/C:a"), "file:///C:a"},
    {STR_LIT("/C|/x"), "file:///C|/x"},
    {STR_LIT("/C:"), "file:///%00/bad/path/L0M6"},
    {STR_LIT("/C:/x"), "file:///%00/bad/path/L0M6L3g"},
    {STR_LIT("/c:/xy"), "file:///%00/bad/path/L2M6L3h5"},
    {STR_LIT("/z:/\377"), "file:///%00/bad/path/L3o6L_8"},
};

static struct guard memory;

static int setup(void **state) {
    (void)state;
    memory = guard_new(8 * URI_PATH_MAX);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    guard_free(&memory);
    return 0;
}

static int decode(struct str in, char **path, struct err *e) {
    return uri_to_path((struct str){guard_copy(&memory, in.p, in.n), in.n}, path, e);
}

static void expect_path(struct str in, const char *want) {
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_free_ char *path = NULL;
    int r = decode(in, &path, &e);
    if (r < 0)
        fail_msg("%.*s: %s", (int)in.n, in.p, err_msg(&e));
    assert_string_equal(path, want);
    assert_int_equal(e.code, 0);
    assert_null(e.msg);
}

static void accepts(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(accepted); i++)
        expect_path(accepted[i].in, accepted[i].path);
    for (size_t i = 0; i < ARRAY_LEN(native); i++)
        expect_path(native[i].in, native[i].path);
}

static void expect_error(struct str in, int code, const char *message) {
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_free_ char *path = NULL;
    int r = decode(in, &path, &e);
    assert_null(path);
    assert_int_equal(e.code, code);
    assert_string_equal(err_msg(&e), message);
    bool foreign = code == ERR_INVALID_REQUEST && strstr(message, "is invalid on") != NULL;
    assert_int_equal(r, foreign ? -EXDEV : -EINVAL);
}

static void refuses(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        expect_error(refused[i].in, refused[i].code, refused[i].message);
    expect_error(STR_LIT("/a\0b"), PARAMS, "path contains a NUL byte");
    expect_error(STR_LIT("/a\0"), PARAMS, "path contains a NUL byte");
}

static void writes(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        _cleanup_buf_ struct buf b = BUF_INIT(4096);
        assert_int_equal(uri_from_path(&b, written[i].path), 0);
        assert_int_equal(buf_putc(&b, '\0'), 0);
        assert_string_equal(b.p, written[i].uri);
    }
}

/* A path of any bytes comes back from its own URI. */
static void round_trip(void **state) {
    (void)state;
    char path[40];
    uint32_t random = 1;
    static const char often[] = "/.:CZc|%2eF\\";
    for (int round = 0; round < 20000; round++) {
        size_t n = 1 + (size_t)round % (sizeof path - 2);
        for (size_t i = 0; i < n; i++) {
            random = random * 1664525 + 1013904223;
            unsigned pick = random >> 16;
            char rare = (char)(1 + pick / 3 % 255);
            path[i] = pick % 3 ? often[pick / 3 % (sizeof often - 1)] : rare;
        }
        path[0] = '/';
        path[n] = '\0';
        _cleanup_err_ struct err e = ERR_INIT;
        _cleanup_free_ char *clean = NULL;
        _cleanup_free_ char *back = NULL;
        _cleanup_buf_ struct buf b = BUF_INIT(4096);
        assert_int_equal(decode(str_of(path), &clean, &e), 0);
        assert_int_equal(uri_from_path(&b, str_of(clean)), 0);
        assert_int_equal(decode(buf_str(&b), &back, &e), 0);
        assert_string_equal(back, clean);
    }
}

/* Text of n bytes: `before`, then `fill` repeated. */
static struct str filled(char *p, size_t n, const char *before, const char *fill) {
    size_t have = strlen(before), step = strlen(fill);
    memcpy(p, before, have);
    for (size_t i = have; i < n; i++)
        p[i] = fill[(i - have) % step];
    return (struct str){p, n};
}

static void limits(void **state) {
    (void)state;
    static char text[4 * URI_PATH_MAX];
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_free_ char *path = NULL;
    assert_int_equal(decode(filled(text, URI_PATH_MAX, "/", "a"), &path, &e), 0);
    assert_int_equal(strlen(path), URI_PATH_MAX);
    free(steal_ptr(&path));
    const char *too_long = "path has more than 65536 bytes";
    expect_error(filled(text, URI_PATH_MAX + 1, "/", "a"), PARAMS, too_long);
    struct str uri = filled(text, 8 + 3 * (URI_PATH_MAX - 1), "file:///", "%41");
    assert_int_equal(decode(uri, &path, &e), 0);
    assert_int_equal(strlen(path), URI_PATH_MAX);
    expect_error(filled(text, 8 + 3 * URI_PATH_MAX, "file:///", "%41"), PARAMS, too_long);
    expect_error(filled(text, sizeof text, "file:///", "a"), PARAMS, too_long);
    expect_error(filled(text, 190000, "file:///", "\303\251"), PARAMS, too_long);
    expect_error(filled(text, 2000, "file://", "h"), PARAMS, DOMAIN);
    /* 840 bytes, but 2,240 as Punycode */
    expect_error(filled(text, 7 + 840, "file://", "\303\251."), PARAMS, DOMAIN);
}

/* A message that quotes a long URI is cut, not lost. */
static void long_message(void **state) {
    (void)state;
    static char text[URI_PATH_MAX];
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_free_ char *path = NULL;
    assert_int_equal(decode(filled(text, sizeof text, "file://h/", "a"), &path, &e), -EXDEV);
    assert_int_equal(strlen(err_msg(&e)), ERR_MSG_MAX);
    assert_memory_equal(err_msg(&e), "'file://h/aaa", 13);
}

static void full_buffer(void **state) {
    (void)state;
    for (size_t room = 4; room < 12; room++) {
        _cleanup_buf_ struct buf b = BUF_INIT(room);
        assert_int_equal(buf_putz(&b, "kept"), 0);
        assert_int_equal(uri_from_path(&b, STR_LIT("/a b")), -ENOBUFS);
        assert_int_equal(uri_from_path(&b, STR_LIT("/C:/b")), -ENOBUFS);
        assert_int_equal(b.len, 4);
        assert_memory_equal(b.p, "kept", 4);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts),     cmocka_unit_test(refuses), cmocka_unit_test(writes),
        cmocka_unit_test(round_trip),  cmocka_unit_test(limits),  cmocka_unit_test(long_message),
        cmocka_unit_test(full_buffer),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
