// The instruction sets of matrix products, by name.
#ifndef TANDEM_COORDINATOR_ISA_H_
#define TANDEM_COORDINATOR_ISA_H_

#include <string>

namespace tandem {

// Better ones have larger numbers; -1 for an unknown name.
inline int IsaRank(const std::string& isa) { return isa == "avx512" ? 1 : isa == "avx2" ? 0 : -1; }

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_ISA_H_
