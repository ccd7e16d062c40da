#include "common/tensor/cpu_isa.h"

#include <dnnl.h>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace tandem {
namespace {

struct Isa {
  absl::string_view name;
  dnnl_cpu_isa_t dnnl;
  bool (*supported)();
};

bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
// The subsets that oneDNN's avx512_core stands for.
bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

// In the order of kCpuIsas.
constexpr Isa kIsas[] = {{"avx512", dnnl_cpu_isa_avx512_core, HasAvx512},
                         {"avx2", dnnl_cpu_isa_avx2, HasAvx2}};
static_assert(kIsas[0].name == kCpuIsas[0] && kIsas[1].name == kCpuIsas[1]);

absl::Mutex mutex(absl::kConstInit);
const Isa* fixed ABSL_GUARDED_BY(mutex) = nullptr;

const Isa* Find(absl::string_view name) {
  for (const Isa& isa : kIsas) {
    if (isa.name == name) return &isa;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<absl::string_view> BestCpuIsa() {
  for (const Isa& isa : kIsas) {
    if (isa.supported()) return isa.name;
  }
  return absl::UnimplementedError("this processor has neither avx512 nor avx2 with fma");
}

absl::Status FixCpuIsa(absl::string_view name) {
  const Isa* isa = Find(name);
  if (isa == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("cpu_isa: is \"", name, "\"; expected \"avx2\" or \"avx512\""));
  }
  absl::MutexLock lock(&mutex);
  if (fixed == isa) return absl::OkStatus();
  if (fixed != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cpu_isa: is ", name, ", but this process computes with ", fixed->name, " already"));
  }
  if (!isa->supported()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cpu_isa: is ", name, ", which this processor lacks"));
  }
  // oneDNN refuses after its first product, and may be a build that caps what it can do.
  if (dnnl_set_max_cpu_isa(isa->dnnl) != dnnl_success ||
      dnnl_get_effective_cpu_isa() != isa->dnnl) {
    return absl::FailedPreconditionError(
        absl::StrCat("cpu_isa: is ", name, ", but oneDNN computes with another one already"));
  }
  fixed = isa;
  return absl::OkStatus();
}

}  // namespace tandem
