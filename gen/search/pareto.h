/* pareto.h: the Pareto front of points: those that no other point is better than in one objective and as good in all. */
#ifndef GEN_SEARCH_PARETO_H
#define GEN_SEARCH_PARETO_H

#include <stddef.h>
#include <stdint.h>

/* Less is better. A long double holds each number of SQLite exactly. */
typedef long double objective_value;

/* `values` has `objectives` numbers for each of `count` points. Writes the points of the front to the beginning of `order`,
 * which has room for `count`, sorted by the first objective, then the second one, and so on, then by their index. Points
 * with equal values are all on it, or none. Returns how many they are. */
size_t pareto_front(const objective_value *values, size_t count, size_t objectives, uint32_t *order);

/* The same order over all points. */
void pareto_sort(const objective_value *values, size_t count, size_t objectives, uint32_t *order);

#endif
