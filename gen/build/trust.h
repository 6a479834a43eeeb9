/* trust.h: whether another user can have written what kbgen is about to use. */
#ifndef GEN_TRUST_H
#define GEN_TRUST_H

/* Returns why an open file or folder is not trusted, such as "it belongs to user nobody", or NULL if it is. It is trusted
 * if it belongs to this user or to root and no other user can write it. Group permission is fine if nobody else is in the
 * group. */
const char *trust_refusal(int file);

#endif
