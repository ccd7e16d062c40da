// Random numbers without state: a number is a function of (seed, purpose, a, b), so it does not
// depend on who draws it, when, or in which order. Philox4x32-10: Salmon, Moraes, Dror and Shaw,
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#ifndef TANDEM_COMMON_BASE_RANDOM_H_
#define TANDEM_COMMON_BASE_RANDOM_H_

#include <array>
#include <cstdint>

namespace tandem {

// What a number is for: two purposes never share a stream.
enum class Purpose : uint32_t { kInitializer = 1, kShuffle = 2, kJitter = 4 };

// 128 random bits for the counter (a, b) under the key (seed, purpose). Thread-safe.
std::array<uint32_t, 4> RandomBits(uint64_t seed, Purpose purpose, uint64_t a, uint64_t b);

// Uniform in [0, 1): the upper 24 bits of `bits`, so every value is a float exactly.
inline float ToUniform(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_RANDOM_H_
