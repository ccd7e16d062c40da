// What anyone would write and compile with -O3 for the same processor: the limits that optim_bench
// holds the product against. Arrays do not overlap.
#ifndef TANDEM_TESTS_BENCH_PLAIN_LOOPS_H_
#define TANDEM_TESTS_BENCH_PLAIN_LOOPS_H_

#include <cstddef>

namespace tandem::bench {

void PlainSgd(size_t n, float rate, const float* g, const float* w, float* out);
void PlainAdam(size_t n, float alpha, const float* g, const float* w, float* out, float* m,
               float* v);
void PlainAdagrad(size_t n, float rate, const float* g, const float* w, float* out, float* a);
void PlainAdd(size_t n, float* accumulator, const float* right);
size_t PlainCountNonFinite(size_t n, const float* values);

}  // namespace tandem::bench

#endif  // TANDEM_TESTS_BENCH_PLAIN_LOOPS_H_
