/* http_server.h: a server for one user of this computer: on 127.0.0.1 alone, below a secret path.
 *
 * It answers requests whose path begins with the token, whose Host is this server, and which come from no other origin; a
 * POST must name its origin. The connections are handled by one thread, libmicrohttpd's, which is loaded when it is
 * used. */
#ifndef KB_HTTP_SERVER_H
#define KB_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_BODY_MOST = 64 << 10 };

struct http_request {
    bool posts;                                         /* POST; else GET */
    const char *path;                                   /* behind the token and its slash: "runs/3" */
    const char *body;                                   /* 0-terminated; may hold other zeros */
    size_t body_bytes;                                  /* at most HTTP_BODY_MOST */
};

struct http_response {
    unsigned status;
    const char *type;                                   /* of its content */
    char *text;                                         /* of malloc; the server frees it */
    size_t length;
};

typedef void http_handler(const struct http_request *request, struct http_response *response);

/* Begins to serve on a port of 127.0.0.1, 0 is any, and returns the address of the page: "http://127.0.0.1:PORT/TOKEN/".
 * `handle` is called on the server's thread. Dies if there is no library; a port that is in use is a usage error. */
const char *http_begin(uint16_t port, http_handler *handle);

void http_end(void);

#endif
