/* version.h: the version of kbgen and of the simulators that it makes. */
#ifndef KB_VERSION_H
#define KB_VERSION_H

#define KBGEN_VERSION "0.1.0"
#define KBGEN_DATE "2026-11-23"                         /* of the version, for manual pages and packages */

#endif
