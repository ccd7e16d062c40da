// The instruction set that matrix products use. Element-wise kernels are compiled for AVX2 with FMA
// and give the same bits everywhere; a product's bits depend on the vector width, so a job fixes
// it.
#ifndef TANDEM_COMMON_TENSOR_CPU_ISA_H_
#define TANDEM_COMMON_TENSOR_CPU_ISA_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Best first.
constexpr absl::string_view kCpuIsas[] = {"avx512", "avx2"};

// The best of kCpuIsas that this processor has. UNIMPLEMENTED when it has none.
absl::StatusOr<absl::string_view> BestCpuIsa();

// Fixes the instruction set of all products of this process. Call it before the first product, from
// one thread; the same name may be given again. INVALID_ARGUMENT: an unknown name.
// FAILED_PRECONDITION: the processor lacks it, or another one is fixed already.
absl::Status FixCpuIsa(absl::string_view isa);

}  // namespace tandem

#endif  // TANDEM_COMMON_TENSOR_CPU_ISA_H_
