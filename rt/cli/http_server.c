/* http_server.c: the checks of requests, around libmicrohttpd. */
#include "http_server.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/fail.h"

enum { TOKEN_BYTES = 16, CONNECTIONS_MOST = 64, TIMEOUT_S = 10, HEADERS_MOST = 32 << 10 };

#define OF_LIBRARY(function)                                                                                           \
    function(MHD_start_daemon) function(MHD_stop_daemon) function(MHD_lookup_connection_value)                         \
    function(MHD_create_response_from_buffer) function(MHD_add_response_header) function(MHD_queue_response)           \
    function(MHD_destroy_response)

static struct {
#define FUNCTION(name) __typeof__(name) *name;
    OF_LIBRARY(FUNCTION)
#undef FUNCTION
} mhd;

static struct {
    struct MHD_Daemon *daemon;
    http_handler *handle;
    char prefix[2 * TOKEN_BYTES + 3];                   /* "/TOKEN/" */
    char hosts[2][32];                                  /* what Host may be */
} server;

/* A request whose body is coming. */
struct upload {
    size_t bytes;
    char body[HTTP_BODY_MOST + 1];
};

static void library_load(void)
{
    void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        die("cannot load libmicrohttpd, which `web` serves with (%s): install libmicrohttpd12", dlerror());
#define FUNCTION(name)                                                                                                 \
    if (!(mhd.name = (__typeof__(mhd.name))dlsym(library, #name)))                                                     \
        die("the libmicrohttpd of this system has no " #name);
    OF_LIBRARY(FUNCTION)
#undef FUNCTION
}

/* ---- answers */

static enum MHD_Result answer(struct MHD_Connection *connection, const struct http_response *response)
{
    static const char *const headers[][2] = {
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Content-Security-Policy", "frame-ancestors 'none'"},
    };
    struct MHD_Response *made =
        mhd.MHD_create_response_from_buffer(response->length, response->text, MHD_RESPMEM_MUST_FREE);
    if (!made)
        return MHD_NO;
    for (size_t i = 0; i < COUNT_OF(headers); i++)
        mhd.MHD_add_response_header(made, headers[i][0], headers[i][1]);
    mhd.MHD_add_response_header(made, "Content-Type", response->type);
    enum MHD_Result queued = mhd.MHD_queue_response(connection, response->status, made);
    mhd.MHD_destroy_response(made);
    return queued;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *why)
{
    char *text = strdup(why);
    return text ? answer(connection, &(struct http_response){status, "text/plain", text, strlen(text)}) : MHD_NO;
}

/* ---- checks */

/* Compares in a time that does not depend on where the texts differ. */
static bool has_token(const char *path)
{
    size_t length = strlen(server.prefix);
    unsigned difference = 0;
    if (strnlen(path, length) < length)
        return false;
    for (size_t i = 0; i < length; i++)
        difference |= (unsigned char)(path[i] ^ server.prefix[i]);
    return !difference;
}

static bool is_own_host(const char *host)
{
    return host && (!strcmp(host, server.hosts[0]) || !strcmp(host, server.hosts[1]));
}

/* A browser names the origin of every POST; a GET of the page itself has none. */
static bool is_own_origin(const char *origin, bool posts)
{
    static const char scheme[] = "http://";
    if (!origin)
        return !posts;
    return !strncmp(origin, scheme, strlen(scheme)) && is_own_host(origin + strlen(scheme));
}

/* Returns the status to refuse a request with, from its first line and headers alone; 0: it is good so far. */
static unsigned refusal(struct MHD_Connection *connection, const char *path, const char *method)
{
    bool posts = !strcmp(method, "POST");
    const char *length = mhd.MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    if (!is_own_host(mhd.MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"))
        || !is_own_origin(mhd.MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin"), posts))
        return MHD_HTTP_FORBIDDEN;
    if (!has_token(path))
        return MHD_HTTP_NOT_FOUND;
    if (!posts && strcmp(method, "GET"))
        return MHD_HTTP_METHOD_NOT_ALLOWED;
    if (length && strtoull(length, NULL, 10) > HTTP_BODY_MOST)
        return MHD_HTTP_CONTENT_TOO_LARGE;
    return 0;
}

static const char *reason(unsigned status)
{
    switch (status) {
    case MHD_HTTP_FORBIDDEN: return "another host or origin\n";
    case MHD_HTTP_METHOD_NOT_ALLOWED: return "GET or POST\n";
    case MHD_HTTP_CONTENT_TOO_LARGE: return "too long\n";
    default: return "not found\n";
    }
}

/* libmicrohttpd calls it with the headers, then with each piece of the body, then at the end of it. */
static enum MHD_Result access_handler(void *arg, struct MHD_Connection *connection, const char *path,
                                      const char *method, const char *version, const char *data, size_t *bytes,
                                      void **state)
{
    struct upload *upload = *state;
    (void)arg, (void)version;
    if (!upload) {
        unsigned status = refusal(connection, path, method);
        if (status)
            return refuse(connection, status, reason(status));
        *state = calloc(1, sizeof *upload);
        return *state ? MHD_YES : MHD_NO;
    }
    if (*bytes) {
        if (*bytes > HTTP_BODY_MOST - upload->bytes)
            return MHD_NO;                              /* a body in pieces that says no length: the connection ends */
        memcpy(upload->body + upload->bytes, data, *bytes);
        upload->bytes += *bytes;
        *bytes = 0;
        return MHD_YES;
    }
    struct http_response response = {.status = MHD_HTTP_NOT_FOUND};
    server.handle(&(struct http_request){!strcmp(method, "POST"), path + strlen(server.prefix), upload->body,
                                         upload->bytes}, &response);
    return response.text ? answer(connection, &response) : refuse(connection, response.status, reason(response.status));
}

static void completed(void *arg, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode how)
{
    (void)arg, (void)connection, (void)how;
    free(*state);
    *state = NULL;
}

/* ---- start and end */

static int listen_on(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on))
        die("a socket:");
    if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, CONNECTIONS_MOST))
        usage_error("cannot serve on port %u of 127.0.0.1:", (unsigned)*port);
    if (getsockname(fd, (struct sockaddr *)&address, &size))
        die("a socket:");
    *port = ntohs(address.sin_port);
    return fd;
}

static void token_draw(void)
{
    unsigned char bytes[TOKEN_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        die("no random numbers:");
    char *to = server.prefix;
    *to++ = '/';
    for (size_t i = 0; i < sizeof bytes; i++)
        to += sprintf(to, "%02x", bytes[i]);
    *to = '/';
}

const char *http_begin(uint16_t port, http_handler *handle)
{
    library_load();
    int fd = listen_on(&port);
    token_draw();
    server.handle = handle;
    snprintf(server.hosts[0], sizeof server.hosts[0], "127.0.0.1:%u", (unsigned)port);
    snprintf(server.hosts[1], sizeof server.hosts[1], "localhost:%u", (unsigned)port);
    server.daemon = mhd.MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, access_handler, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MOST,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADERS_MOST,
        MHD_OPTION_END);
    if (!server.daemon)
        die("libmicrohttpd does not start");
    return arena_printf("http://%s%s", server.hosts[0], server.prefix);
}

void http_end(void)
{
    mhd.MHD_stop_daemon(server.daemon);
}
